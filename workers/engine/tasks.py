"""How work travels to Spark's Python processes and back: plain values, packed, one function for all kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

import app.arrow  # noqa: F401  (before all that makes arrays)
from app.files.storage import open_storage
from app.lake.commit_message import CommitMessage
from app.lake.errors import HeadwaterError, error_of
from app.lake.write_plan import MergeTask
from workers.engine.decode_handle import Decoded, DecodeTask, Prepared, PrepareTask, decode, prepare
from workers.engine.merge_handle import MergeHandle

Task = PrepareTask | DecodeTask | MergeTask
Answer = Prepared | Decoded | CommitMessage


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An error that the task found, as a value: Spark would bury an exception and run the task again."""

    code: str
    detail: str
    facts: dict[str, Any]


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


def run_partition(storage_uri: str, packed: Iterable[bytes]) -> Iterator[bytes]:
    """Runs the tasks of one Spark partition, one after another."""
    # Tasks are the parallelism: one thread each.
    pa.set_cpu_count(1)
    for item in packed:
        yield msgspec.msgpack.encode(_run(storage_uri, _TASK.decode(item)))


def _run(storage_uri: str, task: Task) -> Answer | Refusal:
    storage = open_storage(storage_uri)
    try:
        match task:
            case MergeTask():
                return MergeHandle.on(storage).run(task)
            case DecodeTask():
                return decode(task, storage)
            case PrepareTask():
                return prepare(task, storage)
    except HeadwaterError as error:
        return Refusal(code=error.code, detail=error.detail, facts=error.facts)
