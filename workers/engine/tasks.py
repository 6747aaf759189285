"""How work travels to Spark's Python processes and back: plain values, packed, one function for all kinds."""

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
from app.commit.restoring import Restaged, RestageTask
from app.commit.write_plan import MergeTask
from app.exports.tasks import ExportedPart, ExportPart
from app.files.lookups.hot_folder import HotFolder
from app.files.slices.compare_files import compare
from app.files.slices.fold_files import check_files
from app.files.slices.restage_files import restage
from app.files.slices.slice_merge import Memory
from app.files.storage import open_storage
from app.format.errors import HeadwaterError, error_of
from app.reads.tasks import ReadAnswer, ReadPart
from workers.engine.decode.decode_handle import (
    Decoded,
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
from workers.engine.task_files import Place

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
Answer = (
    Prepared
    | Inferred
    | Decoded
    | CommitMessage
    | FoldVerdict
    | ExportedPart
    | ReadAnswer
    | Restaged
    | Compared
)


class TaskSetup(msgspec.Struct, frozen=True, kw_only=True):
    """How tasks are set up on every machine. `scratch` and `hot_folder` are local folders, `hot_bytes_max` 0 keeps
    no hot copies.
    """

    storage_uri: str
    memory_bytes: int
    scratch: str
    hot_folder: str
    hot_bytes_max: int


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An error that the task found, as a value: Spark would bury an exception and run the task again."""

    code: str
    detail: str
    facts: dict[str, Any]


def refused(error: HeadwaterError) -> Refusal:
    """The error as a value."""
    return Refusal(code=error.code, detail=error.detail, facts=error.facts)


_TASK = msgspec.msgpack.Decoder(Task)
_ANSWER = msgspec.msgpack.Decoder(Answer | Refusal)


def pack(task: Task) -> bytes:
    """A task as it travels."""
    return msgspec.msgpack.encode(task)


def unpack_answer(packed: bytes) -> Answer:
    """What a task answered. Raises the error that it found."""
    answer = _ANSWER.decode(packed)
    if isinstance(answer, Refusal):
        raise error_of(answer.code, answer.detail, answer.facts)
    return answer


def run_partition(setup: TaskSetup, packed: Iterable[bytes]) -> Iterator[bytes]:
    """Runs the tasks of one Spark partition, one after another."""
    # Tasks are the parallelism: one thread each.
    pa.set_cpu_count(1)
    for item in packed:
        yield msgspec.msgpack.encode(_run(place_of(setup), _TASK.decode(item)))


@cache
def place_of(setup: TaskSetup) -> Place:
    """What this process works with; made once, so that readers keep what they have read."""
    hot = HotFolder(Path(setup.hot_folder), setup.hot_bytes_max) if setup.hot_bytes_max else None
    return Place.on(
        storage=open_storage(setup.storage_uri),
        memory=Memory(bytes_max=setup.memory_bytes, scratch=Path(setup.scratch)),
        hot=hot,
    )


def _run(place: Place, task: Task) -> Answer | Refusal:
    try:
        return run_task(place, task)
    except HeadwaterError as error:
        return refused(error)


def run_task(place: Place, task: Task) -> Answer:
    """The answer of a task. Raises the error that it finds."""
    match task:
        case MergeTask():
            return MergeHandle(place).run(task)
        case InferTask():
            return infer(task, place.storage)
        case DecodeTask():
            return decode(task, place.storage)
        case PrepareTask():
            return prepare(task, place.storage)
        case ExportPart():
            return export(task, place.storage, place.slices.reader, place.memory)
        case CompareTask():
            return compare(task, place.slices, place.memory)
        case RestageTask():
            return restage(task, place.storage, place.slices, place.memory)
        case ReadPart():
            return read(task, place)
        case FoldTask():
            return check_files(place.slices, task, place.memory)
