"""Pages of tables of every kind, against a plain model of their rows and the fold of their feeds."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from app.features.reads.service.rows import ReadTable, RowQuery
from app.features.reads.values import RowPage
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices import table_walk
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.slices.table_walk import TableWalk
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import BucketMode, ChangelogProducer, DatasetDefinition
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateField
from app.kernel.format.definition.schema_change import AddField, RenameField
from app.kernel.format.errors import InvalidFilter, InvalidRequest
from app.kernel.format.file_group import DataFile
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import fold
from app.kernel.sql.conditions.prune import RowFilter
from tests.support.lake_table import COMPACT, Write
from tests.support.retained_versions import versions_of
from tests.support.sealed_places import SEALED_PLACES
from tests.support.shares import share
from tests.support.table_feed import later_corrections_of
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
LOGS = [name for name in KINDS if "input" in name or "none" in name or "deferred" in name or "logs" in name]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    return LocalStorage(tmp_path_factory.mktemp("storage"))


@pytest.fixture(scope="module")
def versioned_tables(storage: LocalStorage) -> Any:
    """The table of each kind, written once for the module."""
    return cache(lambda kind: written_versioned_table(storage, kind))


class Counted:
    """A reader that lists what is read: file groups, and rows."""

    def __init__(
        self, storage: LocalStorage, memory: MemoryBudget | None = None, reader: ParquetReader | None = None
    ) -> None:
        self._reader = TableReader(
            storage, reader or ParquetReader(storage), memory or MemoryBudget(bytes_max=2**26)
        )
        self.read: list[tuple[str, int]] = []

    def read_group(
        self, dataset: DatasetDefinition, files: Sequence[DataFile], schema: pa.Schema, first_row: int, rows: int,
        bytes_max: int,
    ) -> pa.Table:  # fmt: skip
        found = self._reader.read_group(dataset, files, schema, first_row, rows, bytes_max)
        self.read.append((files[0].file_group, found.num_rows))
        return found

    def row_ranges(
        self, files: Sequence[DataFile], row_filter: RowFilter, first_row: int, end: int | None
    ) -> Iterator[tuple[int, int | None]]:
        return self._reader.row_ranges(files, row_filter, first_row, end)


def use_case(versioned: VersionedTable, tables: Counted | None = None) -> ReadTable:
    return ReadTable(
        places=SEALED_PLACES,
        catalog=versioned,
        timeline=versioned,
        versions=versions_of(versioned),
        walk=TableWalk(groups=tables or Counted(versioned.table.storage, reader=versioned.table.reader)),
        later=later_corrections_of(versioned),
    )


def pages(versioned: VersionedTable, reading: ReadTable | None = None, **query: Any) -> Iterator[RowPage]:
    """All pages of a walk."""
    reading = reading or use_case(versioned)
    token = None
    while True:
        page = reading.page(versioned.dataset, RowQuery(**{"limit": 1_000, **query, "page_token": token}))
        yield page
        token = page.next_page_token
        if token is None:
            return


def rows(versioned: VersionedTable, reading: ReadTable | None = None, **query: Any) -> list[Row]:
    return [row for page in pages(versioned, reading, **query) for row in page.rows.to_pylist()]


@EVERY_KIND
def test_every_version_has_its_rows(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    assert len(versioned.files) > 6
    for version, expected in enumerate(versioned.rows):
        assert comparable(rows(versioned, version=version)) == comparable(expected), version


# The feeds of the others do not contain what the rows were before.
@pytest.mark.parametrize(
    "kind",
    [
        name
        for name in KINDS
        if kind_of(name).changelog.producer in (ChangelogProducer.FULL, ChangelogProducer.DEFERRED)
    ],
)
def test_every_version_is_the_fold_of_its_feed(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    producer = versioned.table.dataset.changelog.producer
    changes = versioned.table.changes()
    feed_versions = range(len(versioned.rows))
    if producer is ChangelogProducer.DEFERRED:
        # Between compactions the feed does not know yet.
        feed_versions = [
            at for at in feed_versions if all(file.kind.value == "base" for file in versioned.files[at])
        ]
        assert len(feed_versions) > 1
    for version in feed_versions:
        upto = [(change.op, change.row) for change in changes if change.version <= version]
        folded = fold(upto, versioned.table.dataset.record_key)
        assert comparable(rows(versioned, version=version)) == comparable(folded), version


@EVERY_KIND
@pytest.mark.parametrize("limit", [1, 7])
def test_pages_of_any_size_join_to_the_same_rows(versioned_tables: Any, kind: str, limit: int) -> None:
    versioned = versioned_tables(kind)
    for version in (len(versioned.rows) // 2, len(versioned.rows) - 2):
        parts = [page.rows.to_pylist() for page in pages(versioned, version=version, limit=limit)]
        assert all(len(part) == limit for part in parts[:-1])
        assert len(parts[-1]) <= limit
        assert [row for part in parts for row in part] == rows(versioned, version=version)


@share(3)
@EVERY_KIND
@pytest.mark.parametrize("bytes_max", [1, 250])
@pytest.mark.parametrize("where", [None, "n >= 50"])
def test_pages_of_any_bytes_join_to_the_same_rows(
    versioned_tables: Any, kind: str, bytes_max: int, where: str | None
) -> None:
    versioned = versioned_tables(kind)
    for version in (len(versioned.rows) // 2, len(versioned.rows) - 2):
        reading = replace(use_case(versioned), walk=replace(use_case(versioned).walk, bytes_max=bytes_max))
        parts = [page.rows for page in pages(versioned, reading, version=version, where=where)]
        assert all(part.num_rows <= 1 or part.nbytes <= bytes_max for part in parts)
        assert [row for part in parts for row in part.to_pylist()] == rows(
            versioned, version=version, where=where
        )


def test_tables_of_every_kind_have_their_file_kinds(versioned_tables: Any) -> None:
    assert kinds_of_files(versioned_tables("copy_on_write")) == {"base"}
    assert kinds_of_files(versioned_tables("merge_on_read full")) == {"base", "vector"}
    assert kinds_of_files(versioned_tables("key_dynamic with deletion vectors")) == {"base", "vector"}
    assert kinds_of_files(versioned_tables("unaware with deletion vectors")) == {"base", "vector"}
    assert kinds_of_files(versioned_tables("postpone")) == {"base", "postponed"}
    for kind in LOGS:
        assert kinds_of_files(versioned_tables(kind)) == {"base", "log"}, kind


FILTERS: dict[str, Any] = {
    "n >= 50": lambda row: row["n"] >= 50,
    "day = '2026-11-21' AND n < 60": lambda row: row["day"] == "2026-11-21" and row["n"] < 60,
    "note IS NULL OR note = 'write 1'": lambda row: row["note"] in (None, "write 1"),
    "id > 1000": lambda row: False,
}


@EVERY_KIND
@pytest.mark.parametrize("where", FILTERS)
def test_filter_selects_the_rows_of_the_model(versioned_tables: Any, kind: str, where: str) -> None:
    versioned = versioned_tables(kind)
    for version in (3, len(versioned.rows) - 2):
        expected = [row for row in versioned.rows[version] if FILTERS[where](row)]
        assert comparable(rows(versioned, version=version, where=where, limit=3)) == comparable(expected)


@EVERY_KIND
def test_filter_may_use_columns_that_are_not_selected(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    found = rows(versioned, where="n >= 50", columns=("note", "id"))
    expected = [{"note": row["note"], "id": row["id"]} for row in versioned.rows[-1] if row["n"] >= 50]
    assert comparable(found) == comparable(expected)
    assert all(list(row) == ["note", "id"] for row in found)


@EVERY_KIND
@pytest.mark.parametrize(
    ("globs", "days"),
    [(["day=2026-11-21"], DAYS[1:2]), (["day=*-2[02]"], (DAYS[0], DAYS[2])), (["day=*-21", "day=*-22"], DAYS[1:])],
    ids=str,
)  # fmt: skip
def test_globs_select_partitions(
    versioned_tables: Any, kind: str, globs: list[str], days: Sequence[str]
) -> None:
    versioned = versioned_tables(kind)
    for version in (4, len(versioned.rows) - 2):
        found = rows(versioned, version=version, partitions=tuple(globs), limit=3)
        assert comparable(found) == comparable([row for row in versioned.rows[version] if row["day"] in days])


@EVERY_KIND
def test_files_without_possible_matches_are_not_read(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    wrong_day = f"day = '{DAYS[0]}'"
    by_day = versioned.table.dataset.bucket.mode is not BucketMode.KEY_DYNAMIC
    for version in (3, len(versioned.rows) - 1):
        for query in ({"where": wrong_day}, {"partitions": (f"day={DAYS[0]}",)}):
            tables = Counted(versioned.table.storage)
            rows(versioned, use_case(versioned, tables), version=version, **query)
            assert tables.read or not versioned.rows[version]
            if by_day:
                assert all(f"day={DAYS[0]}/" in group for group, _ in tables.read), query
    # Once all is compacted, bounds of columns are those of every file.
    tables = Counted(versioned.table.storage)
    assert rows(versioned, use_case(versioned, tables), where="n > 1000") == []
    assert tables.read == []


@EVERY_KIND
def test_page_scans_a_bounded_number_of_rows(
    versioned_tables: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    versioned = versioned_tables(kind)
    monkeypatch.setattr(table_walk, "SCANNED_ROWS_MAX", 3)
    monkeypatch.setattr(table_walk, "_STEP_ROWS", 2)
    monkeypatch.setattr(table_walk, "_READ_ROWS_MIN", 1)
    tables = Counted(versioned.table.storage)
    found: list[Row] = []
    short = 0
    for page in pages(versioned, use_case(versioned, tables), where="n != 3"):
        assert sum(count for _, count in tables.read) <= 3 + 1
        tables.read.clear()
        short += page.rows.num_rows < 1_000 and page.next_page_token is not None
        found += page.rows.to_pylist()
    assert short > 1
    assert comparable(found) == comparable([row for row in versioned.rows[-1] if row["n"] != 3])


@EVERY_KIND
def test_page_scans_a_bounded_number_of_bytes(
    versioned_tables: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    versioned = versioned_tables(kind)
    monkeypatch.setattr(table_walk, "SCANNED_BYTES_MAX", 1)
    monkeypatch.setattr(table_walk, "_STEP_ROWS", 2)
    tables = Counted(versioned.table.storage)
    found: list[Row] = []
    for page in pages(versioned, use_case(versioned, tables), where="n != 3"):
        assert sum(count > 0 for _, count in tables.read) <= 1
        tables.read.clear()
        found += page.rows.to_pylist()
    assert comparable(found) == comparable([row for row in versioned.rows[-1] if row["n"] != 3])


@EVERY_KIND
def test_rows_have_five_meta_columns(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    key = versioned.table.dataset.record_key
    producer = versioned.table.dataset.changelog.producer
    has_offsets = producer is ChangelogProducer.FULL
    for version in (4, len(versioned.rows) - 2, len(versioned.rows) - 1):
        files = {file.path.rsplit("/", 1)[1]: file for file in versioned.files[version]}
        logs = any(file.kind.value == "log" for file in files.values())
        plain = rows(versioned, version=version)
        found = rows(versioned, version=version, meta=True, limit=4)
        assert [{name: row[name] for name in ("id", "day", "n", "note")} for row in found] == plain
        for row in found:
            assert list(row)[4:] == [
                "_hw_commit_time", "_hw_commit_seqno", "_hw_record_key", "_hw_partition_path", "_hw_file_name",
            ]  # fmt: skip
            wrote, _, offset = row["_hw_commit_seqno"].partition("-")
            assert row["_hw_commit_time"] == committed_at(int(wrote))
            assert 1 <= int(wrote) <= version
            assert offset.isdigit() if has_offsets else (not offset or producer is ChangelogProducer.DEFERRED)
            expected = ",".join(f"{name}:{row[name]}" for name in key) or None
            assert row["_hw_record_key"] == expected
            assert row["_hw_partition_path"] == f"day={row['day']}"
            assert row["_hw_file_name"] in ({*files, None} if logs else files)
        if has_offsets:
            assert len({row["_hw_commit_seqno"] for row in found}) == len(found)


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read full", "key_dynamic", "unaware"])
def test_sequence_number_names_the_change_of_a_row(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    changes = {change.offset: change for change in versioned.table.changes()}
    for row in rows(versioned, meta=True):
        version, offset = map(int, row["_hw_commit_seqno"].split("-"))
        change = changes[offset]
        assert change.version == version
        assert change.row == {name: row[name] for name in change.row}


def test_meta_columns_stay_when_a_row_moves_to_another_file(storage: LocalStorage) -> None:
    versioned = new_versioned_table(storage, kind_of("copy_on_write"))
    row = {"id": 1, "day": DAYS[0], "n": 1, "note": None}
    versioned.write(Write(operation=Operation.UPSERT, rows=[row]), [row])
    (before,) = rows(versioned, meta=True)
    others = [{**row, "id": number} for number in range(2, 12)]
    versioned.write(Write(operation=Operation.UPSERT, rows=others), [row, *others])
    (after,) = [found for found in rows(versioned, meta=True) if found["id"] == 1]
    assert after["_hw_file_name"] != before["_hw_file_name"]
    assert after | {"_hw_file_name": None} == before | {"_hw_file_name": None}
    assert before["_hw_commit_seqno"] == "1-0"


def test_moved_row_in_a_log_has_no_file_name_and_others_keep_theirs(storage: LocalStorage) -> None:
    versioned = new_versioned_table(storage, kind_of("key_dynamic with logs"))
    first = [{"id": number, "day": DAYS[0], "n": 0, "note": None} for number in range(4)]
    versioned.write(Write(operation=Operation.UPSERT, rows=first), first)
    versioned.write(COMPACT, first)
    moved = {"id": 0, "day": DAYS[1], "n": 1, "note": "moved"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[moved]), [moved, *first[1:]])
    found = {row["id"]: row for row in rows(versioned, meta=True)}
    assert found[0]["_hw_file_name"] is None
    assert found[0]["_hw_partition_path"] == f"day={DAYS[1]}"
    assert all(found[number]["_hw_file_name"] for number in (1, 2, 3))
    assert all(found[number]["_hw_partition_path"] == f"day={DAYS[0]}" for number in (1, 2, 3))
    assert rows(versioned, partitions=(f"day={DAYS[1]}",)) == [moved]
    assert len(rows(versioned, partitions=(f"day={DAYS[0]}",))) == 3


def test_pages_keep_their_version_while_writers_commit(storage: LocalStorage) -> None:
    versioned = written_versioned_table(storage, "merge_on_read none", writes=4)
    version = len(versioned.files) - 1
    found: list[Row] = []
    token = None
    while True:
        page = use_case(versioned).page(versioned.dataset, RowQuery(limit=3, page_token=token))
        found += page.rows.to_pylist()
        assert page.version == version
        token = page.next_page_token
        if token is None:
            break
        row = {"id": len(found), "day": DAYS[0], "n": -1, "note": "while reading"}
        versioned.write(Write(operation=Operation.UPSERT, rows=[row]), [])
        versioned.table.compact()
    assert comparable(found) == comparable(versioned.rows[version])
    assert versioned.table.version > version


def test_earlier_version_is_merged_under_its_own_schema(storage: LocalStorage) -> None:
    versioned = new_versioned_table(storage, kind_of("merge_on_read none"))
    row = {"id": 1, "day": DAYS[0], "n": 1, "note": "first"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[row]), [row])
    changes = [RenameField(name="note", to="remark"), AddField(field=CreateField(name="note", type="int64"))]
    versioned.table.dataset = evolve(versioned.table.dataset, changes)
    later = {"id": 2, "day": DAYS[0], "n": 2, "remark": "second", "note": 7}
    versioned.write(Write(operation=Operation.UPSERT, rows=[later]), [later])
    tables = use_case(versioned)
    assert rows(versioned, tables, version=1) == [row]
    assert comparable(rows(versioned, tables)) == comparable(
        [{"id": 1, "day": DAYS[0], "n": 1, "remark": "first", "note": None}, later]
    )
    assert rows(versioned, tables, version=1, where="note = 'first'") == [row]
    assert rows(versioned, tables, where="note = 7") == [later]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"partitions": ("country=DE",)}, "/partitions"),
        ({"partitions": ("",)}, "/partitions"),
        ({"columns": ("_hw_version",)}, "/columns"),
        ({"page_token": base64.urlsafe_b64encode(msgspec.msgpack.encode({"version": 1, "row": 1})).decode()},
         "/page_token"),
        ({"page_token": base64.urlsafe_b64encode(
            msgspec.msgpack.encode({"version": 1, "group": "", "row": -1})).decode()}, "/page_token"),
    ],
    ids=str,
)  # fmt: skip
def test_invalid_query_is_refused_with_its_pointer(
    versioned_tables: Any, query: dict[str, Any], pointer: str
) -> None:
    versioned = versioned_tables("copy_on_write")
    with pytest.raises(InvalidRequest) as error:
        use_case(versioned).page(versioned.dataset, RowQuery(limit=1, **query))
    assert error.value.facts["errors"][0]["pointer"] == pointer


def test_filter_must_match_the_schema(versioned_tables: Any) -> None:
    versioned = versioned_tables("copy_on_write")
    with pytest.raises(InvalidFilter):
        use_case(versioned).page(versioned.dataset, RowQuery(limit=1, where="nope = 1"))


def test_logs_larger_than_memory_are_merged_through_a_folder(versioned_tables: Any, tmp_path: Path) -> None:
    versioned = versioned_tables("merge_on_read none")
    version = len(versioned.rows) - 2
    tables = Counted(versioned.table.storage, MemoryBudget(bytes_max=64, scratch=tmp_path / "reads"))
    found = rows(versioned, use_case(versioned, tables), version=version, limit=3)
    assert comparable(found) == comparable(versioned.rows[version])
    assert (tmp_path / "reads").is_dir()
    assert list((tmp_path / "reads").iterdir()) == []
