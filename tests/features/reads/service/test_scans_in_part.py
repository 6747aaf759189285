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
from tests.features.reads.service.test_scans import ALL, Row, Scanner
from tests.support.lake_table import Write
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
    versioned = tables("merge_on_read full")
    planned = Scanner(versioned, root, access=DAY).plan()
    assert planned.parts
    for part in planned.parts:
        assert (part.direct, part.rows, part.size_bytes) == (None, None, None)
        assert b"day=" not in base64.urlsafe_b64decode(part.name + "==")
    # Groups that certainly have no visible row are no parts.
    assert len(planned.parts) < len(Scanner(versioned, root).plan().parts)
    assert Scanner(versioned, root, access=RowAccess(where=("n > 1000000",))).plan().parts == []


def test_many_rows_to_merge_are_left_to_a_read_job(
    root: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    versioned = tables("merge_on_read full")
    monkeypatch.setattr(scans, "_MERGED_BYTES_MAX", 1)
    with pytest.raises(ScanTooLarge):
        Scanner(versioned, root, access=DAY).plan()
    assert Scanner(versioned, root).plan().parts


def test_names_of_parts_are_those_of_readers_with_the_same_sight(root: Path, tables: Tables) -> None:
    versioned = tables("merge_on_read full")
    whole, narrow = Scanner(versioned, root), Scanner(versioned, root, access=DAY)
    for reader, other in ((whole, narrow), (narrow, whole)):
        for part in reader.plan().parts:
            with pytest.raises(NotFound):
                other.table(other.plan(), part.name, ALL)
            with pytest.raises(NotFound):
                other.tables.file(versioned.dataset, 1, part.name, None, other.access)


def test_grant_that_was_changed_decides_at_the_next_part(root: Path, tables: Tables) -> None:
    versioned = tables("copy_on_write")
    planned = Scanner(versioned, root, access=RowAccess(masked=("note",))).plan()
    narrower = Scanner(versioned, root, access=DAY)
    found: list[Row] = []
    for part in planned.parts:
        found += narrower.table(planned, part.name, ALL)[0].to_pylist()
    assert comparable(found) == comparable(list(paged(versioned, DAY)))


def test_partitions_of_a_masked_column_are_refused(root: Path, tables: Tables) -> None:
    reader = Scanner(tables("copy_on_write"), root, access=RowAccess(masked=("day",)))
    with pytest.raises(MaskedColumn):
        reader.plan(partitions=("day=*",))
    planned = reader.plan()
    with pytest.raises(MaskedColumn):
        reader.table(planned, planned.parts[0].name, PartOptions(partitions=("day=*",)))


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
