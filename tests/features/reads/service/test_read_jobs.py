"""Read jobs of tables of every kind, against a plain model of their rows, and the fold of their feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from app.core.jobs.kinds.read import Disposition, ReadQuery
from app.core.timeline.repository.kept_versions import OF_JOB
from app.features.reads import tasks as read_job
from app.features.reads.jobs import CreateRead
from app.features.reads.service import run as run_reads
from app.infra.files.slices import sorted_runs
from app.infra.files.storage import LocalStorage
from app.kernel.commit.table_rows import MergedRows
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateChangelog, CreateField
from app.kernel.format.definition.schema_change import AddField, DropField, RenameField
from app.kernel.format.errors import InvalidDataset, InvalidRequest
from app.kernel.format.file_format import FileFormat
from app.kernel.format.operation import Operation
from app.kernel.sql.read_order import ReadOrder
from tests.support.lake_table import COMPACT, Write
from tests.support.read_runs import Reads
from tests.support.shares import share
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    committed_at,
    comparable,
    kind_of,
    new_versioned_table,
    written_versioned_table,
)

Row = dict[str, Any]
ReadsOf = Callable[..., Reads]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
INCREMENTAL = ReadQuery.INCREMENTAL
FULL_FEED_KINDS = [name for name, parts in KINDS.items() if parts.get("changelog") is None]
BY_N = (ReadOrder(column="n", descending=True), ReadOrder(column="id"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def reads(root: Path) -> ReadsOf:
    """The read jobs of a table of each kind, which is written once for the module."""
    storage = LocalStorage(root)
    versioned = cache(lambda kind: written_versioned_table(storage, kind))
    return lambda kind, **more: Reads(versioned=versioned(kind), storage=storage, root=root, **more)


def changed_between(reader: Reads, begin: int, end: int) -> list[Row]:
    """The rows of the keys that differ between two versions, and are there at the second."""
    key = reader.versioned.table.dataset.record_key
    before, after = (
        {tuple(row[name] for name in key): row for row in reader.versioned.rows[version]}
        for version in (begin, end)
    )
    return [row for place, row in after.items() if before.get(place) != row]


@share(3)
@EVERY_KIND
def test_every_version_is_read_in_every_format(reads: ReadsOf, kind: str) -> None:
    reader = reads(kind)
    formats = list(FileFormat)
    for version, rows in enumerate(reader.versioned.rows):
        found = reader.read(version=version, format=formats[version % len(formats)])
        assert comparable(found.rows) == comparable(rows)
        assert (found.result.version, found.result.rows) == (version, len(rows))
        # The lease of the run was released; that of the job counts until the job has ended.
        assert [reader for reader in reader.kept.readers if not reader.startswith(OF_JOB)] == []


@EVERY_KIND
def test_read_applies_columns_and_filter(reads: ReadsOf, kind: str) -> None:
    reader = reads(kind)
    version = len(reader.versioned.rows) - 2
    found = reader.read(
        version=version,
        columns=("note", "id"),
        where="n < 60 AND day <> '2026-11-20'",
        partitions=("day=2026-11-2[12]",),
    )
    expected = [
        {"note": row["note"], "id": row["id"]}
        for row in reader.versioned.rows[version]
        if row["n"] < 60 and row["day"] != DAYS[0]
    ]
    assert comparable(found.rows) == comparable(expected)
    assert all(list(row) == ["note", "id"] for row in found.rows)


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read input"])
def test_constant_filter_selects_all_rows_or_none(reads: ReadsOf, kind: str) -> None:
    reader = reads(kind)
    assert comparable(reader.read(where="TRUE").rows) == comparable(reader.versioned.rows[-1])
    assert reader.read(where="FALSE").rows == reader.read(where="NULL").rows == []


def test_partition_globs_select_partitions(reads: ReadsOf) -> None:
    reader = reads("merge_on_read input")
    found = reader.read(partitions=("day=*-20", "day=2026-11-21"))
    wanted = [row for row in reader.versioned.rows[-1] if row["day"] in DAYS[:2]]
    assert comparable(found.rows) == comparable(wanted)
    changed = reader.read(INCREMENTAL, begin=0, partitions=("day=*-20", "day=2026-11-21"))
    assert comparable(changed.rows) == comparable(wanted)


def test_incremental_read_skips_files_outside_its_partitions(reads: ReadsOf) -> None:
    reader = reads("copy_on_write")
    reader.read(INCREMENTAL, begin=0, partitions=("day=2026-11-21",))
    with pytest.raises(InvalidRequest, match="partitions"):
        reader.read(INCREMENTAL, begin=0, partitions=("hour=*",))


@pytest.mark.parametrize("kind", ["merge_on_read input", "dynamic with logs", "key_dynamic with logs"])
def test_read_optimized_query_reads_only_base_files(reads: ReadsOf, kind: str) -> None:
    reader = reads(kind)
    compacted = len(reader.versioned.rows) - 1
    assert comparable(reader.read(ReadQuery.READ_OPTIMIZED).rows) == comparable(
        reader.versioned.rows[compacted]
    )
    # Before the last compaction, it is what the one in the middle has left.
    earlier = reader.read(ReadQuery.READ_OPTIMIZED, version=compacted - 1).rows
    assert comparable(earlier) != comparable(reader.versioned.rows[compacted - 1])
    assert not any(isinstance(source, MergedRows) for part in reader.engine.tasks for source in part.sources)


@pytest.mark.parametrize(
    "kind", ["copy_on_write", "merge_on_read input", "key_dynamic with deletion vectors"]
)
@pytest.mark.parametrize("limit", [1, 5, 10, 1_000])
def test_limit_is_exact(reads: ReadsOf, monkeypatch: pytest.MonkeyPatch, kind: str, limit: int) -> None:
    monkeypatch.setattr(read_job, "PART_BYTES", 1)
    monkeypatch.setattr(run_reads, "_WAVE", 2)
    reader = reads(kind)
    for more in ({}, {"where": "n < 70"}):
        found = reader.read(limit=limit, **more)
        every = reader.read(**more).rows
        assert len(found.rows) == min(limit, len(every)) == found.result.rows
        assert all(row in every for row in found.rows)


def test_limit_bounds_the_files_that_are_read(reads: ReadsOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_job, "PART_BYTES", 1)
    reader = reads("copy_on_write")
    reader.read(limit=1)
    assert len(reader.engine.tasks) == 1


@pytest.mark.parametrize(
    ("kind", "memory_bytes"),
    [
        ("copy_on_write", 2**26),
        ("copy_on_write", 1_000),
        ("merge_on_read input", 1_000),
        ("merge_on_read full", 1_000),
        ("key_dynamic with logs", 1_000),
        ("unaware", 1_000),
    ],
)
def test_ordered_rows_are_equal_under_any_memory_bound(
    reads: ReadsOf, monkeypatch: pytest.MonkeyPatch, kind: str, memory_bytes: int
) -> None:
    monkeypatch.setattr(read_job, "PART_BYTES", 2_000)
    monkeypatch.setattr(run_reads, "_RANGE_BYTES", 300)
    monkeypatch.setattr(sorted_runs, "_BATCH_BYTES", 100)
    reader = reads(kind, memory_bytes=memory_bytes)
    rows = reader.versioned.rows[-1]
    found = reader.read(order_by=BY_N, columns=("id", "n", "day"), format=FileFormat.CSV).rows
    places = [(-row["n"], row["id"]) for row in found]
    assert places == sorted(places)
    assert comparable(found) == comparable([{name: row[name] for name in ("id", "n", "day")} for row in rows])
    first = reader.read(order_by=BY_N, columns=("id",), limit=7)
    expected = sorted((-row["n"], row["id"]) for row in rows)[:7]
    assert [row["id"] for row in first.rows] == [number for _, number in expected]
    assert [list(row) for row in first.rows] == [["id"]] * len(expected)


def test_result_files_of_ordered_rows_are_in_order(
    reads: ReadsOf, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setattr(read_job, "PART_BYTES", 1)
    monkeypatch.setattr(run_reads, "_RANGE_BYTES", 300)
    monkeypatch.setattr(sorted_runs, "_BATCH_BYTES", 100)
    reader = reads("copy_on_write")
    found = reader.read(order_by=BY_N)
    assert len(found.files) > 2
    assert [file.name for file in found.files] == [
        f"part-{number:05d}.ndjson" for number in range(1, len(found.files) + 1)
    ]
    joined = b"".join((root / file.path).read_bytes() for file in found.files)
    assert joined == found.content
    left = {path.name for path in (root / found.files[0].path).parent.iterdir()}
    assert left == {Path(file.path).name for file in found.files}, "runs are gone"


@pytest.mark.parametrize("format_", FileFormat)
def test_result_files_join_to_one_document(
    reads: ReadsOf, monkeypatch: pytest.MonkeyPatch, format_: FileFormat
) -> None:
    monkeypatch.setattr(read_job, "PART_BYTES", 1)
    reader = reads("copy_on_write")
    found = reader.read(format=format_)
    assert len(found.files) > 2
    if format_ is FileFormat.PARQUET:
        assert not found.result.inline
        return
    assert comparable(found.rows) == comparable(reader.versioned.rows[-1])


@pytest.mark.parametrize("format_", FileFormat)
def test_result_without_rows_is_a_complete_document(reads: ReadsOf, format_: FileFormat) -> None:
    found = reads("copy_on_write").read(where="n > 1000", format=format_)
    assert found.result.inline
    assert found.files == []
    assert found.content or format_ is FileFormat.NDJSON
    assert found.rows == []


def test_large_result_is_returned_as_files(reads: ReadsOf) -> None:
    found = reads("copy_on_write", inline_bytes_max=10).read()
    assert not found.result.inline
    assert found.result.rows == sum(file.row_count for file in found.files) > 0
    assert not reads("copy_on_write").read(disposition=Disposition.FILES).result.inline


# What changed


@pytest.mark.parametrize("kind", [name for name in FULL_FEED_KINDS if "unaware" not in name])
def test_begin_is_exclusive_and_end_inclusive(reads: ReadsOf, kind: str) -> None:
    reader = reads(kind)
    last = len(reader.versioned.rows) - 1
    for begin, end in [*pairwise(range(0, last + 1, 2)), (0, last), (2, last), (last, last)]:
        found = reader.read(INCREMENTAL, begin=begin, end=end)
        assert (found.result.begin, found.result.version) == (begin, end)
        there = {repr(sorted(row.items())) for row in reader.versioned.rows[end]}
        returned = {repr(sorted(row.items())) for row in found.rows}
        # A row may have changed and changed back, so more may be reported than differ; never one that is not there.
        assert {repr(sorted(row.items())) for row in changed_between(reader, begin, end)} <= returned <= there
    assert reader.read(INCREMENTAL, begin=last, end=last).rows == []


@pytest.mark.parametrize("kind", ["unaware", "unaware with deletion vectors"])
def test_keyless_incremental_read_returns_appended_rows_not_retracted(reads: ReadsOf, kind: str) -> None:
    reader = reads(kind)
    assert comparable(reader.read(INCREMENTAL, begin=0).rows) == comparable(reader.versioned.rows[-1])
    assert comparable(reader.read(INCREMENTAL, begin=0, end=3).rows) == comparable(reader.versioned.rows[3])


def _kinds_and_producers() -> Iterator[tuple[str, ChangelogProducer]]:
    """The kinds that state no producer, each with those that it may have."""
    for kind in (name for name, parts in KINDS.items() if "changelog" not in parts):
        for producer in (ChangelogProducer.FULL, ChangelogProducer.INPUT, ChangelogProducer.DEFERRED):
            with suppress(InvalidDataset):
                kind_of(kind, changelog=CreateChangelog(producer=producer))
                yield kind, producer


@share(3)
@pytest.mark.parametrize(("kind", "producer"), list(_kinds_and_producers()))
def test_incremental_rows_of_every_producer_are_those_of_the_table(
    root: Path, kind: str, producer: ChangelogProducer
) -> None:
    """Rows as the table has them at the end, whose values a commit of the range has set: not rows as they were sent."""
    storage, changelog = LocalStorage(root), CreateChangelog(producer=producer)
    versioned = written_versioned_table(storage, kind, seed=3, changelog=changelog)
    reader = Reads(versioned=versioned, storage=storage, root=root)
    last = len(versioned.rows) - 1
    known = row_versions(versioned)
    for begin, end in [*pairwise(range(0, last + 1, 2)), (0, last), (2, last), (last - 1, last)]:
        expected = [row for row, version in known[end] if version > begin]
        assert comparable(reader.read(INCREMENTAL, begin=begin, end=end).rows) == comparable(expected), (
            begin,
            end,
        )
        chosen = [row for row in expected if row["n"] < 60 and row["day"] != DAYS[0]]
        found = reader.read(INCREMENTAL, begin=begin, end=end, where=f"n < 60 AND day <> '{DAYS[0]}'")
        assert comparable(found.rows) == comparable(chosen)


def row_versions(versioned: VersionedTable) -> list[list[tuple[Row, int]]]:
    """By version, the rows with the version that set their values."""
    key = versioned.table.dataset.record_key
    found: list[list[tuple[Row, int]]] = [[]]
    for version, rows in enumerate(versioned.rows[1:], 1):
        left = list(found[-1])
        known = []
        for row in rows:
            same = [each for each in left if each[0] == row]
            if same:
                left.remove(same[0])
            known.append(same[0] if same else (row, version))
        assert not key or len({tuple(row[name] for name in key) for row in rows}) == len(rows)
        found.append(known)
    return found


def test_times_bound_an_incremental_read(reads: ReadsOf) -> None:
    reader = reads("copy_on_write")
    found = reader.read(INCREMENTAL, begin_time=committed_at(2), end_time=committed_at(4))
    assert (found.result.begin, found.result.version) == (2, 4)
    assert found.rows == reader.read(INCREMENTAL, begin=2, end=4).rows


def test_filters_are_pushed_down_to_files(reads: ReadsOf) -> None:
    """A filter on what changed selects among the rows as they are, and files of other partitions are not read."""
    reader = reads("merge_on_read full")
    read: list[str] = []
    inner = reader.engine.resources.slices.reader
    opened = inner.opened
    inner.opened = lambda file: read.append(file.path) or opened(file)  # type: ignore[method-assign, func-returns-value]
    found = reader.read(INCREMENTAL, begin=0, where="day = '2026-11-21' AND n < 50")
    inner.opened = opened  # type: ignore[method-assign]
    wanted = [row for row in reader.versioned.rows[-1] if row["day"] == DAYS[1] and row["n"] < 50]
    assert comparable(found.rows) == comparable(wanted)
    assert read
    assert all("day=2026-11-21" in path for path in read)


def test_columns_added_later_are_null_in_older_rows(root: Path) -> None:
    storage = LocalStorage(root)
    versioned = new_versioned_table(storage, kind_of("copy_on_write"))
    old = {"id": 1, "day": DAYS[0], "n": 1, "note": None}
    versioned.write(Write(operation=Operation.UPSERT, rows=[old]), [old])
    versioned.table.dataset = evolve(
        versioned.table.dataset, [AddField(field=CreateField(name="late", type="string"))]
    )
    new = {**old, "id": 2, "late": "x"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[new]), [{**old, "late": None}, new])
    reader = Reads(versioned=versioned, storage=storage, root=root)
    assert comparable(reader.read(INCREMENTAL, begin=0).rows) == comparable([{**old, "late": None}, new])
    assert reader.read(INCREMENTAL, begin=0, where="late IS NULL").rows == [{**old, "late": None}]
    # A look back shows the columns that there were; what changed then is delivered under the latest.
    assert reader.read(version=1).rows == [old]
    assert reader.read(INCREMENTAL, begin=0, end=1).rows == [{**old, "late": None}]


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read full", "merge_on_read input", "unaware"])
def test_changed_rows_are_read_across_a_dropped_and_a_renamed_column(root: Path, kind: str) -> None:
    storage = LocalStorage(root)
    versioned = new_versioned_table(storage, kind_of(kind))
    operation = Operation.UPSERT if versioned.table.dataset.keyed else Operation.INSERT
    rows = [{"id": at, "day": DAYS[0], "n": at, "note": "x"} for at in range(4)]
    versioned.write(Write(operation=operation, rows=rows), rows)
    changes = [DropField(name="note"), RenameField(name="n", to="number")]
    versioned.table.dataset = evolve(versioned.table.dataset, changes)
    late = {"id": 9, "day": DAYS[0], "number": 9}
    versioned.write(Write(operation=operation, rows=[late]), [late])
    # Another column may have the name of a dropped one.
    field = CreateField(name="note", type="int32")
    versioned.table.dataset = evolve(versioned.table.dataset, [AddField(field=field)])
    last = {**late, "id": 10, "note": 5}
    versioned.write(Write(operation=operation, rows=[last]), [last])
    reader = Reads(versioned=versioned, storage=storage, root=root)
    old = [{"id": at, "day": DAYS[0], "number": at, "note": None} for at in range(4)]
    every = [*old, {**late, "note": None}, last]
    assert comparable(reader.read(INCREMENTAL, begin=0).rows) == comparable(every)
    assert comparable(reader.read(INCREMENTAL, begin=1).rows) == comparable(every[4:])
    chosen = reader.read(INCREMENTAL, begin=0, where="number > 2 AND note IS NULL", columns=("number",)).rows
    assert comparable(chosen) == comparable([{"number": 3}, {"number": 9}])


def test_column_names_are_never_interpreted_as_sql(root: Path) -> None:
    """Columns are called what would be SQL, or a path, to an engine that read their names."""
    names = ['n"; DROP TABLE jobs; --', "`n`", ".n", "a.b"]
    storage = LocalStorage(root)
    versioned = new_versioned_table(storage, kind_of("copy_on_write"))
    fields = [AddField(field=CreateField(name=name, type="int32")) for name in names]
    versioned.table.dataset = evolve(versioned.table.dataset, fields)
    rows = [{"id": at, "day": DAYS[0], "n": 1, "note": None, **dict.fromkeys(names, -at)} for at in range(5)]
    versioned.write(Write(operation=Operation.UPSERT, rows=rows), rows)
    reader = Reads(versioned=versioned, storage=storage, root=root)
    for name in names:
        found = reader.read(columns=(name,), order_by=(ReadOrder(column=name),)).rows
        assert found == [{name: at} for at in range(-4, 1)]


def test_compaction_does_not_change_a_running_read(reads: ReadsOf) -> None:
    reader = reads("merge_on_read input")
    job = reader.start(
        CreateRead(query=ReadQuery.SNAPSHOT, format=FileFormat.NDJSON, disposition=Disposition.INLINE)
    )
    before = reader.versioned.rows[-1]
    more = {"id": 99, "day": DAYS[0], "n": 0, "note": None}
    reader.versioned.write(Write(operation=Operation.UPSERT, rows=[more]), [*before, more])
    reader.versioned.write(COMPACT, [*before, more])
    assert comparable(reader.run(job).rows) == comparable(before)
