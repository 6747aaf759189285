"""Random writes for datasets of every kind."""

from __future__ import annotations

import random
from typing import Any, Final

import msgspec

from app.kernel.commit.write_options import OnError, Overwrite, OverwriteScope, WriteOptions
from app.kernel.commit.write_rules import check_options
from app.kernel.format.dataset import ChangelogProducer, DatasetDefinition
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from tests.conformance.kinds import Kind, distinct_kinds
from tests.conformance.operations import Predicate
from tests.support.lake_table import Row, Write

_PARTITIONS: Final = ("a", "b")
_GROUPED: Final = (
    Operation.UPSERT,
    Operation.UPSERT,
    Operation.INSERT,
    Operation.BULK_INSERT,
    Operation.DELETE,
    Operation.CHANGELOG,
)
_ORDERS: Final = (("name",), ("n", "ts"), ("total", "gone", "id"))


def kinds(count: int) -> list[Kind]:
    """As many of all kinds, those that differ least far apart."""
    found = distinct_kinds()
    random.Random(7).shuffle(found)
    return [found[number % len(found)] for number in range(count)]


class Dice:
    """Random writes for one kind of dataset."""

    def __init__(self, kind: Kind, dataset: DatasetDefinition, seed: int) -> None:
        self.random = random.Random(seed)
        self._kind = kind
        self._dataset = dataset
        self._seen: list[Row] = []

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
        self._seen += rows
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
        """Writes that are committed together; those that the dataset refuses are left out.

        Changes to rows without a key are a group of their own.
        """
        chosen: list[Write] = []
        for _ in range(self.random.randint(1, 3)):
            operation = self.random.choice(_GROUPED)
            if operation is Operation.CHANGELOG and not self._dataset.keyed:
                return chosen or [self._row_changes()]
            if chosen and not self._mixes and _inserts(chosen[0].operation) != _inserts(operation):
                continue
            options = WriteOptions()
            if operation.refuses_live_keys and self._kind.keyed:
                options = WriteOptions(drop_duplicates=self.random.random() < 0.8)
            ordered = msgspec.structs.replace(options, sort_by=self.random.choice(_ORDERS))
            if operation is Operation.BULK_INSERT and not chosen and self._takes(operation, ordered):
                # A write that sorts its files is not grouped with others.
                return [Write(operation=operation, rows=self._rows(operation), options=ordered)]
            if self._takes(operation, options):
                chosen.append(Write(operation=operation, rows=self._rows(operation), options=options))
        return chosen

    def _row_changes(self) -> Write:
        """Changes to rows of few values, so that many retractions find a row."""
        quarantine = self.random.random() < 0.7
        rows = [self.random.choice([*self._seen, self._row()]) for _ in range(self.random.randint(1, 12))]
        return Write(
            operation=Operation.CHANGELOG,
            rows=[{OP_COLUMN: int(self.random.choice(list(Op))), **each} for each in rows],
            options=WriteOptions(on_error=OnError.QUARANTINE if quarantine else OnError.FAIL),
        )

    @property
    def _mixes(self) -> bool:
        """Whether an insert beside other writes makes no difference to what is delivered of those."""
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
