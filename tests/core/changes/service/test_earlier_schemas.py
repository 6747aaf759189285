"""Feeds under an earlier schema: rows that do not fit it are refused, unless the reader must not see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from app.core.catalog.values import SchemaVersion
from app.core.changes.positions import SnapshotPosition
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.service.read_snapshots import ReadSnapshots
from app.core.changes.values import ChangePage
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.slices.table_walk import TableWalk
from app.infra.files.storage import LocalStorage
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.schema_change import DropField, RenameField, SchemaChange, WidenField
from app.kernel.format.errors import MaskedColumn, SchemaMismatch
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.support.lake_table import Write
from tests.support.retained_versions import RetainedVersions
from tests.support.table_feed import TableFeed
from tests.support.versioned_tables import (
    DAYS,
    VersionedTable,
    committed_at,
    comparable,
    kind_of,
    new_versioned_table,
)

Row = dict[str, Any]
LARGE = 2**40
KINDS = ("copy_on_write", "merge_on_read input", "key_dynamic")
# The feed, and the rows of the version that a feed starts with.
STARTS = (0, SnapshotPosition())
EVERY_START = pytest.mark.parametrize("start", STARTS, ids=["feed", "snapshot"])
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
WIDENED = WidenField(name="n", type_="int64")


@dataclass
class EvolvingFeed(TableFeed):
    """A feed whose catalogue knows the schemas that the dataset had."""

    schemas: tuple[Schema, ...] = ()

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        return SchemaVersion(schema=self.schemas[schema_id - 1], created_at=committed_at(0))

    def later_schemas(self, tenant_id: str, dataset_id: str, schema_id: int) -> list[Schema]:
        return list(self.schemas[schema_id:])


@dataclass
class Evolving:
    """A table with several schemas."""

    versioned: VersionedTable
    schemas: tuple[Schema, ...] = ()

    def __post_init__(self) -> None:
        self.schemas = (self.versioned.table.dataset.schema,)

    def evolve(self, *changes: SchemaChange) -> None:
        table = self.versioned.table
        table.dataset = evolve(table.dataset, list(changes))
        self.schemas += (table.dataset.schema,)

    def write(self, *rows: Row) -> None:
        self.versioned.write(Write(operation=Operation.UPSERT, rows=list(rows)), [])

    def page(self, start: Any, access: RowAccess = EVERYTHING, **query: Any) -> ChangePage:
        """The first page under schema 1, which has all changes, or all rows."""
        table = self.versioned.table
        feed: Any = EvolvingFeed(table=table, schemas=self.schemas)
        timeline: Any = self.versioned
        leases: Any = RetainedVersions()
        reading = ReadSnapshots(
            catalog=feed,
            timeline=timeline,
            leases=leases,
            changes=ReadChanges(catalog=feed, index=feed, reader=table.reader),
            walk=TableWalk(groups=TableReader(table.storage, table.reader, MemoryBudget(bytes_max=2**26))),
        )
        wanted = FeedQuery(**{"limit": 100, "schema_id": 1, "access": access, **query})
        return reading.page_at_known_head(self.versioned.dataset, start, wanted)

    def rows(self, start: Any, access: RowAccess = EVERYTHING, **query: Any) -> list[Row]:
        changes = self.page(start, access, **query).events.table.to_pylist()
        return comparable([change["row"] for change in changes])


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    return LocalStorage(tmp_path_factory.mktemp("storage"))


def row_of(number: int, n: int | None, note: str = "a") -> Row:
    return {"id": number, "day": DAYS[0], "n": n, "note": note}


def evolving(storage: LocalStorage, kind: str) -> Evolving:
    """A table with a row of schema 1."""
    table = Evolving(new_versioned_table(storage, kind_of(kind)))
    table.write(row_of(1, 1))
    return table


@EVERY_START
@EVERY_KIND
def test_visible_row_that_does_not_fit_is_a_schema_mismatch(
    storage: LocalStorage, kind: str, start: Any
) -> None:
    table = evolving(storage, kind)
    table.evolve(WIDENED)
    table.write(row_of(2, 2))
    assert table.rows(start) == comparable([row_of(1, 1), row_of(2, 2)])
    table.write(row_of(3, LARGE))
    with pytest.raises(SchemaMismatch, match=r"of version \d.* do not fit schema 1") as failure:
        table.rows(start)
    assert [each["pointer"] for each in failure.value.facts["errors"]] == ["/schema"]
    assert table.rows(start, columns=("id",)) == comparable([{"id": 1}, {"id": 2}, {"id": 3}])


@EVERY_START
@EVERY_KIND
def test_masked_value_does_not_decide_whether_a_page_is_refused(
    storage: LocalStorage, kind: str, start: Any
) -> None:
    table = evolving(storage, kind)
    table.evolve(WIDENED)
    table.write(row_of(2, LARGE))
    masked = RowAccess(masked=("n",))
    assert table.rows(start, masked) == comparable([row_of(1, None), row_of(2, None)])
    assert table.rows(start, masked, where="note = 'a'") == comparable([row_of(1, None), row_of(2, None)])
    with pytest.raises(MaskedColumn):
        table.rows(start, masked, where="n = 1")


@EVERY_START
@pytest.mark.parametrize("kind", ["copy_on_write", "key_dynamic"])
@pytest.mark.parametrize("condition", ["note = 'a'", "n < 10", f"n < {LARGE}", "n IN (1, 2)"])
def test_hidden_row_does_not_decide_whether_a_page_is_refused(
    storage: LocalStorage, kind: str, start: Any, condition: str
) -> None:
    table = evolving(storage, kind)
    table.evolve(WIDENED)
    table.write(row_of(2, LARGE, "b"), row_of(3, 2))
    access = RowAccess(where=(condition,))
    seen = comparable([row_of(1, 1), row_of(3, 2)])
    assert table.rows(start, access) == seen
    assert table.rows(start, access, partitions=(f"day={DAYS[0]}",)) == seen
    assert table.rows(start, access, where="n = 2") == comparable([row_of(3, 2)])
    # The condition may be of a column that the reader does not see.
    masked = RowAccess(where=(condition,), masked=("n",))
    assert table.rows(start, masked) == comparable([row_of(1, None), row_of(3, None)])


@EVERY_START
def test_refusal_does_not_quote_a_value_to_a_restricted_reader(storage: LocalStorage, start: Any) -> None:
    table = evolving(storage, "copy_on_write")
    table.evolve(WIDENED)
    table.write(row_of(2, LARGE))
    with pytest.raises(SchemaMismatch) as failure:
        table.rows(start, RowAccess(masked=("note",)))
    assert str(LARGE) not in str(failure.value)


@EVERY_START
@EVERY_KIND
def test_column_that_was_widened_and_dropped_since_is_masked_before_it_is_cast(
    storage: LocalStorage, kind: str, start: Any
) -> None:
    table = evolving(storage, kind)
    table.evolve(WIDENED)
    table.write(row_of(2, LARGE))
    table.evolve(DropField(name="n"), RenameField(name="note", to="text"))
    table.write({"id": 3, "day": DAYS[0], "text": "c"})
    with pytest.raises(SchemaMismatch):
        table.rows(start)
    if kind != "merge_on_read input":
        hidden = RowAccess(where=("id <> 2",))
        assert sorted(row["id"] for row in table.rows(start, hidden)) == [1, 3]
    masked = RowAccess(masked=("text",), where=("note = 'c'",))
    if kind != "merge_on_read input":
        assert table.rows(start, masked) == [row_of(3, None) | {"note": None}]
    assert table.rows(start, columns=("note",)) == comparable([{"note": each} for each in ("a", "a", "c")])


def test_pairs_of_visible_rows_are_whole_and_hidden_halves_are_not_cast(storage: LocalStorage) -> None:
    table = evolving(storage, "copy_on_write")
    table.evolve(WIDENED)
    table.write(row_of(1, LARGE))
    table.write(row_of(1, 3))
    table.write(row_of(1, 4))
    access = RowAccess(where=("n < 10",))
    found = table.page(0, access).events.table.to_pylist()
    append, retract, before, after = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO
    expected = [(append, 1), (retract, 1), (append, 3), (before, 3), (after, 4)]
    assert [(change["op"], change["row"]["n"]) for change in found] == expected
    chosen = table.page(0, access, where="n = 4").events.table.to_pylist()
    assert [(change["op"], change["row"]["n"]) for change in chosen] == expected[-2:]
