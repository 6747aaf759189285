"""Tasks for Spark's Python processes: packed plain values, and one function that runs all kinds."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

import msgspec
import pyarrow as pa

import app.kernel.arrow  # noqa: F401  (before all that makes arrays)
from app.features.exports.tasks import ExportedPart, ExportPart, PublishedFiles, PublishTask
from app.features.reads.tasks import ReadPart, ReadPartResult
from app.features.sources.ports import Fetched
from app.features.sources.tasks import FetchTask
from app.infra.files.slices.feed_verification import check_files
from app.infra.files.slices.restore_staging import restage
from app.infra.files.slices.version_comparison import compare
from app.kernel.changelog.verification import FoldTask, FoldVerdict
from app.kernel.commit.comparison import CompareTask, RowDifferences
from app.kernel.commit.merge_bundle import MergeBundle, MergedBundle
from app.kernel.commit.restore_plan import Restaged, RestageTask
from app.kernel.format.errors import HeadwaterError
from workers.engine.decode.decode_handle import (
    DecodedRows,
    DecodeTask,
    Inferred,
    InferTask,
    Prepared,
    PrepareTask,
    decode,
    infer,
    prepare,
)
from workers.engine.decode.fetch_handle import fetch
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.read.export_handle import export
from workers.engine.read.publish_handle import publish
from workers.engine.read.read_handle import read
from workers.engine.task_files import TaskResources
from workers.engine.task_setup import Refusal, TaskSetup, accepted, refused, resources_of

Task = (
    PrepareTask
    | InferTask
    | DecodeTask
    | MergeBundle
    | FoldTask
    | ExportPart
    | PublishTask
    | ReadPart
    | RestageTask
    | CompareTask
    | FetchTask
)
TaskResult = (
    Prepared
    | Inferred
    | DecodedRows
    | MergedBundle
    | FoldVerdict
    | ExportedPart
    | PublishedFiles
    | ReadPartResult
    | Restaged
    | RowDifferences
    | Fetched
)


# By then a process has loaded what its tasks need.
_LOADING_PARTITIONS: Final = 3
_partitions = count()

_TASK = msgspec.msgpack.Decoder(Task)
_RESULT = msgspec.msgpack.Decoder(TaskResult | Refusal)


def pack(task: Task) -> bytes:
    """The serialized task."""
    return msgspec.msgpack.encode(task)


def unpack_result(message: bytes) -> TaskResult:
    """The result of a task. Raises the task's error."""
    return accepted(_RESULT.decode(message))


def run_partition(setup: TaskSetup, _number: int, task_messages: Iterable[bytes]) -> Iterator[bytes]:
    """Runs the tasks of one Spark partition, one after another."""
    # One thread per task: Spark's tasks are the parallelism.
    pa.set_cpu_count(1)
    for item in task_messages:
        yield msgspec.msgpack.encode(_run(resources_of(setup), _TASK.decode(item)))
    if next(_partitions) < _LOADING_PARTITIONS:
        # PySpark collects garbage after each partition, which walks all objects that are not frozen: 40 ms for the
        # loaded modules, several times what a small task takes.
        gc.freeze()


def _run(resources: TaskResources, task: Task) -> TaskResult | Refusal:
    try:
        return run_task(resources, task)
    except (HeadwaterError, OSError) as error:
        return refused(error)


def run_task(resources: TaskResources, task: Task) -> TaskResult:
    """Runs a task and returns its result. Raises its error."""
    match task:
        case MergeBundle():
            return MergeHandle(resources).run_all(task)
        case InferTask():
            return infer(task, resources.storage)
        case DecodeTask():
            return decode(task, resources.storage)
        case PrepareTask():
            return prepare(task, resources.storage)
        case FetchTask():
            return fetch(task, resources.storage)
        case ExportPart():
            return export(task, resources.storage, resources.slices, resources.memory)
        case PublishTask():
            return publish(task, resources.storage)
        case CompareTask():
            return compare(task, resources.slices, resources.memory)
        case RestageTask():
            return restage(task, resources.storage, resources.slices, resources.memory)
        case ReadPart():
            return read(task, resources)
        case FoldTask():
            return check_files(resources.slices, task, resources.memory)
