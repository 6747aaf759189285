"""Tasks for Spark's Python processes: packed plain values, and one function that runs all kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

import app.arrow  # noqa: F401  (before all that makes arrays)
from app.changelog.verification import FoldTask, FoldVerdict
from app.commit.commit_message import CommitMessage
from app.commit.comparison import Compared, CompareTask
from app.commit.restore_plan import Restaged, RestageTask
from app.commit.write_plan import MergeTask
from app.exports.tasks import ExportedPart, ExportPart
from app.files.lookups.hot_folder import HotFolder
from app.files.slices.feed_verification import check_files
from app.files.slices.restore_staging import restage
from app.files.slices.slice_merge import MemoryBudget
from app.files.slices.version_comparison import compare
from app.files.storage import open_storage
from app.format.errors import HeadwaterError, error_of
from app.reads.tasks import ReadPart, ReadPartResult
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
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.read.export_handle import export
from workers.engine.read.read_handle import read
from workers.engine.task_files import TaskResources

Task = (
    PrepareTask
    | InferTask
    | DecodeTask
    | MergeTask
    | FoldTask
    | ExportPart
    | ReadPart
    | RestageTask
    | CompareTask
)
TaskResult = (
    Prepared
    | Inferred
    | DecodedRows
    | CommitMessage
    | FoldVerdict
    | ExportedPart
    | ReadPartResult
    | Restaged
    | Compared
)


class TaskSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of tasks on every machine. `scratch` and `hot_folder` are local folders; without
    `hot_bytes_max` there are no hot copies.
    """

    storage_uri: str
    memory_bytes: int
    scratch: str
    hot_folder: str
    hot_bytes_max: int


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A task's error, as a value: Spark would wrap an exception and run the task again."""

    code: str
    detail: str
    facts: dict[str, Any]


def refused(error: HeadwaterError) -> Refusal:
    """The error as a value."""
    return Refusal(code=error.code, detail=error.detail, facts=error.facts)


_TASK = msgspec.msgpack.Decoder(Task)
_RESULT = msgspec.msgpack.Decoder(TaskResult | Refusal)


def pack(task: Task) -> bytes:
    """The serialized task."""
    return msgspec.msgpack.encode(task)


def unpack_result(packed: bytes) -> TaskResult:
    """The result of a task. Raises the task's error."""
    answer = _RESULT.decode(packed)
    if isinstance(answer, Refusal):
        raise error_of(answer.code, answer.detail, answer.facts)
    return answer


def run_partition(setup: TaskSetup, packed: Iterable[bytes]) -> Iterator[bytes]:
    """Runs the tasks of one Spark partition, one after another."""
    # One thread per task: Spark's tasks are the parallelism.
    pa.set_cpu_count(1)
    for item in packed:
        yield msgspec.msgpack.encode(_run(resources_of(setup), _TASK.decode(item)))


@cache
def resources_of(setup: TaskSetup) -> TaskResources:
    """The resources of this process, created once, so that the caches of readers are kept."""
    hot = HotFolder(Path(setup.hot_folder), setup.hot_bytes_max) if setup.hot_bytes_max else None
    return TaskResources.on(
        storage=open_storage(setup.storage_uri),
        memory=MemoryBudget(bytes_max=setup.memory_bytes, scratch=Path(setup.scratch)),
        hot=hot,
    )


def _run(resources: TaskResources, task: Task) -> TaskResult | Refusal:
    try:
        return run_task(resources, task)
    except HeadwaterError as error:
        return refused(error)


def run_task(resources: TaskResources, task: Task) -> TaskResult:
    """Runs a task and returns its result. Raises its error."""
    match task:
        case MergeTask():
            return MergeHandle(resources).run(task)
        case InferTask():
            return infer(task, resources.storage)
        case DecodeTask():
            return decode(task, resources.storage)
        case PrepareTask():
            return prepare(task, resources.storage)
        case ExportPart():
            return export(task, resources.storage, resources.slices.reader, resources.memory)
        case CompareTask():
            return compare(task, resources.slices, resources.memory)
        case RestageTask():
            return restage(task, resources.storage, resources.slices, resources.memory)
        case ReadPart():
            return read(task, resources)
        case FoldTask():
            return check_files(resources.slices, task, resources.memory)
