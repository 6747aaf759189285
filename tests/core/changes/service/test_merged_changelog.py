"""Merged changelog files: every reader of the feed sees the same as before, in every form."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pyarrow.parquet as pq
import pytest

from app.core.changes.handlers.feed_options import encoded
from app.core.changes.service import read_changes
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.service.read_corrections import CorrectionQuery, ReadCorrections
from app.features.exports.tasks import ExportFormat, ExportQuery, ExportSpec, export_parts
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.errors import CorruptFile
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.feed_verification import check_files
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.changelog.verification import FoldVerdict, plan_fold
from tests.support.merged_feed import MergedFeed
from tests.support.shares import share
from tests.support.table_feed import TableFeed
from tests.support.versioned_tables import VersionedTable, written_versioned_table
from workers.engine.read.export_handle import export

# Partitions known by file, partitions known by row, and no key.
SOME_KINDS = ("copy_on_write", "key_dynamic with deletion vectors", "unaware with deletion vectors")
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"where": "n >= 3"},
    {"partitions": ("day=2026-11-21",)},
    {"where": "n < 4", "partitions": ("*22",)},
)


@pytest.fixture(scope="module")
def versioned_tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], VersionedTable]:
    storage = LocalStorage(tmp_path_factory.mktemp("storage"))
    return cache(lambda kind: written_versioned_table(storage, kind, seed=5))


def page_of(feed: TableFeed, since: int, query: FeedQuery) -> tuple[Any, ...]:
    page = ReadChanges(catalog=feed, index=feed, reader=feed.table.reader).page(feed.dataset, since, query)
    return encoded(page, as_ndjson=True), page.events.table, page.next_since, page.pending, page.complete


def every_page(feed: TableFeed, query: FeedQuery) -> Iterator[tuple[Any, ...]]:
    since = 0
    while True:
        page = page_of(feed, since, query)
        yield page
        if page[2] == since:
            return
        since = page[2]


@share(2)
@pytest.mark.parametrize("kind", SOME_KINDS)
def test_pages_of_merged_files_are_those_of_the_files_of_the_commits(
    versioned_tables: Callable[[str], VersionedTable], kind: str
) -> None:
    table = versioned_tables(kind).table
    before, chance = TableFeed(table=table), random.Random(7)
    merged = MergedFeed(table=table)
    merged.merge_some(chance)
    assert len(merged.files()) < len(before.segments("t", "d", 0, 2**40))
    forms = [each for each in ChangeForm if table.dataset.keyed or each is not ChangeForm.UPSERT]
    for since in range(before.dataset.next_offset + 1):
        query = FeedQuery(
            limit=chance.choice((1, 2, 3, 7, 50, 1_000)),
            until=chance.choice((None, chance.randint(since, before.dataset.next_offset))),
            form=chance.choice(forms),
            **chance.choice(FILTERS),
        )
        assert page_of(merged, since, query) == page_of(before, since, query)


def test_page_ends_after_a_number_of_files_and_loses_nothing(
    versioned_tables: Callable[[str], VersionedTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the catalogue has far more segments than one query returns."""
    table = versioned_tables("copy_on_write").table
    feed, query = TableFeed(table=table), FeedQuery(limit=10_000)
    [(_, whole, *_), _] = every_page(feed, query)
    monkeypatch.setattr(read_changes, "_SEGMENTS_MAX", 3)
    assert next(every_page(feed, query))[1] == whole
    monkeypatch.setattr(read_changes, "PAGE_FILES_MAX", 2)
    opened: list[str] = []
    monkeypatch.setattr(
        ParquetReader,
        "read_slice",
        lambda self, file, *how, real=ParquetReader.read_slice, **more: (
            opened.append(file.path),
            real(self, file, *how, **more),
        )[1],
    )
    rows: list[Any] = []
    for _, events, *_ in every_page(feed, query):
        # The files of one query, as they are read together.
        assert len(set(opened)) <= 3 + 1
        opened.clear()
        rows += events.to_pylist()
    assert rows == whole.to_pylist()


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_corrections_verification_and_exports_read_the_same_from_merged_files(
    versioned_tables: Callable[[str], VersionedTable], kind: str
) -> None:
    table = versioned_tables(kind).table
    before, merged = TableFeed(table=table), MergedFeed(table=table)
    merged.merge_some(random.Random(11))
    corrections = [
        ReadCorrections(index=feed, reader=table.reader).page(
            feed.dataset, since, CorrectionQuery(first=2, limit=500)
        )
        for since in (0, 3, 11)
        for feed in (before, merged)
    ]
    assert corrections[::2] == corrections[1::2]
    slices = SliceReader(ParquetReader(table.storage), VectorReader(table.storage))
    tasks = plan_fold(
        table.dataset,
        (),
        table.files.values(),
        merged.segments("t", "d", 0, 2**40),
        {table.dataset.schema.id: table.dataset.schema},
    )
    verdict = sum((check_files(slices, task, MemoryBudget(bytes_max=2**26)) for task in tasks), FoldVerdict())
    assert (verdict.differences, verdict.changes) == (0, table.next_offset)
    for query in ExportQuery:
        for since, until in ((0, table.next_offset), (5, table.next_offset - 4)):
            assert exported(merged, query, since, until) == exported(before, query, since, until)


def exported(feed: TableFeed, query: ExportQuery, since: int, until: int) -> list[dict[str, Any]]:
    """The rows of an export, sorted where it has no order."""
    spec = ExportSpec(
        dataset=feed.table.dataset,
        query=query,
        format=ExportFormat.PARQUET,
        form=ChangeForm.TWO_EVENT,
        columns=None,
        where=None,
        partitions=None,
        target_bytes=2**30,
    )
    parts = export_parts(
        spec,
        feed.segments("t", "d", since, until),
        since=since,
        until=until,
        earliest=0,
        prefix=f"{feed.table.name}/exports/{random.randrange(2**60)}",
    )
    storage = feed.table.storage
    done = [export(part, storage, feed.table.slices, MemoryBudget(bytes_max=2**26)) for part in parts]
    rows = [
        row
        for each in done
        for file in each.files
        for row in pq.read_table(storage.root / file.path).to_pylist()
    ]
    return rows if query is ExportQuery.CHANGES else sorted(rows, key=repr)


def test_damaged_file_is_not_merged(tmp_path: Any) -> None:
    table = written_versioned_table(LocalStorage(tmp_path), "copy_on_write").table
    feed = MergedFeed(table=table)
    damaged = tmp_path / feed.files()[1].file.path
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptFile):
        feed.merge(0, 3)
    assert not list(tmp_path.glob("**/merged-*"))
