"""What took changes back, against the feeds of tables of every kind read whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.core.catalog.values import Dataset
from app.core.changes.errors import OffsetAhead
from app.core.changes.positions import StartingPosition
from app.core.changes.service import read_corrections
from app.core.changes.service.read_corrections import CorrectedChange, CorrectionQuery, ReadCorrections
from app.core.timeline.errors import OffsetExpired
from app.features.reads.service.later_corrections import LaterCorrections
from app.features.reads.service.rows import ReadTable, RowQuery
from app.infra.files.errors import CorruptFile
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.slices.table_walk import TableWalk
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.rows.changelog import Op
from tests.support.retained_versions import versions_of
from tests.support.sealed_places import SEALED_PLACES
from tests.support.shares import share
from tests.support.table_feed import TableFeed, later_corrections_of
from tests.support.versioned_tables import KINDS, VersionedTable, kind_of, written_versioned_table

FULL_FEED_KINDS = [name for name in KINDS if kind_of(name).changelog.producer is ChangelogProducer.FULL]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    return LocalStorage(tmp_path_factory.mktemp("storage"))


@pytest.fixture(scope="module")
def versioned_tables(storage: LocalStorage) -> Any:
    return cache(lambda kind: written_versioned_table(storage, kind))


def use_case(versioned: VersionedTable, earliest: int = 0) -> tuple[ReadCorrections, Dataset]:
    feed = TableFeed(table=versioned.table, earliest=earliest)
    return ReadCorrections(index=feed, reader=versioned.table.reader), feed.dataset


def walk(
    versioned: VersionedTable, first: int, end: int | None, limit: int, since: int = 0
) -> list[CorrectedChange]:
    """All corrections of the changes [first, end), page by page."""
    reading, dataset = use_case(versioned)
    query = CorrectionQuery(first=first, last=None if end is None else end - 1, limit=limit)
    found: list[CorrectedChange] = []
    while True:
        page = reading.page(dataset, since, query)
        assert len(page.corrections) <= limit
        assert all(since <= each.by < page.next_since for each in page.corrections)
        assert page.pending == dataset.next_offset - page.next_since
        found += page.corrections
        if not page.pending:
            return found
        since = page.next_since


def emitted_corrections(versioned: VersionedTable, first: int, end: int) -> list[tuple[int, int, int, int]]:
    """The same of the whole feed, read row by row."""
    return [
        (change.corrects, change.offset, change.op, change.version)
        for change in versioned.table.changes()
        if change.corrects is not None and first <= change.corrects < end
    ]


@share(3)
@pytest.mark.parametrize("kind", FULL_FEED_KINDS)
def test_corrections_of_a_range_are_those_named_by_the_feed(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    head = versioned.table.next_offset
    assert len(emitted_corrections(versioned, 0, head)) > 5
    for first, end, limit in (
        (0, head, 1_000),
        (0, head, 3),
        (head // 3, head // 2, 2),
        (5, 6, 1),
        (head - 1, head, 9),
    ):
        found = [
            (each.offset, each.by, int(each.op), each.version) for each in walk(versioned, first, end, limit)
        ]
        assert found == emitted_corrections(versioned, first, end)
    assert walk(versioned, 0, None, 1_000) == walk(versioned, 0, head, 7)


@share(3)
@pytest.mark.parametrize("kind", FULL_FEED_KINDS)
def test_change_is_corrected_once_and_before_its_key_is_emitted_again(
    versioned_tables: Any, kind: str
) -> None:
    """Every -C and -R names the change before it that gave the key its row."""
    versioned = versioned_tables(kind)
    key = versioned.table.dataset.record_key
    appended_at: dict[tuple[Any, ...], int] = {}
    for change in versioned.table.changes():
        if not key:
            assert (change.corrects is None) == (change.op == Op.APPEND)
            continue
        name = tuple(change.row[field] for field in key)
        if change.op in (Op.RETRACT, Op.CORRECT_FROM):
            assert change.corrects == appended_at.pop(name)
        else:
            appended_at[name] = change.offset


@share(3)
@pytest.mark.parametrize("kind", FULL_FEED_KINDS)
def test_files_without_corrections_of_the_range_are_not_listed(versioned_tables: Any, kind: str) -> None:
    """The bounds that the catalogue keeps of a file are those of what it takes back, exactly."""
    versioned = versioned_tables(kind)
    feed = TableFeed(table=versioned.table)
    for segment in feed.segments("t", "d", 0, 2**40):
        end = segment.first_offset + segment.file.row_count
        taken = [
            change.corrects
            for change in versioned.table.changes()
            if segment.first_offset <= change.offset < end and change.corrects is not None
        ]
        assert (segment.file.corrects_min, segment.file.corrects_max) == (
            (min(taken), max(taken)) if taken else (None, None)
        )


@share(3)
@pytest.mark.parametrize("kind", FULL_FEED_KINDS)
def test_rows_of_an_earlier_version_name_their_corrections(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    taken = {change.corrects: change for change in versioned.table.changes() if change.corrects is not None}
    reading = _table_reader(versioned)
    corrected = 0
    for version in range(versioned.dataset.version + 1):
        page = reading.page(
            versioned.dataset, RowQuery(limit=1_000, version=version, meta=True, corrected_since=True)
        )
        for row in page.rows.to_pylist():
            change = taken.get(int(row["_hw_commit_seqno"].split("-")[1]))
            expected = (None, None) if change is None else (change.offset, change.version)
            assert (row["_hw_corrected_by"], row["_hw_corrected_version"]) == expected
            assert change is None or change.version > version
            corrected += change is not None
    assert corrected > 10
    now = reading.page(versioned.dataset, RowQuery(limit=1_000, corrected_since=True)).rows
    assert now.column("_hw_corrected_by").null_count == now.num_rows > 0


@share(3)
@pytest.mark.parametrize("kind", FULL_FEED_KINDS)
def test_pages_of_any_size_state_whether_their_rows_were_corrected(
    versioned_tables: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_corrections, "CHECKED_FILES_MAX", 1_000)
    versioned = versioned_tables(kind)
    reading = _table_reader(versioned)
    found: list[bool | None] = []
    for version in range(versioned.dataset.version):
        token: str | None = ""
        while token is not None:
            query = {"limit": 3, "version": version, "page_token": token or None}
            page = reading.page(versioned.dataset, RowQuery(**query))
            marked = reading.page(versioned.dataset, RowQuery(**query, corrected_since=True))
            marks = marked.rows.column("_hw_corrected_by")
            assert page.corrected is marked.corrected is (marks.null_count < len(marks))
            assert page.rows == marked.rows.drop_columns(marked.rows.column_names[-2:])
            found.append(page.corrected)
            token = page.next_page_token
    assert found.count(True) > 3
    assert found.count(False) > 3


def test_corrections_of_a_version_before_the_earliest_offset_are_refused(versioned_tables: Any) -> None:
    versioned = versioned_tables("copy_on_write")
    reading = _table_reader(versioned)
    ends = [versioned.next_offset("t", "d", version) for version in range(versioned.dataset.version + 1)]
    cut_at = ends[len(ends) // 2]
    storage = versioned.table.storage
    cut = ReadTable(
        places=SEALED_PLACES,
        catalog=versioned,
        timeline=versioned,
        versions=versions_of(versioned),
        walk=TableWalk(groups=TableReader(storage, versioned.table.reader, MemoryBudget(bytes_max=2**26))),
        later=LaterCorrections(
            timeline=versioned,
            corrections=ReadCorrections(
                index=TableFeed(table=versioned.table, earliest=cut_at), reader=versioned.table.reader
            ),
        ),
    )
    emitted_corrections = 0
    for version, end in enumerate(ends):
        query = RowQuery(limit=1_000, version=version, corrected_since=True)
        whole = reading.page(versioned.dataset, query).rows
        if end >= cut_at or not whole.num_rows:
            assert cut.page(versioned.dataset, query).rows == whole
            emitted_corrections += whole.num_rows
            continue
        with pytest.raises(OffsetExpired) as error:
            cut.page(versioned.dataset, query)
        assert cut.page(versioned.dataset, RowQuery(limit=1_000, version=version)).corrected is None
        assert error.value.facts == {"since": end, "earliest": cut_at}
    assert emitted_corrections > 0


def test_scanned_rows_of_a_request_are_bounded(
    versioned_tables: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    versioned = versioned_tables("copy_on_write")
    whole = walk(versioned, 0, None, 1_000)
    monkeypatch.setattr(read_corrections, "SCANNED_ROWS_MAX", 1)
    monkeypatch.setattr(read_corrections, "_FILES_MAX", 2)
    assert walk(versioned, 0, None, 1_000) == whole
    reading, dataset = use_case(versioned)
    with pytest.raises(InvalidRequest, match="fewer rows"):
        reading.of_rows(dataset, [each.offset for each in whole], 0)


def test_corrections_continue_at_their_position_and_end_before_until(versioned_tables: Any) -> None:
    versioned = versioned_tables("copy_on_write")
    reading, dataset = use_case(versioned)
    whole = walk(versioned, 0, None, 1_000)
    middle = whole[len(whole) // 2].by
    assert walk(versioned, 0, None, 3, since=middle) == [each for each in whole if each.by >= middle]
    before = reading.page(dataset, 0, CorrectionQuery(limit=1_000, until=middle))
    assert before.corrections == [each for each in whole if each.by < middle]
    assert (before.next_since, before.pending) == (middle, dataset.next_offset - middle)
    at_head = reading.page(dataset, StartingPosition.NOW, CorrectionQuery(limit=1, until=3))
    assert (at_head.corrections, at_head.next_since) == ([], dataset.next_offset)


def test_a_page_of_a_feed_that_was_cut_meanwhile_is_refused(versioned_tables: Any) -> None:
    versioned = versioned_tables("copy_on_write")

    class Cut(TableFeed):
        def correcting(self, *place: Any, **bounds: Any) -> Any:
            object.__setattr__(self, "earliest", 4)
            return super().correcting(*place, **bounds)

    feed = Cut(table=versioned.table)
    with pytest.raises(OffsetExpired):
        ReadCorrections(index=feed, reader=versioned.table.reader).page(
            feed.dataset, 0, CorrectionQuery(limit=9)
        )


def test_unanswerable_correction_requests_are_refused(versioned_tables: Any) -> None:
    versioned = versioned_tables("copy_on_write")
    reading, dataset = use_case(versioned, earliest=4)
    with pytest.raises(OffsetExpired):
        reading.page(dataset, 3, CorrectionQuery(limit=1))
    with pytest.raises(OffsetAhead):
        reading.page(dataset, dataset.next_offset + 1, CorrectionQuery(limit=1))
    with pytest.raises(InvalidRequest, match="last_offset"):
        reading.page(dataset, 4, CorrectionQuery(limit=1, first=6, last=5))
    silent = versioned_tables("merge_on_read none")
    reading, dataset = use_case(silent)
    with pytest.raises(InvalidRequest, match="producer is none"):
        reading.page(dataset, 0, CorrectionQuery(limit=1))
    with pytest.raises(InvalidRequest, match="producer is none"):
        _table_reader(silent).page(silent.dataset, RowQuery(limit=1, corrected_since=True))


def _table_reader(versioned: VersionedTable) -> ReadTable:
    storage = versioned.table.storage
    tables = TableReader(storage, versioned.table.reader, MemoryBudget(bytes_max=2**26))
    return ReadTable(
        places=SEALED_PLACES,
        catalog=versioned,
        timeline=versioned,
        versions=versions_of(versioned),
        walk=TableWalk(groups=tables),
        later=later_corrections_of(versioned),
    )


def test_damaged_file_raises_corrupt_file(tmp_path: Path) -> None:
    versioned = written_versioned_table(LocalStorage(tmp_path), "copy_on_write")
    reading, dataset = use_case(versioned)
    for _, _, file in versioned.table.feed:
        (tmp_path / file.path).write_bytes(b"")
    fresh = ReadCorrections(index=reading.index, reader=ParquetReader(LocalStorage(tmp_path)))
    with pytest.raises(CorruptFile):
        fresh.page(dataset, 0, CorrectionQuery(limit=10))
