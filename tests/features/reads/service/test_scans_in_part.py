"""Scans of readers that see a part of a table: each row that they see once, and nothing of the others."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from app.access.errors import NotFound
from app.features.reads.errors import ScanTooLarge
from app.features.reads.scans import PartOptions, ScanQuery
from app.features.reads.service import scans
from app.features.reads.service.rows import QueryType
from app.infra.files.storage import LocalStorage
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateField
from app.kernel.format.definition.schema_change import AddField, RenameField
from app.kernel.format.errors import GrantNotApplicable, MaskedColumn
from app.kernel.format.file_group import FileKind
from app.kernel.format.operation import Operation
from app.kernel.sql.conditions.row_access import RowAccess
from tests.features.reads.service.test_row_access import ACCESSES, DAY, paged, visible
from tests.features.reads.service.test_scans import ALL, Row, Scanner, direct_files, evolved
from tests.support.lake_table import Write
from tests.support.shares import share
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    comparable,
    kind_of,
    kinds_of_files,
    new_versioned_table,
    written_versioned_table,
)

Tables = Callable[[str], VersionedTable]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def tables(root: Path) -> Tables:
    return cache(lambda kind: written_versioned_table(LocalStorage(root), kind))


@share(3)
@pytest.mark.parametrize("kind", KINDS)
def test_parts_have_every_visible_row_once(root: Path, tables: Tables, kind: str) -> None:
    versioned = tables(kind)
    for access in ACCESSES:
        reader = Scanner(versioned, root, access=access)
        for version in (0, 4, len(versioned.rows) - 1):
            expected = visible(versioned.rows[version], access)
            assert comparable(reader.read(version=version)) == comparable(expected)
            found = reader.read(version=version, columns=("note", "n"))
            assert comparable(found) == comparable([{"note": row["note"], "n": row["n"]} for row in expected])
            if "day" not in access.masked:
                of_a_day = [row for row in expected if row["day"] == DAYS[1]]
                found = reader.read(version=version, partitions=(f"day={DAYS[1]}",))
                assert comparable(found) == comparable(of_a_day)


def test_read_optimized_scan_has_what_pages_have(root: Path, tables: Tables) -> None:
    versioned = tables("merge_on_read input")
    version = max(
        at
        for at, files in enumerate(versioned.files)
        if {file.kind for file in files} == {FileKind.BASE, FileKind.LOG}
    )
    found = Scanner(versioned, root, access=DAY).read(query=ScanQuery.READ_OPTIMIZED, version=version)
    pages = list(paged(versioned, DAY, version=version, query_type=QueryType.READ_OPTIMIZED))
    assert comparable(found) == comparable(pages)
    assert comparable(found) != comparable(list(paged(versioned, DAY, version=version)))


def test_plan_says_nothing_of_hidden_rows(root: Path, tables: Tables) -> None:
    versioned = tables("merge_on_read input")
    merged = rendered = 0
    for version in range(1, len(versioned.rows)):
        planned = Scanner(versioned, root, access=DAY).plan(version=version)
        for part in planned.parts:
            assert (part.checksum is None) == (part.rows is None) == (part.size_bytes is None)
            assert b"day=" not in base64.urlsafe_b64decode(part.name + "==")
            merged += part.checksum is None
            rendered += part.checksum is not None
        assert len(planned.parts) <= len(Scanner(versioned, root).plan(version=version).parts)
    assert merged
    assert rendered
    # Files and groups without a visible row are no parts.
    assert Scanner(versioned, root, access=RowAccess(where=("n > 1000000",))).plan().parts == []


def test_second_reader_gets_the_files_of_the_first(root: Path, tables: Tables) -> None:
    versioned = tables("copy_on_write")
    reader = Scanner(versioned, root, access=DAY)
    first, second = reader.plan(), reader.plan()
    assert first == second
    assert reader.paths(first) == reader.paths(second)
    assert reader.paths(first)


def test_added_column_is_null_in_files_without_it(tmp_path: Path) -> None:
    reader, old = evolved(tmp_path, "copy_on_write", AddField(field=CreateField(name="late", type="string")))
    reader.access = RowAccess(masked=("note",))
    masked = {**old, "note": None}
    empty = {"id": 2, "day": DAYS[1], "n": None, "note": None, "late": None}
    assert comparable(reader.read()) == comparable([{**masked, "late": None}, empty])
    assert direct_files(reader.plan()) == 1
    assert direct_files(reader.plan(columns=("id", "note"))) == 2
    assert reader.read(version=1) == [masked]


def test_file_that_was_deleted_is_rendered_again(root: Path, tables: Tables) -> None:
    reader = Scanner(tables("copy_on_write"), root, access=DAY)
    planned = reader.plan()
    before = reader.read()
    for path in reader.paths(planned):
        (root / path).unlink()
    again = [row for part in planned.parts for row in reader.table(planned, part.name, ALL)[0].to_pylist()]
    assert comparable(again) == comparable(before)


def test_many_rows_to_merge_are_left_to_a_read_job(
    root: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    versioned = tables("merge_on_read none")
    assert "log" in kinds_of_files(versioned)
    monkeypatch.setattr(scans, "_MERGED_BYTES_MAX", 1)
    version = next(
        at for at, files in enumerate(versioned.files) if any(file.kind is FileKind.LOG for file in files)
    )
    with pytest.raises(ScanTooLarge):
        Scanner(versioned, root, access=RowAccess(masked=("note",))).plan(version=version)
    assert Scanner(versioned, root).plan(version=version).parts


def test_names_of_parts_are_those_of_readers_with_the_same_sight(root: Path, tables: Tables) -> None:
    versioned = tables("merge_on_read full")
    whole, narrow = Scanner(versioned, root), Scanner(versioned, root, access=DAY)
    for reader, other in ((whole, narrow), (narrow, whole)):
        for part in reader.plan().parts:
            with pytest.raises(NotFound):
                other.table(other.plan(), part.name, ALL)
            with pytest.raises(NotFound):
                other.tables.file(versioned.dataset, 1, part.name, None, other.access)


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read none"])
def test_grant_that_was_changed_decides_at_the_next_part(root: Path, tables: Tables, kind: str) -> None:
    versioned = tables(kind)
    planned = Scanner(versioned, root, access=RowAccess(masked=("note",))).plan()
    narrower = Scanner(versioned, root, access=DAY)
    found: list[Row] = []
    for part in planned.parts:
        if part.checksum is None:
            found += narrower.table(planned, part.name, ALL)[0].to_pylist()
            continue
        with pytest.raises(NotFound):
            narrower.table(planned, part.name, ALL)
    pages = list(paged(versioned, DAY))
    assert pages
    assert all(row in pages for row in found)


def test_partitions_of_a_masked_column_are_refused(root: Path, tables: Tables) -> None:
    reader = Scanner(tables("copy_on_write"), root, access=RowAccess(masked=("day",)))
    with pytest.raises(MaskedColumn):
        reader.plan(partitions=("day=*",))
    merged = Scanner(tables("merge_on_read none"), root, access=RowAccess(masked=("day",)))
    version = next(
        at
        for at, files in enumerate(merged.versioned.files)
        if any(file.kind is FileKind.LOG for file in files)
    )
    planned = merged.plan(version=version)
    [part, *_] = [part for part in planned.parts if part.checksum is None]
    with pytest.raises(MaskedColumn):
        merged.table(planned, part.name, PartOptions(partitions=("day=*",)))


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
    masked = Scanner(versioned, tmp_path, access=RowAccess(masked=("remark",)))
    assert [masked.read(version=version) for version in (1, 2)] == [
        [{**row, "note": None}],
        [
            {"id": 1, "day": DAYS[0], "n": 7, "remark": None, "region": None},
            {**later, "remark": None},
        ],
    ]
    filtered = Scanner(versioned, tmp_path, access=RowAccess(where=("region = 'eu'",)))
    with pytest.raises(GrantNotApplicable):
        filtered.plan(version=1)
    assert filtered.read() == [later]
    with pytest.raises(GrantNotApplicable):
        Scanner(versioned, tmp_path, access=RowAccess(masked=("note",))).plan()
