"""Feeds that begin with the table, of tables of every kind, against a plain model of their rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from app.core.changes.errors import OffsetAhead
from app.core.changes.positions import SNAPSHOT_READER, FeedPosition, SnapshotPosition
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.service.read_snapshots import ReadSnapshots
from app.core.changes.values import ChangePage
from app.core.timeline.errors import OffsetExpired, VersionExpired
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.slices.table_walk import TableWalk
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateField
from app.kernel.format.definition.schema_change import AddField, RenameField
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.support.lake_table import Write
from tests.support.retained_versions import RetainedVersions
from tests.support.shares import share
from tests.support.table_feed import TableFeed
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    comparable,
    kind_of,
    new_versioned_table,
    written_versioned_table,
)

Row = dict[str, Any]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    return LocalStorage(tmp_path_factory.mktemp("storage"))


@pytest.fixture(scope="module")
def versioned_tables(storage: LocalStorage) -> Any:
    """The table of each kind, written once for the module."""
    return cache(lambda kind: written_versioned_table(storage, kind))


class Expired(RetainedVersions):
    """No version is kept."""

    def acquire(self, tenant_id: str, dataset_id: str, version: int, *_: Any, **__: Any) -> None:
        raise VersionExpired("gone", version=version)


class Cut(RetainedVersions):
    """The feed is cut past every version before it can be leased."""

    def acquire_feed(self, tenant_id: str, dataset_id: str, version: int, *_: Any, **__: Any) -> None:
        raise OffsetExpired("gone", since=0, earliest=1)


def use_case(versioned: VersionedTable, *, kept: RetainedVersions | None = None) -> ReadSnapshots:
    table = versioned.table
    feed = TableFeed(table=table)
    return ReadSnapshots(
        catalog=versioned,
        timeline=versioned,  # type: ignore[arg-type]
        leases=kept or RetainedVersions(),  # type: ignore[arg-type]
        changes=ReadChanges(catalog=feed, index=feed, reader=table.reader),  # type: ignore[arg-type]
        walk=TableWalk(groups=TableReader(table.storage, table.reader, MemoryBudget(bytes_max=2**26))),
    )


def pages(
    versioned: VersionedTable,
    since: FeedPosition,
    reading: ReadSnapshots | None = None,
    access: RowAccess = EVERYTHING,
    **query: Any,
) -> list[ChangePage]:
    """The pages from a position on, up to the head or `until`."""
    reading = reading or use_case(versioned)
    wanted = FeedQuery(**{"limit": 1_000, "access": access, **query})
    found: list[ChangePage] = []
    while True:
        page = reading.page_at_known_head(versioned.dataset, since, wanted)
        found.append(page)
        since = page.position
        if not page.pending or page.complete:
            return found


def changes_in(found: list[ChangePage]) -> list[Row]:
    return [change for page in found for change in page.events.table.to_pylist()]


def of_table(found: list[ChangePage]) -> list[Row]:
    """The rows that come before the feed."""
    return changes_in([page for page in found if page.places is not None])


def followed(versioned: VersionedTable, changes: list[Row]) -> list[Row]:
    """The rows that changes result in: by key the last one, without a key each that was not retracted."""
    key = versioned.table.dataset.record_key
    rows: list[Row] = []
    for change in changes:
        row = change["row"]
        if key:
            rows = [each for each in rows if any(each[name] != row[name] for name in key)]
        elif change["op"] in (Op.RETRACT, Op.CORRECT_FROM):
            rows.remove(row)
        if change["op"] in (Op.APPEND, Op.CORRECT_TO):
            rows.append(row)
    return rows


@share(3)
@EVERY_KIND
def test_rows_and_the_changes_after_them_result_in_the_table(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    producer = versioned.table.dataset.changelog.producer
    last = len(versioned.rows) - 1
    for version in range(last + 1):
        found = pages(versioned, SnapshotPosition(version=version))
        rows = of_table(found)
        assert {change["op"] for change in rows} <= {Op.APPEND}
        if producer is not ChangelogProducer.DEFERRED:
            # There the changes in logs follow, once these are compacted.
            assert comparable([change["row"] for change in rows]) == comparable(versioned.rows[version])
        after = versioned.next_offset("t", "d", version)
        assert all(change["offset"] < after for change in rows)
        assert [change["offset"] for change in changes_in(found)[len(rows) :]] == list(
            range(after, versioned.table.next_offset)
        )
        if producer is not ChangelogProducer.NONE:
            table = followed(versioned, changes_in(found))
            assert comparable(table) == comparable(versioned.rows[last]), version


@share(9)
@EVERY_KIND
@pytest.mark.parametrize("where", [None, "n < 50"])
def test_reading_resumes_after_any_row(versioned_tables: Any, kind: str, where: str | None) -> None:
    versioned = versioned_tables(kind)
    version = len(versioned.rows) - 2
    (first, *_) = pages(versioned, SnapshotPosition(version=version), where=where)
    whole = changes_in([first])
    for limit in (1, 3):
        parts = [
            page
            for page in pages(versioned, SnapshotPosition(version=version), where=where, limit=limit)
            if page.places is not None
        ]
        assert changes_in(parts) == whole
        assert all(page.events.table.num_rows <= limit for page in parts)
        assert all(page.pending for page in parts[:-1])
    for number, text in enumerate(first.resume_at, 1):
        resumed = SnapshotPosition.of(str(text))
        assert resumed.text == text
        assert of_table(pages(versioned, resumed, where=where)) == whole[number:]


def test_rows_have_the_change_that_set_them(versioned_tables: Any) -> None:
    versioned = versioned_tables("merge_on_read full")
    changes = {change.offset: change for change in versioned.table.changes()}
    rows = of_table(pages(versioned, SnapshotPosition()))
    assert len(rows) == len(versioned.rows[-1]) > 5
    for row in rows:
        change = changes[row["offset"]]
        assert (row["row"], row["version"]) == (change.row, change.version)
        assert row["system_time"] is not None


@pytest.mark.parametrize(
    "kind", ["copy_on_write", "merge_on_read input", "key_dynamic with deletion vectors"]
)
def test_options_apply_to_rows_as_to_changes(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    options = {"where": "n < 60", "partitions": (f"day={DAYS[1]}",), "columns": ("id", "note")}
    rows = of_table(pages(versioned, SnapshotPosition(), **options))
    expected = [row for row in versioned.rows[-1] if row["n"] < 60 and row["day"] == DAYS[1]]
    shown = [{"id": row["id"], "note": row["note"]} for row in expected]
    assert comparable([row["row"] for row in rows]) == comparable(shown)
    enveloped = of_table(pages(versioned, SnapshotPosition(), form=ChangeForm.DEBEZIUM))
    assert {(row["op"], row["before"]) for row in enveloped} == {("c", None)}
    assert comparable([row["after"] for row in enveloped]) == comparable(versioned.rows[-1])


def test_reader_sees_only_the_rows_and_values_of_its_grants(versioned_tables: Any) -> None:
    versioned = versioned_tables("dynamic")
    access = RowAccess(where=("n < 50",), masked=("note",))
    rows = of_table(pages(versioned, SnapshotPosition(), access=access))
    expected = [row | {"note": None} for row in versioned.rows[-1] if row["n"] < 50]
    assert comparable([row["row"] for row in rows]) == comparable(expected)


def test_rows_have_the_requested_schema(storage: LocalStorage) -> None:
    versioned = new_versioned_table(storage, kind_of("merge_on_read input"))
    old = {"id": 1, "day": DAYS[0], "n": 1, "note": "a"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[old]), [old])
    changes = [
        AddField(field=CreateField(name="late", type="string")),
        RenameField(name="note", to="text"),
    ]
    versioned.table.dataset = evolve(versioned.table.dataset, changes)
    new = {"id": 2, "day": DAYS[0], "n": 2, "text": "b", "late": "x"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[new]), [])
    rows = [row["row"] for row in of_table(pages(versioned, SnapshotPosition()))]
    assert comparable(rows) == comparable([{"id": 1, "day": DAYS[0], "n": 1, "text": "a", "late": None}, new])


def test_position_of_a_version_that_is_gone_or_to_come_is_rejected(versioned_tables: Any) -> None:
    versioned = versioned_tables("copy_on_write")
    with pytest.raises(OffsetAhead):
        pages(versioned, SnapshotPosition(version=len(versioned.rows)))
    with pytest.raises(VersionExpired):
        pages(versioned, SnapshotPosition(version=2), use_case(versioned, kept=Expired()))
    with pytest.raises(OffsetExpired):
        pages(versioned, SnapshotPosition(version=2), use_case(versioned, kept=Cut()))
    # Behind the last row there is nothing but the feed.
    behind = SnapshotPosition(version=3, group=99, row=1)
    assert of_table(pages(versioned, behind)) == []


def test_version_is_leased_for_the_next_page(versioned_tables: Any) -> None:
    versioned, kept = versioned_tables("copy_on_write"), RetainedVersions()
    reading = use_case(versioned, kept=kept)
    page = reading.page_at_known_head(versioned.dataset, SnapshotPosition(version=4), FeedQuery(limit=1))
    assert page.snapshot is not None
    assert kept.readers == {SNAPSHOT_READER: 4}
    assert kept.bounds == {SNAPSHOT_READER: 24 * 3_600}
