"""Rows for readers that see a part of them, against a plain model: on pages, and by read jobs of every kind."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.core.jobs.kinds.read import ReadQuery
from app.features.reads.service.rows import RowQuery
from app.infra.files.storage import LocalStorage
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateField
from app.kernel.format.definition.schema_change import AddField, RenameField
from app.kernel.format.errors import GrantNotApplicable, InvalidRequest, MaskedColumn, RestrictedGrant
from app.kernel.format.file_format import FileFormat
from app.kernel.format.operation import Operation
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from app.kernel.sql.read_order import ReadOrder
from tests.features.reads.service.test_read_table import use_case
from tests.support.lake_table import Write
from tests.support.read_runs import Reads
from tests.support.shares import share
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
ACCESSES: dict[RowAccess, Callable[[Row], bool]] = {
    RowAccess(where=("n < 50",), masked=("note",)): lambda row: row["n"] < 50,
    RowAccess(where=("note IS NULL", f"day = '{DAYS[1]}'")): (
        lambda row: row["note"] is None or row["day"] == DAYS[1]
    ),
    RowAccess(masked=("day",)): lambda row: True,
}
DAY = RowAccess(where=(f"day = '{DAYS[1]}'",), masked=("note",))


@pytest.fixture(scope="module")
def versioned_tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], VersionedTable]:
    storage = LocalStorage(tmp_path_factory.mktemp("storage"))
    return cache(lambda kind: written_versioned_table(storage, kind))


def visible(rows: list[Row], access: RowAccess) -> list[Row]:
    return [{**row, **dict.fromkeys(access.masked)} for row in rows if ACCESSES[access](row)]


def paged(versioned: VersionedTable, access: RowAccess, **query: Any) -> Iterator[Row]:
    token = None
    while True:
        page = use_case(versioned).page(versioned.dataset, RowQuery(**query, page_token=token), access)
        yield from page.rows.to_pylist()
        token = page.next_page_token
        if token is None:
            return


@share(3)
@pytest.mark.parametrize("kind", KINDS)
def test_every_version_shows_the_visible_rows(
    versioned_tables: Callable[[str], VersionedTable], kind: str
) -> None:
    versioned = versioned_tables(kind)
    for access in ACCESSES:
        for version in (4, len(versioned.rows) - 1):
            expected = visible(versioned.rows[version], access)
            assert comparable(list(paged(versioned, access, version=version, limit=7))) == comparable(
                expected
            )
            chosen = [row for row in expected if row["id"] > 9]
            found = list(
                paged(versioned, access, version=version, limit=7, where="id > 9", columns=("note", "n"))
            )
            assert comparable(found) == comparable([{"note": row["note"], "n": row["n"]} for row in chosen])


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read none", "key_dynamic", "unaware"])
def test_read_job_has_the_visible_rows_in_every_format(
    versioned_tables: Callable[[str], VersionedTable], tmp_path: Path, kind: str
) -> None:
    versioned = versioned_tables(kind)
    for number, access in enumerate(ACCESSES):
        reader = Reads(
            versioned=versioned, storage=versioned.table.storage, root=tmp_path / str(number), access=access
        )
        expected = visible(versioned.rows[-1], access)
        for format_ in FileFormat:
            assert comparable(reader.read(format=format_).rows) == comparable(expected)
        order = (ReadOrder(column="id"), ReadOrder(column="n"))
        ordered = reader.read(order_by=order, limit=5).rows
        assert [row["id"] for row in ordered] == sorted(row["id"] for row in expected)[:5]
        if kind == "copy_on_write":
            changed = reader.read(ReadQuery.INCREMENTAL, begin=0).rows
            assert comparable(changed) == comparable(expected)


def test_meta_columns_hide_what_masked_columns_hold(
    versioned_tables: Callable[[str], VersionedTable], tmp_path: Path
) -> None:
    versioned = versioned_tables("copy_on_write")
    for masked, hidden in (
        ("day", {"_hw_record_key", "_hw_partition_path", "_hw_file_name"}),
        ("id", {"_hw_record_key"}),
        ("n", set()),
    ):
        access = RowAccess(masked=(masked,))
        reader = Reads(
            versioned=versioned, storage=versioned.table.storage, root=tmp_path / masked, access=access
        )
        job = reader.read(meta=True).rows
        changed = reader.read(ReadQuery.INCREMENTAL, begin=0, meta=True).rows
        assert len(job) == len(changed) == len(versioned.rows[-1])
        for row in (*paged(versioned, access, meta=True, limit=50), *job, *changed):
            assert row[masked] is None
            assert {
                name for name, value in row.items() if name.startswith("_hw_") and value is None
            } == hidden


def test_page_tokens_name_no_partition(versioned_tables: Callable[[str], VersionedTable]) -> None:
    versioned = versioned_tables("copy_on_write")
    read = use_case(versioned)
    first = read.page(versioned.dataset, RowQuery(limit=1), DAY)
    assert first.next_page_token is not None
    assert b"day=" not in base64.urlsafe_b64decode(first.next_page_token + "==")
    whole = read.page(versioned.dataset, RowQuery(limit=1))
    assert b"day=" in base64.urlsafe_b64decode((whole.next_page_token or "") + "==")
    for token, access in ((whole.next_page_token, DAY), (first.next_page_token, EVERYTHING)):
        with pytest.raises(InvalidRequest):
            read.page(versioned.dataset, RowQuery(limit=1, page_token=token), access)


def test_masked_columns_are_refused_wherever_they_would_select_or_order(
    versioned_tables: Callable[[str], VersionedTable], tmp_path: Path
) -> None:
    versioned = versioned_tables("copy_on_write")
    access = RowAccess(masked=("day", "n"))
    reader = Reads(versioned=versioned, storage=versioned.table.storage, root=tmp_path, access=access)
    for query in ({"where": "id = 1 OR n > 5"}, {"partitions": ("day=*",)}):
        with pytest.raises(MaskedColumn):
            list(paged(versioned, access, **query))
        with pytest.raises(MaskedColumn):
            reader.read(**query)
        with pytest.raises(MaskedColumn):
            reader.read(ReadQuery.INCREMENTAL, begin=0, **query)
    with pytest.raises(MaskedColumn):
        reader.read(order_by=(ReadOrder(column="n"),))


def test_incremental_read_of_a_feed_without_rows_before_is_refused(
    versioned_tables: Callable[[str], VersionedTable], tmp_path: Path
) -> None:
    versioned = versioned_tables("merge_on_read input")
    reader = Reads(versioned=versioned, storage=versioned.table.storage, root=tmp_path, access=DAY)
    with pytest.raises(RestrictedGrant):
        reader.read(ReadQuery.INCREMENTAL, begin=0)


def test_grant_is_bound_to_the_schema_of_the_version(tmp_path: Path) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("copy_on_write"))
    row = {"id": 1, "day": DAYS[0], "n": 7, "note": "secret"}
    versioned.write(Write(operation=Operation.INSERT, rows=[row]), [row])
    changes = [
        RenameField(name="note", to="remark"),
        AddField(field=CreateField(name="region", type="string")),
    ]
    versioned.table.dataset = evolve(versioned.table.dataset, changes)
    later = {"id": 2, "day": DAYS[0], "n": 8, "remark": "secret", "region": "eu"}
    versioned.write(Write(operation=Operation.INSERT, rows=[later]), [later])
    for version in (1, 2):
        shown = list(paged(versioned, RowAccess(masked=("remark",)), version=version))
        assert "secret" not in repr(shown), version
    with pytest.raises(GrantNotApplicable):
        list(paged(versioned, RowAccess(where=("region = 'eu'",)), version=1))
    assert [each["id"] for each in paged(versioned, RowAccess(where=("region = 'eu'",)))] == [2]
    # Its name of before does not let the column through.
    with pytest.raises(GrantNotApplicable):
        list(paged(versioned, RowAccess(masked=("note",))))
