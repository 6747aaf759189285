"""Random histories against the model: groups of writes on every kind of dataset, with too little memory in some."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from app.files import data_sink, lookup
from app.files.hot_folder import HotFolder
from app.files.slice_merge import Memory
from app.files.storage import LocalStorage
from app.lake import compaction_plan
from app.lake.changelog import OP_COLUMN, Op
from app.lake.dataset import ChangelogProducer, DatasetDefinition
from app.lake.errors import InvalidRequest, NotVerifiable
from app.lake.operation import Operation
from app.lake.verification import check_verifiable
from app.lake.write_options import Overwrite, OverwriteScope, WriteOptions, check_options
from tests.conformance.histories import LONG
from tests.conformance.kinds import Kind, defined, distinct_kinds
from tests.conformance.model import Expected, HeapModel, KeyedModel, hold, model_of
from tests.conformance.operations import Predicate
from tests.support.lake_table import COMPACT, LakeTable, Outcome, Row, Write
from tests.support.verified import verified
from workers.engine.merge_handle import MergeHandle
from workers.engine.task_files import Place

HISTORIES: Final = int(os.environ.get("HISTORIES", "4000" if LONG else "60"))
_STEPS: Final = 6
_TIGHT: Final = Memory(bytes_max=2_000)
_PARTITIONS: Final = ("a", "b")
_GROUPED: Final = (
    Operation.UPSERT,
    Operation.UPSERT,
    Operation.INSERT,
    Operation.BULK_INSERT,
    Operation.DELETE,
    Operation.CHANGELOG,
)


def _kinds() -> list[Kind]:
    """As many as there are histories, all alike."""
    kinds = distinct_kinds()
    random.Random(7).shuffle(kinds)
    return [kinds[number % len(kinds)] for number in range(HISTORIES)]


class _Dice:
    """Random writes for one kind of dataset."""

    def __init__(self, kind: Kind, dataset: DatasetDefinition, seed: int) -> None:
        self.random = random.Random(seed)
        self._kind = kind
        self._dataset = dataset

    def _key(self) -> dict[str, Any]:
        number = self.random.randint(0, 25)
        at = self.random.randint(0, 1) if self._kind.moves else number % 2
        return {"p": _PARTITIONS[at], "id": number}

    def _row(self) -> Row:
        one = self.random
        return {
            **self._key(),
            "ts": one.choice([None, 1, 2, 3, 4]),
            "seen": one.choice([None, 1, 2, 3]),
            "name": one.choice([None, "", "x", "ü"]),
            "n": one.choice([None, -1, 0, 1, 2]),
            "total": one.choice([None, 0.0, 0.5, -2.0]),
            "tags": one.choice([None, [], ["x"], ["y", None]]),
            "gone": one.choice([None, False, False, False, True]),
        }

    def _rows(self, operation: Operation) -> list[Row]:
        rows = [self._row() for _ in range(self.random.randint(1, 12))]
        if operation is Operation.DELETE:
            return [{**self._bare(each), "ts": each["ts"]} for each in rows]
        if operation is Operation.CHANGELOG:
            return [change for each in rows for change in self._change(each)]
        return rows

    def _bare(self, row: Row) -> Row:
        return {"p": row["p"], "id": row["id"]}

    def _change(self, row: Row) -> list[Row]:
        op = self.random.choice(list(Op))
        if op is Op.CORRECT_FROM and self.random.random() < 0.7:
            return [
                {OP_COLUMN: int(op), **row},
                {OP_COLUMN: int(Op.CORRECT_TO), **self._row(), **self._bare(row)},
            ]
        return [{OP_COLUMN: int(op), **row}]

    def group(self) -> list[Write]:
        """Writes that are committed together; those that the dataset refuses are left out."""
        chosen: list[Write] = []
        for _ in range(self.random.randint(1, 3)):
            operation = self.random.choice(_GROUPED)
            if chosen and not self._mixes and _inserts(chosen[0].operation) != _inserts(operation):
                continue
            options = WriteOptions()
            if operation.refuses_live_keys and self._kind.keyed:
                options = WriteOptions(drop_duplicates=self.random.random() < 0.8)
            if self._takes(operation, options):
                chosen.append(Write(operation=operation, rows=self._rows(operation), options=options))
        return chosen

    @property
    def _mixes(self) -> bool:
        """Whether an insert beside other writes makes no difference to what is told of those."""
        producer = self._dataset.changelog.producer
        return self._dataset.looks_up and producer in (ChangelogProducer.FULL, ChangelogProducer.NONE)

    def alone(self) -> tuple[Write, Predicate] | None:
        """A write that takes out rows without naming their keys."""
        rows = [{**self._row(), "n": 1} for _ in range(self.random.randint(1, 8))]
        partition = self.random.choice(_PARTITIONS)
        filtered = Overwrite(scope=OverwriteScope.FILTER, where="n >= 0")

        def matches(row: Row) -> bool:
            return row["n"] is not None and row["n"] >= 0

        write, removes = self.random.choice(
            [
                (Write(operation=Operation.SNAPSHOT, rows=rows), lambda row: True),
                (Write(operation=Operation.OVERWRITE, rows=rows), lambda row: True),
                (
                    Write(
                        operation=Operation.OVERWRITE,
                        rows=[each for each in rows if each["p"] == partition],
                        options=WriteOptions(overwrite=Overwrite(scope=OverwriteScope.PARTITIONS)),
                    ),
                    lambda row: row["p"] == partition,
                ),
                (
                    Write(operation=Operation.OVERWRITE, rows=rows, options=WriteOptions(overwrite=filtered)),
                    matches,
                ),
                (Write(operation=Operation.DELETE, options=WriteOptions(where="n >= 0")), matches),
                (
                    Write(
                        operation=Operation.DELETE_PARTITION,
                        options=WriteOptions(partitions=(f"p={partition}",)),
                    ),
                    lambda row: row["p"] == partition,
                ),
            ]
        )
        empty = write.operation is Operation.OVERWRITE and not write.rows
        return None if empty or not self._takes(write.operation, write.options) else (write, removes)

    def _takes(self, operation: Operation, options: WriteOptions) -> bool:
        try:
            check_options(operation, options, self._dataset)
        except InvalidRequest:
            return False
        return True


def _inserts(operation: Operation) -> bool:
    return operation.refuses_live_keys


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Place]]:
    """By whether rows have to be spilled."""
    root = tmp_path_factory.mktemp("storage")
    hot = HotFolder(tmp_path_factory.mktemp("hot"), 2**28)
    scratch = tmp_path_factory.mktemp("scratch")
    yield {
        tight: Place.on(LocalStorage(root), Memory(bytes_max=2_000 if tight else 2**26, scratch=scratch), hot)
        for tight in (False, True)
    }
    assert not list(scratch.iterdir()), "what was spilled is left behind"


@pytest.mark.parametrize(
    ("seed", "kind"), list(enumerate(_kinds())), ids=lambda each: getattr(each, "name", None)
)
def test_a_random_history_is_that_of_the_model(
    places: dict[bool, Place], monkeypatch: pytest.MonkeyPatch, seed: int, kind: Kind
) -> None:
    # Files of few rows get no index otherwise.
    for module in (data_sink, lookup):
        monkeypatch.setattr(module, "KEPT_ROWS_MIN", 1 if seed % 2 else 6)
    monkeypatch.setattr(compaction_plan, "_SMALL_SHARE", 10**9 if seed % 4 else 4)
    dataset = defined(kind)
    assert isinstance(dataset, DatasetDefinition)
    place = places[seed % 3 == 0]
    handle = MergeHandle(place)
    table = LakeTable(
        storage=place.storage, dataset=dataset, run=lambda tasks: [handle.run(task) for task in tasks]
    )
    model = model_of(dataset)
    dice = _Dice(kind, dataset, seed)
    for _ in range(_STEPS):
        if dice.random.random() < 0.25:
            alone = dice.alone()
            if alone is not None:
                _step(table, model, [alone[0]], alone[1])
        elif writes := dice.group():
            _step(table, model, writes, None)
        if dice.random.random() < 0.3:
            _step(table, model, [COMPACT], None)
    _step(table, model, [COMPACT], None)
    model.check_law(table)


def _step(
    table: LakeTable, model: KeyedModel | HeapModel, writes: list[Write], removes: Predicate | None
) -> None:
    before = table.version
    expected: Expected = model.expect(writes, removes)
    outcome: Outcome = table.write(*writes)
    hold(model, table, before, expected, outcome)
    _verify(table)


def _verify(table: LakeTable) -> None:
    """Wherever a feed says what its table holds, it does so at every version."""
    try:
        check_verifiable(table.dataset)
    except NotVerifiable:
        return
    found = verified(table, memory=_TIGHT if table.version % 2 else None)
    assert found.differences == 0, found.first
    assert found.changes == table.next_offset
