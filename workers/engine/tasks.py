"""How work travels to Spark's Python processes and back: plain values, packed, one function for all kinds."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from app.files.storage import open_storage
from app.lake.commit_message import CommitMessage
from app.lake.errors import HeadwaterError
from app.lake.write_plan import MergeTask
from workers.engine.decode_handle import Decoded, DecodeTask, Prepared, PrepareTask, decode, prepare
from workers.engine.merge_handle import MergeHandle

Task = PrepareTask | DecodeTask | MergeTask
Answer = Prepared | Decoded | CommitMessage


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """An error that the task found, as a value: Spark would bury an exception and run the task again."""

    error: bytes


def run_partition(storage_uri: str, packed: Iterable[bytes]) -> Iterator[bytes]:
    """Runs the tasks of one Spark partition, one after another."""
    # Tasks are the parallelism: one thread each.
    pa.set_cpu_count(1)
    for item in packed:
        task: Task = pickle.loads(item)
        yield pickle.dumps(_run(storage_uri, task))


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
        return Refusal(error=pickle.dumps((type(error), error.detail, error.facts)))


def raise_refusal(refusal: Refusal) -> None:
    """Raises the error that a task found."""
    kind, detail, facts = pickle.loads(refusal.error)
    error = HeadwaterError.__new__(kind)
    HeadwaterError.__init__(error, detail, **facts)
    raise error
