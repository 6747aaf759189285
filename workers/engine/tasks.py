"""Tasks for Spark's Python processes: packed plain values, and the list of all kinds."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import or_
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

import app.kernel.arrow  # noqa: F401  (before all that makes arrays)
from app.features.exports.tasks import ExportedPart, ExportPart, PublishedFiles, PublishTask
from app.features.reads.tasks import ReadPart, ReadPartResult
from app.features.sources.ports import Fetched
from app.features.sources.tasks import FetchTask
from app.infra.files.slices.distinct_values import ColumnSketches, SketchTask, sketch_columns
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

Task: TypeAlias = msgspec.Struct
"""A task of one of the kinds."""
TaskResult: TypeAlias = Any
"""The result of one."""

_T = TypeVar("_T", bound=msgspec.Struct)
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class _Kind(Generic[_T, _R]):
    """A kind of task, its result, and what runs it. `run` raises the error of the task."""

    task: type[_T]
    result: type[_R]
    run: Callable[[TaskResources, _T], _R]


_KINDS: Final[tuple[_Kind[Any, Any], ...]] = (
    _Kind(MergeBundle, MergedBundle, lambda on, task: MergeHandle(on).run_all(task)),
    _Kind(PrepareTask, Prepared, lambda on, task: prepare(task, on.storage, on.memory)),
    _Kind(InferTask, Inferred, lambda on, task: infer(task, on.storage, on.memory)),
    _Kind(DecodeTask, DecodedRows, lambda on, task: decode(task, on.storage, on.memory)),
    _Kind(FetchTask, Fetched, lambda on, task: fetch(task, on.storage)),
    _Kind(ExportPart, ExportedPart, lambda on, task: export(task, on.storage, on.slices, on.memory)),
    _Kind(PublishTask, PublishedFiles, lambda on, task: publish(task, on.storage)),
    _Kind(ReadPart, ReadPartResult, lambda on, task: read(task, on)),
    _Kind(RestageTask, Restaged, lambda on, task: restage(task, on.storage, on.slices, on.memory)),
    _Kind(CompareTask, RowDifferences, lambda on, task: compare(task, on.slices, on.memory)),
    _Kind(SketchTask, ColumnSketches, lambda on, task: sketch_columns(task, on.slices, on.memory)),
    _Kind(FoldTask, FoldVerdict, lambda on, task: check_files(on.slices, task, on.memory)),
)
_RUNS: Final = {kind.task: kind.run for kind in _KINDS}

# By then a process has loaded what its tasks need.
_LOADING_PARTITIONS: Final = 3
_partitions = count()

_TASK: Final = msgspec.msgpack.Decoder(reduce(or_, (kind.task for kind in _KINDS)))
_RESULT: Final = msgspec.msgpack.Decoder(reduce(or_, (kind.result for kind in _KINDS), Refusal))


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
    return _RUNS[type(task)](resources, task)
