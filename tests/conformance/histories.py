"""Short histories, one for each combination of a kind of dataset and a way to write, many of them run side by side.

Each begins with two writes (and where files are folded, a compaction between them), goes on with the way that is tried
and with a write of another kind, and is compacted again. After every step rows, counts, feed, and what the rows know of
their past must be those of the model.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Final

from app.infra.files.storage import LocalStorage
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.dataset import DatasetDefinition, TableType
from tests.conformance.kinds import (
    AXES,
    BUCKETS,
    INDEXES,
    MERGES,
    PRODUCERS,
    TABLE_TYPES,
    Kind,
    defined,
    distinct_kinds,
)
from tests.conformance.model import Expected, KeyedModel, Model, check_step, model_of
from tests.conformance.operations import BEGIN, CONTINUE, LIVE_KEYS, MOVES, WAYS, Way, then
from tests.support.commit_seed import commit_seed
from tests.support.lake_table import COMPACT, LakeTable, Run, Write

EXTENT: Final = os.environ.get("CONFORMANCE", "eighth")
"""`long`: all combinations. `share`: the covering share. `eighth`: an eighth of that, another one for each commit."""
LONG: Final = EXTENT == "long"
TRIED: Final = (*WAYS, LIVE_KEYS, MOVES)
_WAYS_OF_ONE_PICK: Final = 4
_BATCH: Final = 1_500


@dataclass(frozen=True, kw_only=True)
class Combination:
    """A kind of dataset, and a way to write that it takes."""

    kind: Kind
    way: Way

    @property
    def name(self) -> str:
        return f"{self.way.name} on {self.kind.name}"


@cache
def is_tried(kind: Kind, way: Way) -> bool:
    """Whether the combination is legal, and has an effect."""
    definition = defined(kind)
    assert isinstance(definition, DatasetDefinition)
    if way is MOVES:
        return kind.moves
    if way is LIVE_KEYS and not kind.keyed:
        return False
    return not way.refusal(definition)


def combinations() -> list[Combination]:
    """Those that run, see `EXTENT`."""
    if LONG:
        found = [Combination(kind=kind, way=way) for kind in distinct_kinds() for way in TRIED]
        return [each for each in found if is_tried(each.kind, each.way)]
    covering = list(share())
    return covering if EXTENT == "share" else eighth(covering, commit_seed())


def eighth(covering: Sequence[Combination], seed: str) -> list[Combination]:
    """A random eighth, in the same order: the same one for the same seed."""
    chosen = set(random.Random(seed).sample(range(len(covering)), len(covering) // 8))
    return [each for number, each in enumerate(covering) if number in chosen]


def share() -> Iterator[Combination]:
    """Every way with every table type, merge mode and bucket mode; producers and index types take turns.

    Where there are few kinds, all producers come. Datasets without partitions come for every table type and bucket
    mode, with ways that take turns.
    """
    for (at, table_type), (place, bucket) in product(enumerate(TABLE_TYPES), enumerate(BUCKETS)):
        for number, way in enumerate(TRIED):
            for key, (merge_index, merge) in product(AXES["record_key"], enumerate(MERGES)):
                wanted = (key, table_type, merge, bucket)
                # Many ways share a pick, and with it the first writes. A test holds that all turns are taken.
                first = 3 * merge_index + merge_index // 4 + number // _WAYS_OF_ONE_PICK + place
                few = key == "no record key" or way is MOVES
                starts = range(len(PRODUCERS)) if few else [first]
                kinds = [_pick(*wanted, "partitions", start, merge_index + at) for start in starts]
                if merge in ("event_time", "(default)") and (at + place + number) % 3 == 0:
                    kinds.append(_pick(*wanted, "no partitions", 0, 0))
                for kind in dict.fromkeys(kinds):
                    if kind is not None and is_tried(kind, way):
                        yield Combination(kind=kind, way=way)


def _pick(
    key: str, table_type: str, merge: str, bucket: str, partitions: str, producer: int, index: int
) -> Kind | None:
    """The first legal kind with these values from that producer and index on; None if there is none.

    Nor is there one where a default only is another name for a value.
    """
    if (key == "a record key") == (merge == "(default)") or bucket == "(default)":
        return None
    for producing, finding in product(_from(PRODUCERS, producer), _from(INDEXES, index)):
        kind = Kind(values=(key, table_type, merge, bucket, producing, finding, partitions))
        if isinstance(defined(kind), DatasetDefinition):
            return kind
    return None


def _from(values: Iterable[str], start: int) -> list[str]:
    listed = list(values)
    return [listed[(start + number) % len(listed)] for number in range(len(listed))]


@dataclass(kw_only=True)
class History:
    """One table and its model, step by step. `fault` is what went wrong; from there on nothing more is done."""

    model: Model
    table: LakeTable
    fault: Exception | None = None
    before: int = 0
    expected: Expected = field(default_factory=Expected)
    writes: tuple[Write, ...] = ()
    tasks: list[MergeTask] = field(default_factory=list)

    def fork(self) -> History:
        return History(model=self.model.fork(), table=self.table.fork(), fault=self.fault)

    @property
    def folds(self) -> bool:
        """Whether there may be something for a compaction to fold."""
        model = self.model
        if not isinstance(model, KeyedModel):
            return False
        return model.postpones or model.dataset.table_type is TableType.MERGE_ON_READ

    def prepare(self, way: Way | None) -> None:
        """Plans the way, or a compaction."""
        removes = None if way is None else way.removes
        self.writes = (COMPACT if way is None else way.write(keyed=self.model.dataset.keyed),)
        self.before = self.table.version
        self.expected = self.model.expect(self.writes, removes)
        self.tasks = self.table.plan(*self.writes)

    def finish(self, messages: Sequence[CommitMessage]) -> None:
        outcome = self.table.commit(self.writes, messages)
        check_step(self.model, self.table, self.before, self.expected, outcome)


def run_histories(
    run: Run, storage: LocalStorage, chosen: Sequence[Combination]
) -> dict[Combination, Exception | None]:
    """What went wrong with each combination, if anything did."""
    begun = {each.kind: _begun(storage, each.kind) for each in chosen}
    _step(run, begun.values(), lambda history: BEGIN[history.model.dataset.keyed])
    _fold(run, begun.values())
    _step(run, begun.values(), lambda history: CONTINUE[history.model.dataset.keyed])
    histories = {each: begun[each.kind].fork() for each in chosen}
    ways = {id(history): each.way for each, history in histories.items()}
    _step(run, histories.values(), lambda history: ways[id(history)])
    _fold(run, histories.values())
    _step(
        run,
        histories.values(),
        lambda history: then(ways[id(history)], keyed=history.model.dataset.keyed),
    )
    _fold(run, histories.values())
    for history in histories.values():
        _guarded(history, lambda history=history: history.model.check_fold(history.table))
    return {each: history.fault for each, history in histories.items()}


def batches(chosen: Sequence[Combination]) -> dict[Combination, int]:
    """Numbers of the batches in which combinations run; those of one kind are in the same."""
    by_kind: dict[Kind, list[Combination]] = {}
    for each in chosen:
        by_kind.setdefault(each.kind, []).append(each)
    numbers: dict[Combination, int] = {}
    for mine in by_kind.values():
        numbers |= dict.fromkeys(mine, len(numbers) // _BATCH)
    return numbers


def _begun(storage: LocalStorage, kind: Kind) -> History:
    definition = defined(kind)
    assert isinstance(definition, DatasetDefinition)
    return History(model=model_of(definition), table=LakeTable(storage=storage, dataset=definition))


def _fold(run: Run, histories: Iterable[History]) -> None:
    _step(run, [history for history in histories if history.folds], lambda _: None)


def _step(run: Run, histories: Iterable[History], way_of: Callable[[History], Way | None]) -> None:
    """One step of each, all tasks in one run; where a task raises, each by itself, so that the others go on."""
    for history in histories:
        _guarded(history, lambda history=history: history.prepare(way_of(history)))
    going = [history for history in histories if history.fault is None]
    try:
        messages = iter(run([task for history in going for task in history.tasks]))
        answers = [[next(messages) for _ in history.tasks] for history in going]
    except Exception:
        for history in going:
            _guarded(history, lambda history=history: history.finish(run(history.tasks)))
        return
    for history, mine in zip(going, answers, strict=True):
        _guarded(history, lambda history=history, mine=mine: history.finish(mine))


def _guarded(history: History, act: Callable[[], None]) -> None:
    if history.fault is not None:
        return
    try:
        act()
    except Exception as error:
        history.fault = error
