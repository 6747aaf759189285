"""Scans of tables of every kind: their parts have each row of a version once, as read jobs do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from app.access.errors import NotFound
from app.core.catalog.values import SchemaVersion
from app.core.timeline.errors import VersionExpired
from app.core.timeline.service.plan_files import FilePlanner
from app.features.reads.errors import ScanTooLarge
from app.features.reads.scans import CreateScan, PartOptions, PlannedScan, ScanQuery
from app.features.reads.service import scans
from app.features.reads.service.scans import ScanTables
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.errors import CorruptFile
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit import table_rows
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateField
from app.kernel.format.definition.schema_change import (
    AddField,
    DropField,
    RenameField,
    SchemaChange,
    WidenField,
)
from app.kernel.format.file_group import FileKind
from app.kernel.format.operation import Operation
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.support.lake_table import COMPACT, Write
from tests.support.rendered_tables import rendered_files_of
from tests.support.retained_versions import RetainedVersions, versions_of
from tests.support.sealed_places import SEALED_PLACES
from tests.support.shares import share
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    committed_at,
    comparable,
    kind_of,
    kinds_of_files,
    new_versioned_table,
    written_versioned_table,
)

Row = dict[str, Any]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
ALL = PartOptions()


class History(VersionedTable):
    """A table that also says which schemas its dataset had."""

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        known = [*self.schemas.values(), self.table.dataset.schema]
        return SchemaVersion(
            schema=next(each for each in known if each.id == schema_id), created_at=committed_at(0)
        )


@dataclass
class Scanner:
    """Reads whole scans, as a client does."""

    versioned: VersionedTable
    root: Path
    memory_bytes: int = 2**26
    access: RowAccess = EVERYTHING

    def __post_init__(self) -> None:
        self.kept = RetainedVersions()
        storage = LocalStorage(self.root)
        slices = SliceReader(ParquetReader(storage), VectorReader(storage))
        self.versioned.__class__ = History
        self.tables = ScanTables(
            places=SEALED_PLACES,
            catalog=self.versioned,  # type: ignore[arg-type]
            timeline=self.versioned,  # type: ignore[arg-type]
            planner=FilePlanner(timeline=self.versioned),
            versions=versions_of(self.versioned, self.kept),
            storage=storage,
            slices=slices,
            memory=MemoryBudget(bytes_max=self.memory_bytes, scratch=self.root),
            rendered=rendered_files_of(self.versioned, storage, slices),
        )

    def plan(self, **options: Any) -> PlannedScan:
        return self.tables.plan(self.versioned.dataset, CreateScan(**options), self.access)

    def table(self, planned: PlannedScan, name: str, options: PartOptions) -> tuple[pa.Table, bool]:
        """The rows of a part with the columns of the plan, and whether it is a file of the table."""
        place = (self.versioned.dataset, planned.version, name)
        try:
            file = self.tables.file(*place, options.columns, self.access)
        except NotFound:
            content = b"".join(self.tables.rows(*place, options, self.access))
            return ipc.open_stream(content).read_all(), False
        found = pq.read_table(self.root / file.path).select(planned.schema.names())
        if self.access.restricted:
            # The file has the columns of the version, and nothing of the others.
            with pytest.raises(NotFound):
                self.tables.rows(*place, options, self.access)
            return found, True
        rows = ipc.open_stream(b"".join(self.tables.rows(*place, options))).read_all()
        assert found.select(rows.schema.names).to_pylist() == rows.to_pylist()
        return rows, True

    def paths(self, planned: PlannedScan) -> set[str]:
        """Those of the parts that are files."""
        names = [part.name for part in planned.parts if part.checksum is not None]
        dataset, version = self.versioned.dataset, planned.version
        return {self.tables.file(dataset, version, name, planned.columns, self.access).path for name in names}

    def read(self, **options: Any) -> list[Row]:
        planned = self.plan(**options)
        wanted = PartOptions(columns=options.get("columns"), partitions=options.get("partitions"))
        found: list[Row] = []
        for part in planned.parts:
            rows, direct = self.table(planned, part.name, wanted)
            assert direct == (part.checksum is not None)
            assert part.rows is None or part.rows == rows.num_rows
            assert rows.schema.names == planned.schema.names()
            found += rows.to_pylist()
        return found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def scanner(root: Path) -> Callable[[str], Scanner]:
    """The scans of a table of each kind, which is written once for the module."""
    storage = LocalStorage(root)
    return cache(lambda kind: Scanner(written_versioned_table(storage, kind), root))


@share(3)
@EVERY_KIND
def test_parts_have_every_row_of_every_version_once(scanner: Callable[[str], Scanner], kind: str) -> None:
    reader = scanner(kind)
    for version, rows in enumerate(reader.versioned.rows):
        assert comparable(reader.read(version=version)) == comparable(rows)
        assert reader.kept.readers == {scans.SCANS: version}


@share(3)
@EVERY_KIND
def test_scan_applies_columns_and_partitions(scanner: Callable[[str], Scanner], kind: str) -> None:
    reader = scanner(kind)
    for version in (4, len(reader.versioned.rows) - 1):
        found = reader.read(version=version, columns=("note", "id"), partitions=("day=2026-11-2[12]",))
        expected = [
            {"note": row["note"], "id": row["id"]}
            for row in reader.versioned.rows[version]
            if row["day"] != DAYS[0]
        ]
        assert comparable(found) == comparable(expected)


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read full", "merge_on_read input"])
def test_files_without_deleted_rows_and_logs_are_parts_as_they_are(
    scanner: Callable[[str], Scanner], kind: str
) -> None:
    reader = scanner(kind)
    seen = set()
    for version, files in enumerate(reader.versioned.files):
        logged = {file.file_group for file in files if file.kind is FileKind.LOG}
        plain = {
            file.path
            for file in files
            if file.kind is FileKind.BASE and file.file_group not in logged and file.deletion_vector is None
        }
        planned = reader.plan(version=version)
        assert reader.paths(planned) == plain
        seen |= {part.checksum is None for part in planned.parts}
    # A copy-on-write table is always files as they are; the others are so after a compaction.
    assert seen == ({False} if kind == "copy_on_write" else {True, False})
    assert kind == "copy_on_write" or kinds_of_files(reader.versioned) & {"vector", "log"}


def test_read_optimized_scan_leaves_logs_out(scanner: Callable[[str], Scanner]) -> None:
    reader = scanner("merge_on_read input")
    version = max(
        at
        for at, files in enumerate(reader.versioned.files)
        if {file.kind for file in files} == {FileKind.BASE, FileKind.LOG}
    )
    base = [file for file in reader.versioned.files[version] if file.kind is FileKind.BASE]
    found = reader.read(query=ScanQuery.READ_OPTIMIZED, version=version)
    assert len(found) == sum(file.live_rows for file in base)
    assert comparable(found) != comparable(reader.versioned.rows[version])


def evolved(root: Path, kind: str, *changes: SchemaChange) -> tuple[Scanner, Row]:
    """A table with a row before and a row after the changes. Returns the first as it was written."""
    versioned = new_versioned_table(LocalStorage(root), kind_of(kind))
    old = {"id": 1, "day": DAYS[0], "n": 1, "note": "x"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[old]), [old])
    versioned.table.dataset = evolve(versioned.table.dataset, list(changes))
    new = {"id": 2, "day": DAYS[1]}
    versioned.write(Write(operation=Operation.UPSERT, rows=[new]), [])
    return Scanner(versioned, root), old


def direct_files(planned: PlannedScan) -> int:
    return sum(part.checksum is not None for part in planned.parts)


def test_added_column_is_null_in_files_without_it(root: Path) -> None:
    reader, old = evolved(root, "copy_on_write", AddField(field=CreateField(name="late", type="string")))
    empty = {"id": 2, "day": DAYS[1], "n": None, "note": None, "late": None}
    assert comparable(reader.read()) == comparable([{**old, "late": None}, empty])
    assert direct_files(reader.plan()) == 1
    # The columns that were there before are in both files.
    assert direct_files(reader.plan(columns=("id", "note"))) == 2
    assert reader.read(version=1) == [old]
    assert direct_files(reader.plan(version=1)) == 1


@pytest.mark.parametrize(
    ("change", "columns", "expected"),
    [
        (DropField(name="note"), None, {"id": 1, "day": DAYS[0], "n": 1}),
        (DropField(name="note"), ("id",), {"id": 1}),
        (RenameField(name="n", to="number"), ("id", "number"), {"id": 1, "number": 1}),
        (WidenField(name="n", type_="int64"), ("id", "n"), {"id": 1, "n": 1}),
    ],
    ids=str,
)
def test_file_under_another_schema_is_never_sent_as_it_is(
    root: Path, change: SchemaChange, columns: tuple[str, ...] | None, expected: Row
) -> None:
    reader, _ = evolved(root, "copy_on_write", change)
    planned = reader.plan(columns=columns)
    [old] = [part for part in planned.parts if part.checksum is None]
    rows, _ = reader.table(planned, old.name, PartOptions(columns=columns))
    assert rows.to_pylist() == [expected]
    assert rows.schema.types == [field.type for field in planned.schema.to_arrow()]
    # The request for the part decides, and not the plan.
    assert not reader.table(reader.plan(), old.name, ALL)[1]


def test_deleted_rows_are_in_no_part(root: Path) -> None:
    versioned = new_versioned_table(LocalStorage(root), kind_of("merge_on_read full"))
    rows = [{"id": at, "day": DAYS[0], "n": at, "note": "x" * 500} for at in range(400)]
    versioned.write(Write(operation=Operation.UPSERT, rows=rows), rows)
    bare = [{"id": 7, "day": DAYS[0]}]
    kept = [row for row in rows if row["id"] != 7]
    versioned.write(Write(operation=Operation.DELETE, rows=bare), kept)
    assert "vector" in kinds_of_files(versioned)
    reader = Scanner(versioned, root)
    assert comparable(reader.read()) == comparable(kept)
    [before] = [part.name for part in reader.plan(version=1).parts if part.checksum is not None][:1]
    # The name of a part of an earlier version gives the rows of the version that is requested.
    latest, direct = reader.table(reader.plan(), before, ALL)
    assert not direct
    assert 7 not in latest.column("id").to_pylist()


def test_large_files_that_are_decoded_here_are_several_parts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "_CUT_ROWS", 64)
    monkeypatch.setattr(scans, "PART_BYTES", 1)
    versioned = new_versioned_table(LocalStorage(root), kind_of("merge_on_read full"))
    rows = [{"id": at, "day": DAYS[0], "n": at, "note": None} for at in range(500)]
    versioned.write(Write(operation=Operation.UPSERT, rows=rows), rows)
    versioned.write(Write(operation=Operation.DELETE, rows=[{"id": 3, "day": DAYS[0]}]), [])
    reader = Scanner(versioned, root)
    assert len(reader.plan().parts) > len(versioned.files[-1])
    assert comparable(reader.read()) == comparable([row for row in rows if row["id"] != 3])


def test_scan_keeps_its_rows_while_the_table_is_compacted(root: Path) -> None:
    reader = Scanner(
        written_versioned_table(LocalStorage(root), "merge_on_read input", compacted=False), root
    )
    planned, before = reader.plan(), reader.versioned.rows[-1]
    reader.versioned.write(COMPACT, before)
    reader.versioned.write(Write(operation=Operation.UPSERT, rows=[{"id": 99, "day": DAYS[0]}]), [])
    found = [row for part in planned.parts for row in reader.table(planned, part.name, ALL)[0].to_pylist()]
    assert comparable(found) == comparable(before)


@pytest.mark.parametrize(
    "name", ["", "x", "AAAA", "k6NkYXk", "l" * 5000, "lKpkYXk9MjAyNi8xwAAA", "ü"], ids=lambda name: name[:8]
)
def test_unknown_part_is_not_found(scanner: Callable[[str], Scanner], name: str) -> None:
    reader = scanner("copy_on_write")
    with pytest.raises(NotFound):
        reader.tables.rows(reader.versioned.dataset, 3, name, ALL)
    [part, *_] = reader.plan(version=3).parts
    with pytest.raises(NotFound):
        reader.tables.file(reader.versioned.dataset, 99, part.name, None)


def test_scan_of_the_latest_version_is_planned_again_if_that_has_expired(
    scanner: Callable[[str], Scanner], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = scanner("copy_on_write")
    latest = reader.versioned.dataset
    before = msgspec.structs.replace(latest, version=latest.version - 1)
    acquire = reader.kept.acquire

    def acquired(tenant_id: str, dataset_id: str, version: int, *more: Any) -> None:
        if version < latest.version:
            raise VersionExpired("gone", version=version)
        acquire(tenant_id, dataset_id, version, *more)

    monkeypatch.setattr(reader.kept, "acquire", acquired)
    assert reader.tables.plan(before, CreateScan()).version == latest.version
    with pytest.raises(VersionExpired):
        reader.tables.plan(before, CreateScan(version=before.version))


def test_damaged_file_is_not_sent(root: Path) -> None:
    versioned = new_versioned_table(LocalStorage(root), kind_of("copy_on_write"))
    versioned.write(Write(operation=Operation.UPSERT, rows=[{"id": 1, "day": DAYS[0]}]), [])
    reader = Scanner(versioned, root)
    [path] = reader.paths(reader.plan())
    (root / path).write_bytes(b"PAR1")
    with pytest.raises(CorruptFile):
        reader.read()


def test_too_many_parts_and_too_long_links_are_refused(
    scanner: Callable[[str], Scanner], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = scanner("copy_on_write")
    with pytest.raises(ScanTooLarge, match="links"):
        reader.plan(partitions=tuple(f"day={at}" for at in range(1000)))
    monkeypatch.setattr(scans, "_PARTS_MAX", 1)
    with pytest.raises(ScanTooLarge) as refused:
        reader.plan()
    assert refused.value.facts["parts_max"] == 1
