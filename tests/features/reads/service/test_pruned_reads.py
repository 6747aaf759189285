"""Pages of files of many row groups: those that hold nothing that is requested are left out, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.features.reads.service.rows import RowQuery
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices import table_walk
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.row_scan import RowChoice, base_rows
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.storage import LocalStorage
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.operation import Operation
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.prune import RowFilter
from tests.features.reads.service.test_read_table import Counted, use_case
from tests.support.examples import a_third_of
from tests.support.lake_table import Write
from tests.support.versioned_tables import DAYS, VersionedTable, comparable, kind_of, new_versioned_table

Row = dict[str, Any]
KINDS = (
    "merge_on_read full",
    "merge_on_read none",
    "key_dynamic with deletion vectors",
    "unaware with deletion vectors",
)
ROWS = 120
# Rows that a later write takes out, or brings again.
LATE = range(5, ROWS, 7)


@pytest.fixture(scope="module")
def small_row_groups() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.infra.files.data_sink.BASE_ROW_GROUP_ROWS", 4)
        yield


@pytest.fixture(scope="module")
def versioned_tables(
    tmp_path_factory: pytest.TempPathFactory, small_row_groups: None
) -> Callable[[str], VersionedTable]:
    storage = LocalStorage(tmp_path_factory.mktemp("storage"))

    @cache
    def written(kind: str) -> VersionedTable:
        versioned = new_versioned_table(storage, kind_of(kind))
        keyed = versioned.table.dataset.keyed
        rows = [_row(number, number // 2) for number in range(ROWS)]
        versioned.write(Write(operation=Operation.UPSERT if keyed else Operation.INSERT, rows=rows), rows)
        if keyed:
            changed = [_row(number, 1_000 + number) for number in LATE]
            kept = [row for row in rows if row["id"] not in LATE]
            versioned.write(Write(operation=Operation.UPSERT, rows=changed), [*kept, *changed])
        else:
            kept = [row for row in rows if row["note"] != "5"]
            versioned.write(Write(operation=Operation.DELETE, options=WriteOptions(where="note = '5'")), kept)
        return versioned

    return written


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are opened, each as often as it is."""
    paths: list[str] = []
    original = LocalStorage.open

    def counted(storage: LocalStorage, path: str) -> pa.NativeFile:
        paths.append(path)
        return original(storage, path)

    monkeypatch.setattr(LocalStorage, "open", counted)
    return paths


def _row(number: int, n: int) -> Row:
    return {"id": number, "day": DAYS[number % 3], "n": n, "note": str(number % 7) if number % 5 else None}


def condition() -> st.SearchStrategy[tuple[str, Callable[[Row], bool]]]:
    """A filter, and what it selects."""
    numbers = st.integers(-2, 70) | st.sampled_from([1_005, 1_050, 2_000])

    def between(low: int, width: int) -> tuple[str, Callable[[Row], bool]]:
        return f"n BETWEEN {low} AND {low + width}", lambda row: low <= row["n"] <= low + width

    def at(id_: int) -> tuple[str, Callable[[Row], bool]]:
        return (
            f"id = {id_} OR (note IS NULL AND n < {id_ // 4})",
            lambda row: row["id"] == id_ or (row["note"] is None and row["n"] < id_ // 4),
        )

    return st.builds(between, numbers, st.integers(0, 9)) | st.builds(at, st.integers(-1, ROWS))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=a_third_of(6), deadline=None)
@given(wanted=condition(), limit=st.integers(1, 40), scanned_max=st.sampled_from([1, 3_000, 10**9]))
def test_filtered_pages_join_to_the_filter_of_the_table(
    versioned_tables: Callable[[str], VersionedTable], kind: str, wanted: tuple[str, Callable[[Row], bool]], limit:
    int, scanned_max: int
) -> None:  # fmt: skip
    versioned = versioned_tables(kind)
    where, holds = wanted
    reading = use_case(versioned)
    for version in (1, 2):
        found: list[Row] = []
        token = None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table_walk, "SCANNED_ROWS_MAX", scanned_max)
            while True:
                query = RowQuery(limit=limit, version=version, where=where, page_token=token)
                page = reading.page(versioned.dataset, query)
                assert page.rows.num_rows <= limit
                found += page.rows.to_pylist()
                token = page.next_page_token
                if token is None:
                    break
        assert comparable(found) == comparable([row for row in versioned.rows[version] if holds(row)]), where


def test_row_groups_without_matches_are_not_read(versioned_tables: Callable[[str], VersionedTable]) -> None:
    versioned = versioned_tables("unaware with deletion vectors")
    tables = Counted(versioned.table.storage, reader=versioned.table.reader)
    query = RowQuery(limit=100, version=1, where="n = 30")
    page = use_case(versioned, tables).page(versioned.dataset, query)
    assert {row["id"] for row in page.rows.to_pylist()} == {60, 61}
    assert sum(rows for _, rows in tables.read) <= 4 * len(DAYS)


def test_row_ranges_count_rows_from_the_start_of_the_group(
    versioned_tables: Callable[[str], VersionedTable],
) -> None:
    """Also where deletion vectors took rows out, in the middle of row groups and whole ones."""
    versioned = versioned_tables("unaware with deletion vectors")
    dataset, storage = versioned.table.dataset, versioned.table.storage
    tables = TableReader(storage, ParquetReader(storage), MemoryBudget(bytes_max=2**26))
    schema = dataset.schema.to_arrow()
    row_filter = RowFilter(where=parse_filter("n >= 20 AND n < 24", dataset.schema), schema=dataset.schema)
    groups: dict[str, list[Any]] = {}
    for file in versioned.files[2]:
        groups.setdefault(file.file_group, []).append(file)
    found = 0
    for files in groups.values():
        whole = tables.read_group(dataset, files, schema, 0, ROWS)
        inside = {at for at, n in enumerate(whole.column("n").to_pylist()) if 20 <= n < 24}
        ranges = [
            (first, whole.num_rows if end is None else end)
            for first, end in tables.row_ranges(files, row_filter, 0, None)
        ]
        assert inside <= {at for first, end in ranges for at in range(first, end)}
        assert sum(end - first for first, end in ranges) <= 8
        found += len(inside)
    assert found == sum(20 <= row["n"] < 24 for row in versioned.rows[2])


def test_delete_by_filter_decodes_only_possible_matches(
    versioned_tables: Callable[[str], VersionedTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    versioned = versioned_tables("unaware with deletion vectors")
    decoded: list[int] = []
    read = pq.ParquetFile.read_row_group

    def counting(self: pq.ParquetFile, i: int, **options: Any) -> pa.Table:
        decoded.append(i)
        return read(self, i, **options)

    table = versioned.table.fork()
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counting)
    outcome = table.write(
        Write(operation=Operation.DELETE, options=WriteOptions(where="n BETWEEN 30 AND 31"))
    )
    assert outcome.counts[0].deleted == sum(30 <= row["n"] <= 31 for row in versioned.rows[2])
    assert 0 < len(decoded) <= 2 * len(DAYS)
    monkeypatch.undo()
    assert comparable(table.rows()) == comparable(
        [row for row in versioned.rows[2] if not 30 <= row["n"] <= 31]
    )


@pytest.mark.parametrize("where", [None, "n >= 0"])
def test_scan_opens_a_file_a_few_times_however_many_row_groups_it_has(
    versioned_tables: Callable[[str], VersionedTable], opened: list[str], where: str | None
) -> None:
    """On S3, each time is a request."""
    versioned = versioned_tables("unaware with deletion vectors")
    dataset, storage = versioned.table.dataset, versioned.table.storage
    file = max(versioned.files[1], key=lambda each: each.row_count)
    slices = SliceReader(ParquetReader(storage), VectorReader(storage))
    assert len(slices.reader.row_group_bounds(file)) >= ROWS / len(DAYS) / 4
    opened.clear()
    choice = RowChoice(where=None if where is None else parse_filter(where, dataset.schema))
    schema = pa.schema([field.with_nullable(True) for field in dataset.schema.to_arrow()])
    rows = base_rows(slices, dataset, file, schema, choice, 0, file.row_count)
    assert sum(table.num_rows for table in rows) == file.row_count
    # For the dictionaries, for the row groups, and for both kinds of columns.
    assert len(opened) <= 5


def test_scan_of_a_file_without_matches_opens_it_once(
    versioned_tables: Callable[[str], VersionedTable], opened: list[str]
) -> None:
    versioned = versioned_tables("unaware with deletion vectors")
    dataset, storage = versioned.table.dataset, versioned.table.storage
    slices = SliceReader(ParquetReader(storage), VectorReader(storage))
    file = versioned.files[2][0]
    opened.clear()
    choice = RowChoice(where=parse_filter("n < -5", dataset.schema))
    assert list(base_rows(slices, dataset, file, dataset.schema.to_arrow(), choice, 0, file.row_count)) == []
    assert opened == [file.path]
