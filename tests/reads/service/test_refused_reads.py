"""Read jobs that are refused, when they are asked for or when they run: each with the member at fault."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.files.storage import LocalStorage
from app.format.dataset import ChangelogProducer
from app.format.errors import (
    HeadwaterError,
    InvalidFilter,
    InvalidRequest,
    NoCommits,
    NoFeed,
    OffsetExpired,
    VersionExpired,
)
from app.format.file_format import FileFormat
from app.format.rows.read_order import ReadOrder
from app.jobs.tasks import Disposition, ReadQuery
from app.reads.jobs import CreateRead
from tests.support.past_tables import committed_at, kind_of, new_past, written_past
from tests.support.past_versions import KeptVersions
from tests.support.read_runs import Reads

Row = dict[str, Any]
ReadsOf = Callable[..., Reads]
INCREMENTAL = ReadQuery.INCREMENTAL


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def reads(root: Path) -> ReadsOf:
    """The read jobs of a table of each kind, which is written once for the module."""
    storage = LocalStorage(root)
    past = cache(lambda kind: written_past(storage, kind))
    return lambda kind, **more: Reads(past=past(kind), storage=storage, root=root, **more)


def refused(reader: Reads, query: ReadQuery = ReadQuery.SNAPSHOT, **asked: Any) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as error:
        reader.start(CreateRead(query=query, format=FileFormat.JSON, disposition=Disposition.INLINE, **asked))
    return error.value


def pointer(error: HeadwaterError) -> str:
    assert isinstance(error, InvalidRequest)
    return str(error.facts["errors"][0]["pointer"])


def test_an_incremental_query_without_a_begin_is_refused(reads: ReadsOf) -> None:
    error = refused(reads("copy_on_write"), INCREMENTAL, end=2)
    assert pointer(error) == "/begin"
    assert "needs begin" in error.detail


def test_an_incremental_query_of_an_empty_timeline_is_refused(root: Path) -> None:
    past = new_past(LocalStorage(root), kind_of("copy_on_write"))
    reader = Reads(past=past, storage=LocalStorage(root), root=root)
    assert isinstance(refused(reader, INCREMENTAL, begin=0), NoCommits)
    assert reader.read().rows == []


def test_an_incremental_query_that_ends_before_it_begins_is_refused(reads: ReadsOf) -> None:
    error = refused(reads("copy_on_write"), INCREMENTAL, begin=3, end=2)
    assert pointer(error) == "/begin"
    assert "after its end" in error.detail


@pytest.mark.parametrize("member", ["begin", "end"])
def test_an_incremental_query_beyond_the_head_is_refused(reads: ReadsOf, member: str) -> None:
    reader = reads("copy_on_write")
    error = refused(reader, INCREMENTAL, **{"begin": 0, member: 99})
    assert pointer(error) == f"/{member}"
    assert error.facts["head"] == reader.past.dataset.version


def test_an_incremental_query_of_changes_that_are_not_kept_is_refused(reads: ReadsOf) -> None:
    cut = reads("copy_on_write")
    cut.earliest = cut.past.next_offset("t", "d", 3)
    assert isinstance(refused(cut, INCREMENTAL, begin=2), OffsetExpired)
    assert cut.read(INCREMENTAL, begin=3).rows


def test_a_read_job_of_a_feed_that_is_cut_meanwhile_fails(reads: ReadsOf) -> None:
    reader = reads("copy_on_write")
    job = reader.start(
        CreateRead(query=INCREMENTAL, format=FileFormat.JSON, disposition=Disposition.INLINE, begin=0)
    )
    reader.earliest = 5
    with pytest.raises(OffsetExpired):
        reader.run(job)


@pytest.mark.parametrize("kind", ["merge_on_read none"])
def test_an_incremental_query_without_a_feed_is_refused(reads: ReadsOf, kind: str) -> None:
    assert reads(kind).past.table.dataset.changelog.producer is ChangelogProducer.NONE
    assert isinstance(refused(reads(kind), INCREMENTAL, begin=0), NoFeed)


def test_a_version_that_was_forgotten_while_its_job_waited_fails_it(reads: ReadsOf) -> None:
    class ExpiredFiles(KeptVersions):
        def acquire(self, *_: Any) -> None:
            raise VersionExpired("gone", version=1)

    reader = reads("copy_on_write", kept=ExpiredFiles())
    with pytest.raises(VersionExpired):
        reader.read(version=1)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (ReadQuery.SNAPSHOT, {"begin": 1}),
        (ReadQuery.READ_OPTIMIZED, {"end_time": committed_at(1)}),
        (INCREMENTAL, {"begin": 1, "tag": "x"}),
        (INCREMENTAL, {"begin": 1, "as_of": committed_at(1)}),
    ],
)
def test_bounds_of_another_query_are_refused(reads: ReadsOf, query: ReadQuery, asked: Row) -> None:
    error = refused(reads("copy_on_write"), query, **asked)
    assert pointer(error) == f"/{list(asked)[-1]}"
    assert "not for the query" in error.detail


INJECTIONS = [
    "1=1; DROP TABLE jobs",
    "n = 1 UNION SELECT 1",
    "`n` = 1",
    "java_method('x', 'y')",
    "n = (SELECT 1)",
]


@pytest.mark.parametrize("where", INJECTIONS)
@pytest.mark.parametrize("query", [ReadQuery.SNAPSHOT, INCREMENTAL])
def test_a_filter_that_is_more_than_a_filter_is_refused(reads: ReadsOf, query: ReadQuery, where: str) -> None:
    more = {"begin": 0} if query is INCREMENTAL else {}
    assert isinstance(refused(reads("copy_on_write"), query, where=where, **more), InvalidFilter)


@pytest.mark.parametrize("names", [("gone",), ("id", "id"), ('id"; --',)])
def test_columns_that_there_are_not_are_refused(reads: ReadsOf, names: tuple[str, ...]) -> None:
    assert pointer(refused(reads("copy_on_write"), columns=names)) == "/columns"
    order = tuple(ReadOrder(column=name) for name in names)
    assert pointer(refused(reads("copy_on_write"), order_by=order)).startswith("/order_by/")
