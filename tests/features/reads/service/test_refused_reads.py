"""Read jobs that are refused, when they are requested or when they run: each with the member at fault."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.core.changes.errors import NoFeed
from app.core.jobs.kinds.read import Disposition, ReadQuery
from app.core.timeline.errors import OffsetExpired, VersionExpired
from app.features.reads.errors import NoCommits
from app.features.reads.jobs import CreateRead
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import HeadwaterError, InvalidFilter, InvalidRequest
from app.kernel.format.file_format import FileFormat
from app.kernel.sql.read_order import ReadOrder
from tests.support.read_runs import Reads
from tests.support.retained_versions import RetainedVersions
from tests.support.versioned_tables import committed_at, kind_of, new_versioned_table, written_versioned_table

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
    versioned = cache(lambda kind: written_versioned_table(storage, kind))
    return lambda kind, **more: Reads(versioned=versioned(kind), storage=storage, root=root, **more)


def refused(reader: Reads, query: ReadQuery = ReadQuery.SNAPSHOT, **bounds: Any) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as error:
        reader.start(
            CreateRead(query=query, format=FileFormat.JSON, disposition=Disposition.INLINE, **bounds)
        )
    return error.value


def pointer(error: HeadwaterError) -> str:
    assert isinstance(error, InvalidRequest)
    return str(error.facts["errors"][0]["pointer"])


def test_incremental_query_without_a_begin_is_refused(reads: ReadsOf) -> None:
    error = refused(reads("copy_on_write"), INCREMENTAL, end=2)
    assert pointer(error) == "/begin"
    assert "needs begin" in error.detail


def test_incremental_query_of_an_empty_timeline_is_refused(root: Path) -> None:
    versioned = new_versioned_table(LocalStorage(root), kind_of("copy_on_write"))
    reader = Reads(versioned=versioned, storage=LocalStorage(root), root=root)
    assert isinstance(refused(reader, INCREMENTAL, begin=0), NoCommits)
    assert reader.read().rows == []


def test_incremental_query_that_ends_before_its_begin_is_refused(reads: ReadsOf) -> None:
    error = refused(reads("copy_on_write"), INCREMENTAL, begin=3, end=2)
    assert pointer(error) == "/begin"
    assert "after its end" in error.detail


@pytest.mark.parametrize("member", ["begin", "end"])
def test_incremental_query_beyond_the_head_is_refused(reads: ReadsOf, member: str) -> None:
    reader = reads("copy_on_write")
    error = refused(reader, INCREMENTAL, **{"begin": 0, member: 99})
    assert pointer(error) == f"/{member}"
    assert error.facts["head"] == reader.versioned.dataset.version


def test_incremental_query_of_expired_changes_is_refused(reads: ReadsOf) -> None:
    cut = reads("copy_on_write")
    cut.earliest = cut.versioned.next_offset("t", "d", 3)
    assert isinstance(refused(cut, INCREMENTAL, begin=2), OffsetExpired)
    assert cut.read(INCREMENTAL, begin=3).rows


def test_read_job_of_a_feed_expired_meanwhile_fails(reads: ReadsOf) -> None:
    reader = reads("copy_on_write")
    job = reader.start(
        CreateRead(query=INCREMENTAL, format=FileFormat.JSON, disposition=Disposition.INLINE, begin=0)
    )
    reader.earliest = 5
    with pytest.raises(OffsetExpired):
        reader.run(job)


@pytest.mark.parametrize("kind", ["merge_on_read none"])
def test_incremental_query_without_a_feed_is_refused(reads: ReadsOf, kind: str) -> None:
    assert reads(kind).versioned.table.dataset.changelog.producer is ChangelogProducer.NONE
    assert isinstance(refused(reads(kind), INCREMENTAL, begin=0), NoFeed)


def test_read_job_of_a_version_expired_meanwhile_fails(reads: ReadsOf) -> None:
    class ExpiredFiles(RetainedVersions):
        def acquire(self, *_: Any) -> None:
            raise VersionExpired("gone", version=1)

    reader = reads("copy_on_write", kept=ExpiredFiles())
    with pytest.raises(VersionExpired):
        reader.read(version=1)


@pytest.mark.parametrize(
    ("query", "bounds"),
    [
        (ReadQuery.SNAPSHOT, {"begin": 1}),
        (ReadQuery.READ_OPTIMIZED, {"end_time": committed_at(1)}),
        (INCREMENTAL, {"begin": 1, "tag": "x"}),
        (INCREMENTAL, {"begin": 1, "as_of": committed_at(1)}),
    ],
)
def test_bounds_of_another_query_are_refused(reads: ReadsOf, query: ReadQuery, bounds: Row) -> None:
    error = refused(reads("copy_on_write"), query, **bounds)
    assert pointer(error) == f"/{list(bounds)[-1]}"
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
def test_filter_with_further_sql_is_refused(reads: ReadsOf, query: ReadQuery, where: str) -> None:
    more = {"begin": 0} if query is INCREMENTAL else {}
    assert isinstance(refused(reads("copy_on_write"), query, where=where, **more), InvalidFilter)


@pytest.mark.parametrize("names", [("gone",), ("id", "id"), ('id"; --',)])
def test_unknown_columns_are_refused(reads: ReadsOf, names: tuple[str, ...]) -> None:
    assert pointer(refused(reads("copy_on_write"), columns=names)) == "/columns"
    order = tuple(ReadOrder(column=name) for name in names)
    assert pointer(refused(reads("copy_on_write"), order_by=order)).startswith("/order_by/")
