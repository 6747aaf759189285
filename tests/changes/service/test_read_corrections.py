"""What took changes back, against the feeds of tables of every kind read whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.catalog.values import Dataset
from app.changes.positions import StartingPosition
from app.changes.service import read_corrections
from app.changes.service.read_corrections import CorrectedChange, CorrectionQuery, ReadCorrections
from app.files.parquet_file import ParquetReader
from app.files.slices.slice_merge import MemoryBudget
from app.files.slices.table_reader import TableReader
from app.files.storage import LocalStorage
from app.format.dataset import ChangelogProducer
from app.format.errors import CorruptFile, InvalidRequest, OffsetAhead, OffsetExpired
from app.format.rows.changelog import Op
from app.reads.service.rows import ReadTable, RowQuery
from tests.support.past_tables import KINDS, Past, kind_of, written_past
from tests.support.past_versions import versions_of
from tests.support.table_feed import TableFeed, corrections_of

TELLING = [name for name in KINDS if kind_of(name).changelog.producer is ChangelogProducer.FULL]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    return LocalStorage(tmp_path_factory.mktemp("storage"))


@pytest.fixture(scope="module")
def pasts(storage: LocalStorage) -> Any:
    return cache(lambda kind: written_past(storage, kind))


def use_case(past: Past, earliest: int = 0) -> tuple[ReadCorrections, Dataset]:
    feed = TableFeed(table=past.table, earliest=earliest)
    return ReadCorrections(index=feed, reader=past.table.reader), feed.dataset


def walk(past: Past, first: int, end: int | None, limit: int, since: int = 0) -> list[CorrectedChange]:
    """All corrections of the changes [first, end), page by page."""
    reading, dataset = use_case(past)
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


def told(past: Past, first: int, end: int) -> list[tuple[int, int, int, int]]:
    """The same of the whole feed, read row by row."""
    return [
        (change.corrects, change.offset, change.op, change.version)
        for change in past.table.changes()
        if change.corrects is not None and first <= change.corrects < end
    ]


@pytest.mark.parametrize("kind", TELLING)
def test_corrections_of_a_range_are_those_that_the_feed_names(pasts: Any, kind: str) -> None:
    past = pasts(kind)
    head = past.table.next_offset
    assert len(told(past, 0, head)) > 5
    for first, end, limit in (
        (0, head, 1_000),
        (0, head, 3),
        (head // 3, head // 2, 2),
        (5, 6, 1),
        (head - 1, head, 9),
    ):
        found = [(each.offset, each.by, int(each.op), each.version) for each in walk(past, first, end, limit)]
        assert found == told(past, first, end)
    assert walk(past, 0, None, 1_000) == walk(past, 0, head, 7)


@pytest.mark.parametrize("kind", TELLING)
def test_a_change_is_taken_back_once_and_before_it_is_told_again(pasts: Any, kind: str) -> None:
    """Every -C and -R names the change before it that gave the key its row."""
    past = pasts(kind)
    key = past.table.dataset.record_key
    gave: dict[tuple[Any, ...], int] = {}
    for change in past.table.changes():
        if not key:
            assert (change.corrects is None) == (change.op == Op.APPEND)
            continue
        name = tuple(change.row[field] for field in key)
        if change.op in (Op.RETRACT, Op.CORRECT_FROM):
            assert change.corrects == gave.pop(name)
        else:
            gave[name] = change.offset


@pytest.mark.parametrize("kind", TELLING)
def test_files_that_hold_no_correction_of_the_range_are_not_listed(pasts: Any, kind: str) -> None:
    """The bounds that the catalogue keeps of a file are those of what it takes back, exactly."""
    past = pasts(kind)
    feed = TableFeed(table=past.table)
    for segment in feed.segments("t", "d", 0, 2**40):
        end = segment.first_offset + segment.file.row_count
        taken = [
            change.corrects
            for change in past.table.changes()
            if segment.first_offset <= change.offset < end and change.corrects is not None
        ]
        assert (segment.file.corrects_min, segment.file.corrects_max) == (
            (min(taken), max(taken)) if taken else (None, None)
        )


@pytest.mark.parametrize("kind", TELLING)
def test_rows_of_an_earlier_version_tell_what_took_them_back(pasts: Any, kind: str) -> None:
    past = pasts(kind)
    taken = {change.corrects: change for change in past.table.changes() if change.corrects is not None}
    reading = _table_reader(past)
    corrected = 0
    for version in range(past.dataset.version + 1):
        page = reading.page(
            past.dataset, RowQuery(limit=1_000, version=version, meta=True, corrected_since=True)
        )
        for row in page.rows.to_pylist():
            change = taken.get(int(row["_hw_commit_seqno"].split("-")[1]))
            expected = (None, None) if change is None else (change.offset, change.version)
            assert (row["_hw_corrected_by"], row["_hw_corrected_version"]) == expected
            assert change is None or change.version > version
            corrected += change is not None
    assert corrected > 10
    now = reading.page(past.dataset, RowQuery(limit=1_000, corrected_since=True)).rows
    assert now.column("_hw_corrected_by").null_count == now.num_rows > 0


def test_a_version_before_the_beginning_of_the_feed_does_not_tell_what_is_gone(pasts: Any) -> None:
    past = pasts("copy_on_write")
    reading = _table_reader(past)
    ends = [past.next_offset("t", "d", version) for version in range(past.dataset.version + 1)]
    cut_at = ends[len(ends) // 2]
    storage = past.table.storage
    cut = ReadTable(
        catalog=past,
        timeline=past,
        versions=versions_of(past),
        tables=TableReader(storage, past.table.reader, MemoryBudget(bytes_max=2**26)),
        corrections=ReadCorrections(
            index=TableFeed(table=past.table, earliest=cut_at), reader=past.table.reader
        ),
    )
    told = 0
    for version, end in enumerate(ends):
        query = RowQuery(limit=1_000, version=version, corrected_since=True)
        whole = reading.page(past.dataset, query).rows
        if end >= cut_at or not whole.num_rows:
            assert cut.page(past.dataset, query).rows == whole
            told += whole.num_rows
            continue
        with pytest.raises(OffsetExpired) as error:
            cut.page(past.dataset, query)
        assert error.value.facts == {"since": end, "earliest": cut_at}
    assert told > 0


def test_a_request_looks_at_so_much_of_the_feed_and_no_more(
    pasts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = pasts("copy_on_write")
    whole = walk(past, 0, None, 1_000)
    monkeypatch.setattr(read_corrections, "SCANNED_ROWS_MAX", 1)
    monkeypatch.setattr(read_corrections, "_FILES_MAX", 2)
    assert walk(past, 0, None, 1_000) == whole
    reading, dataset = use_case(past)
    with pytest.raises(InvalidRequest, match="fewer rows"):
        reading.of_rows(dataset, [each.offset for each in whole], 0)


def test_a_walk_continues_where_it_stopped_and_ends_before_until(pasts: Any) -> None:
    past = pasts("copy_on_write")
    reading, dataset = use_case(past)
    whole = walk(past, 0, None, 1_000)
    middle = whole[len(whole) // 2].by
    assert walk(past, 0, None, 3, since=middle) == [each for each in whole if each.by >= middle]
    before = reading.page(dataset, 0, CorrectionQuery(limit=1_000, until=middle))
    assert before.corrections == [each for each in whole if each.by < middle]
    assert (before.next_since, before.pending) == (middle, dataset.next_offset - middle)
    at_head = reading.page(dataset, StartingPosition.NOW, CorrectionQuery(limit=1, until=3))
    assert (at_head.corrections, at_head.next_since) == ([], dataset.next_offset)


def test_a_page_of_a_feed_that_was_cut_meanwhile_is_refused(pasts: Any) -> None:
    past = pasts("copy_on_write")

    class Cut(TableFeed):
        def correcting(self, *place: Any, **bounds: Any) -> Any:
            object.__setattr__(self, "earliest", 4)
            return super().correcting(*place, **bounds)

    feed = Cut(table=past.table)
    with pytest.raises(OffsetExpired):
        ReadCorrections(index=feed, reader=past.table.reader).page(feed.dataset, 0, CorrectionQuery(limit=9))


def test_what_cannot_be_told_is_refused(pasts: Any) -> None:
    past = pasts("copy_on_write")
    reading, dataset = use_case(past, earliest=4)
    with pytest.raises(OffsetExpired):
        reading.page(dataset, 3, CorrectionQuery(limit=1))
    with pytest.raises(OffsetAhead):
        reading.page(dataset, dataset.next_offset + 1, CorrectionQuery(limit=1))
    with pytest.raises(InvalidRequest, match="last_offset"):
        reading.page(dataset, 4, CorrectionQuery(limit=1, first=6, last=5))
    silent = pasts("merge_on_read none")
    reading, dataset = use_case(silent)
    with pytest.raises(InvalidRequest, match="producer is none"):
        reading.page(dataset, 0, CorrectionQuery(limit=1))
    with pytest.raises(InvalidRequest, match="producer is none"):
        _table_reader(silent).page(silent.dataset, RowQuery(limit=1, corrected_since=True))


def _table_reader(past: Past) -> ReadTable:
    storage = past.table.storage
    tables = TableReader(storage, past.table.reader, MemoryBudget(bytes_max=2**26))
    return ReadTable(
        catalog=past,
        timeline=past,
        versions=versions_of(past),
        tables=tables,
        corrections=corrections_of(past),
    )


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    past = written_past(LocalStorage(tmp_path), "copy_on_write")
    reading, dataset = use_case(past)
    for _, _, file in past.table.feed:
        (tmp_path / file.path).write_bytes(b"")
    fresh = ReadCorrections(index=reading.index, reader=ParquetReader(LocalStorage(tmp_path)))
    with pytest.raises(CorruptFile):
        fresh.page(dataset, 0, CorrectionQuery(limit=10))
