"""Tables in memory of the catalogue whose values are found again wherever they are written, and their twins.

A twin has the same past and the same visible rows and values, and others in the place of all that is hidden. What a
reader gets of both is equal, or it depends on what is hidden.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import BucketMode, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateDataset,
    CreateField,
    CreateSchema,
)
from app.kernel.format.definition.schema_change import AddField
from app.kernel.format.operation import Operation
from app.kernel.sql.conditions.row_access import RowAccess
from tests.open.planted import FIRST_NUMBER, NUMBERS_MAX
from tests.support.lake_table import COMPACT, Write
from tests.support.versioned_tables import VersionedTable, new_versioned_table

Row = dict[str, Any]
Truth = bool | None
_TYPES: Final = {
    "region": "string", "id": "int64", "level": "int32", "note": "string", "account": "int64", "raw": "binary",
    "uid": "uuid", "amount": "decimal(38, 4)", "cents": "decimal(18, 2)", "rate": "double", "ratio": "float",
    "day": "date", "at": "timestamp", "at_ms": "timestamp(ms)", "local": "timestamp_ntz", "yes": "boolean",
    "c8": "int8", "c16": "int16", "u8": "uint8", "u32": "uint32", "tags": "list<string>",
    "codes": "list<int64>", "place": "struct<city: string, code: int64, days: list<date>>",
    "marks": "map<string, int64>", "late": "string",
}  # fmt: skip
_KEYS: Final = ("region", "id")
_LEVELS: Final = 10
_REGIONS: Final = 3
_ROWS: Final = 24
_NULLS: Final = 0.15
_KINDS: Final[tuple[dict[str, Any], ...]] = (
    {"record_key": ["region", "id"], "partition_by": ["region"], "bucket": CreateBucket(count=1)},
    {"record_key": ["region", "id"], "partition_by": ["region"], "table_type": TableType.COPY_ON_WRITE,
     "bucket": CreateBucket(count=1)},
    {"record_key": ["id"], "table_type": TableType.MERGE_ON_READ, "bucket": CreateBucket(count=2)},
    {"bucket": CreateBucket(mode=BucketMode.UNAWARE), "partition_by": ["region"]},
)  # fmt: skip
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What a reader sees: a condition, what it means for a row, and the masked columns."""

    where: str | None
    holds: Callable[[Row], Truth]
    masked: frozenset[str]

    @property
    def access(self) -> RowAccess:
        where = () if self.where is None else (self.where,)
        return RowAccess(where=where, masked=tuple(sorted(self.masked)))

    def shown(self, rows: Sequence[Row]) -> list[Row]:
        """The visible values of the visible rows."""
        return [
            {name: value for name, value in row.items() if name not in self.masked}
            for row in rows
            if self.holds(row)
        ]


def grant_of(dice: random.Random, sample: Row) -> Grant:
    """A random one. `sample`: a row of the table, whose columns and values it names."""
    where, holds = _condition(dice, sample, 2) if dice.random() < 0.8 else (None, _always)
    columns = [name for name in sample if where is None or name not in where]
    masked = dice.sample(columns, dice.choice((0, 1, 2, 4, len(columns) - 1)))
    if where is None and not masked:
        masked = [dice.choice(columns)]
    return Grant(where=where, holds=holds, masked=frozenset(masked))


def _always(_: Row) -> Truth:
    return True


def _condition(dice: random.Random, sample: Row, depth: int) -> tuple[str, Callable[[Row], Truth]]:
    if depth and dice.random() < 0.4:
        return _combined(dice, sample, depth)
    level, region, note = dice.randrange(_LEVELS), sample["region"], sample["note"] or "Q7"
    match dice.randrange(5):
        case 0:
            return f"level < {level}", lambda row: None if row["level"] is None else row["level"] < level
        case 1:
            pair = level, (level + 3) % _LEVELS
            return f"level IN {pair}", lambda row: None if row["level"] is None else row["level"] in pair
        case 2:
            return f"region = '{region}'", lambda row: row["region"] == region
        case 3:
            return f"note >= '{note}'", lambda row: None if row["note"] is None else row["note"] >= note
        case _:
            return "note IS NULL", lambda row: row["note"] is None


def _combined(dice: random.Random, sample: Row, depth: int) -> tuple[str, Callable[[Row], Truth]]:
    left, holds_left = _condition(dice, sample, depth - 1)
    right, holds_right = _condition(dice, sample, depth - 1)
    match dice.randrange(3):
        case 0:
            return f"NOT ({left})", lambda row: _negated(holds_left(row))
        case 1:
            return f"({left}) AND ({right})", lambda row: _both(holds_left(row), holds_right(row))
        case _:
            return (
                f"({left}) OR ({right})",
                lambda row: _negated(_both(_negated(holds_left(row)), _negated(holds_right(row)))),
            )


def _negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


@dataclass
class PlantedTable:
    """A table with a random past. Seeds that are equal make equal tables."""

    storage: LocalStorage
    seed: int | str
    hidden: Grant | None = None
    """Of a twin: all that this grant does not show is other than in the table."""
    versioned: VersionedTable = field(init=False)
    past: list[list[Row]] = field(init=False)
    """The rows of each version."""

    def __post_init__(self) -> None:
        self._dice = random.Random(f"planted {self.seed}")
        self._others = random.Random(f"others {self.seed}")
        self._values = self._dice.randrange(1 << 20)
        kind = dict(self._dice.choice(_KINDS))
        names = [name for name in _TYPES if name != "late"]
        fields = [CreateField(name=name, type=_TYPES[name]) for name in names]
        definition = define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=fields), **kind))
        self._keyed = bool(kind.get("record_key"))
        self._key = kind.get("record_key", ())
        self._regions = [self._text(self._dice) for _ in range(_REGIONS)]
        self._ids = [self._number(self._dice) for _ in range(2 * _ROWS)]
        self.versioned = new_versioned_table(self.storage, definition)
        # Names of files have a part of it, and a twin has the same.
        self.versioned.table.name = "planted"
        self.past = [[]]
        self._rows: list[Row] = []
        self._play()

    def _play(self) -> None:
        self._write(range(_ROWS))
        self._write(self._dice.sample(range(2 * _ROWS), 8))
        for step in self._dice.sample(range(4), 3):
            match step:
                case 0 if self._keyed:
                    self._delete(self._dice.sample(range(_ROWS), 6))
                case 1:
                    self.versioned.table.dataset = evolve(
                        self.versioned.table.dataset,
                        [AddField(field=CreateField(name="late", type="string"))],
                    )
                    self._rows = [{**row, "late": None} for row in self._rows]
                    self._write(self._dice.sample(range(2 * _ROWS), 8))
                case 2:
                    self._commit(COMPACT)
                case _:
                    self._write(self._dice.sample(range(2 * _ROWS), 5))

    def _write(self, keys: Sequence[int]) -> None:
        rows = [self._row(key) for key in keys]
        written = [(row, self._twin(row)) for row in rows]
        operation = Operation.UPSERT if self._keyed else Operation.INSERT
        gone = {self._key_of(row) for row in rows} if self._keyed else set()
        self._rows = [row for row in self._rows if self._key_of(row) not in gone] + [
            row for _, row in written
        ]
        self._commit(Write(operation=operation, rows=[row for _, row in written]))

    def _delete(self, keys: Sequence[int]) -> None:
        keyed = [{"region": self._regions[key % _REGIONS], "id": self._ids[key]} for key in keys]
        gone = {self._key_of(row) for row in keyed}
        self._rows = [row for row in self._rows if self._key_of(row) not in gone]
        bare = [{name: row[name] for name in self._key} for row in keyed]
        self._commit(Write(operation=Operation.DELETE, rows=bare))

    def _commit(self, write: Write) -> None:
        known = self.versioned.table.version
        self.versioned.write(write, self._rows)
        if self.versioned.table.version > known:
            self.past.append(list(self._rows))

    def _key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._key)

    def _twin(self, row: Row) -> Row:
        """The row with others of the values that are hidden. Places in files and conditions stay as they are."""
        others = self._row_of(self._others, row["region"], row["id"])
        if self.hidden is None:
            return row
        names = self.hidden.masked
        if not self.hidden.holds(row):
            # What decides that it is hidden stays.
            names = frozenset(_TYPES) - {"level", "note"}
        return {
            name: others[name] if name in names and name not in _KEYS else value
            for name, value in row.items()
        }

    def _row(self, key: int) -> Row:
        return self._row_of(self._dice, self._regions[key % _REGIONS], self._ids[key])

    def _row_of(self, dice: random.Random, region: str, number: int) -> Row:
        found = {name: None if dice.random() < _NULLS else self._value(dice, name) for name in _TYPES}
        found |= {"region": region, "id": number}
        if "late" not in self.versioned.table.dataset.schema.names():
            del found["late"]
        return found

    def _value(self, dice: random.Random, name: str) -> Any:
        number = dice.randrange(1 << 20)
        simple: dict[str, Callable[[], Any]] = {
            "level": lambda: dice.randrange(_LEVELS),
            "raw": lambda: self._text(dice).encode(),
            "uid": lambda: UUID(int=self._number(dice) << 64 | number).bytes,
            "amount": lambda: Decimal(self._number(dice)).scaleb(-4),
            "cents": lambda: Decimal(number).scaleb(-2),
            "rate": lambda: number / 7,
            "ratio": lambda: float(number),
            "day": lambda: date(2026, 1, 1) + timedelta(days=number % 20_000),
            "at": lambda: _EPOCH + timedelta(microseconds=number * 977),
            "at_ms": lambda: _EPOCH + timedelta(milliseconds=number),
            "local": lambda: datetime(2026, 1, 1) + timedelta(microseconds=number * 977),  # noqa: DTZ001
            "yes": lambda: number % 2 == 0,
            "c8": lambda: number % 100,
            "c16": lambda: number % 30_000,
            "u8": lambda: number % 250,
            "u32": lambda: number + 3_000_000_000,
            "account": lambda: self._number(dice),
            "tags": lambda: [self._text(dice) for _ in range(number % 3)],
            "codes": lambda: [self._number(dice) for _ in range(number % 3)],
            "place": lambda: {
                "city": self._text(dice), "code": self._number(dice), "days": [date(2026, 1, 1 + number % 28)],
            },
            "marks": lambda: [(self._text(dice), self._number(dice))],
        }  # fmt: skip
        return simple[name]() if name in simple else self._text(dice)

    def _text(self, dice: random.Random) -> str:
        return f"Q7{self._next(dice):06x}Z"

    def _number(self, dice: random.Random) -> int:
        return FIRST_NUMBER + self._next(dice)

    def _next(self, dice: random.Random) -> int:
        """A number of no other value of the table. Those of a twin are others."""
        self._values += 1
        return (self._values + (1 << 23 if dice is self._others else 0)) & NUMBERS_MAX
