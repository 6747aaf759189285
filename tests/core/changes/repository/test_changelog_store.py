"""The index of the feed: which file holds which offsets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.changes.errors import OffsetAhead
from app.core.changes.positions import FeedBounds, FromTime, FromVersion
from app.core.changes.repository import _OF_OFFSETS
from app.core.jobs.values import Job
from app.core.timeline.repository.commit_metadata import OF_OFFSETS, OF_VERSIONS
from app.infra.identifiers import new_id
from tests.support.lakehouse import commit_of, message
from tests.support.postgres import TestServer
from tests.support.query_plans import plan_of, rows_read
from tests.support.store_fixtures import Stores


@pytest.fixture
def feed(stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]) -> Dataset:
    """Files of 3, 2 | 4 changes: offsets 0–2, 3–4 at version 1, and 5–8 at version 2."""
    first = [message(0, changes=3), message(1, changes=2), message(2, changes=0)]
    stores.timeline.publish_one(tenant_id, commit_of([running()], first))
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message(3, changes=4)], read_version=1))
    return dataset


def test_empty_feed_has_empty_bounds(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    assert stores.changelog.bounds(tenant_id, dataset.id) == FeedBounds(earliest=0, next_offset=0)
    assert stores.changelog.segments(tenant_id, dataset.id, 0, 10) == []


def test_unknown_dataset_has_no_bounds(stores: Stores, tenant_id: str) -> None:
    with pytest.raises(NotFound):
        stores.changelog.bounds(tenant_id, new_id())


@pytest.mark.parametrize(
    ("since", "until", "first_offsets"),
    [
        (0, 9, [0, 3, 5]),
        (0, 1, [0]),
        (2, 3, [0]),
        (2, 4, [0, 3]),
        (3, 5, [3]),
        (4, 6, [3, 5]),
        (8, 100, [5]),
        (9, 100, []),
        (5, 5, []),
        (7, 3, []),
    ],
)
def test_segments_are_the_files_with_the_requested_offsets(
    stores: Stores, tenant_id: str, feed: Dataset, since: int, until: int, first_offsets: list[int]
) -> None:
    segments = stores.changelog.segments(tenant_id, feed.id, since, until)
    assert [segment.first_offset for segment in segments] == first_offsets


def test_segment_names_its_file_version_and_commit_time(
    stores: Stores, tenant_id: str, feed: Dataset
) -> None:
    assert stores.changelog.bounds(tenant_id, feed.id) == FeedBounds(earliest=0, next_offset=9)
    first, second, third = stores.changelog.segments(tenant_id, feed.id, 0, 9)
    assert [each.version for each in (first, second, third)] == [1, 1, 2]
    assert first.committed_at == second.committed_at < third.committed_at
    assert third.committed_at == stores.catalog.get(tenant_id, feed.id).committed_at
    assert [each.file.row_count for each in (first, second, third)] == [3, 2, 4]
    assert first.file.file_group == message(0).file_group
    assert first.file.checksum == "xxh3:4567"


_COMMITS = """
    INSERT INTO commits
    SELECT (jsonb_populate_record(each, jsonb_build_object(
        'version', number + 1, 'first_offset', number, 'next_offset', number + 1,
        'committed_at', each.committed_at + number * interval '1 second'))).*
    FROM commits AS each, generate_series(1, 5000) AS number WHERE each.dataset_id = %s::text::uuid"""
_SEGMENTS = """
    INSERT INTO changelog_files
    SELECT (jsonb_populate_record(each, jsonb_build_object('version', number + 1, 'first_offset', number))).*
    FROM changelog_files AS each, generate_series(1, 5000) AS number WHERE each.dataset_id = %s::text::uuid"""


def test_page_of_a_long_feed_reads_its_own_segments_only(
    postgres: TestServer,
    database_url: str,
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
) -> None:
    """Wherever it begins."""
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message(0, changes=1)]))
    with postgres.administration(database_url.rsplit("/", 1)[1]) as administration:
        administration.execute(_COMMITS, [dataset.id])
        administration.execute(_SEGMENTS, [dataset.id])
        administration.execute("ANALYZE commits, changelog_files")
    for since in (0, 2_500, 4_990):
        query = _OF_OFFSETS.params(dataset=dataset.id, since=since, until=since + 10, limit=401)
        with stores.database.tenant(tenant_id) as connection:
            plan = plan_of(connection, query)
        assert plan["Actual Rows"] == 10
        # The first of them is also what shows where they begin.
        assert rows_read(plan, "changelog_files") <= 12, plan
        assert rows_read(plan, "commits") <= 10, plan


@pytest.mark.parametrize("analysed", [True, False])
def test_listing_commits_with_metadata_reads_those_of_its_part_only(
    postgres: TestServer,
    database_url: str,
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
    analysed: bool,
) -> None:
    """Also before the table has statistics."""
    commit = commit_of([running()], [message(0, changes=1)])
    outcomes = (structs.replace(commit.outcomes[0], metadata={"run": "7"}),)
    stores.timeline.publish_one(tenant_id, structs.replace(commit, outcomes=outcomes))
    with postgres.administration(database_url.rsplit("/", 1)[1]) as administration:
        administration.execute(_COMMITS, [dataset.id])
        if analysed:
            administration.execute("ANALYZE commits")
    for listing in (OF_OFFSETS, OF_VERSIONS):
        for since in (0, 2_500, 4_980):
            query = listing.params(dataset=dataset.id, since=since, until=since + 10, bytes_max=2**20)
            with stores.database.tenant(tenant_id) as connection:
                plan = plan_of(connection, query)
            assert plan["Actual Rows"] == 10
            # Each is read for its size and for its metadata, and the last for where the part ends.
            assert rows_read(plan, "commits") <= 21, plan


def test_a_version_starts_at_its_first_change(stores: Stores, tenant_id: str, feed: Dataset) -> None:
    found = [
        stores.changelog.position_at_commit(tenant_id, feed.id, FromVersion(version))
        for version in (0, 1, 2, 3)
    ]
    assert found == [0, 0, 5, 9]
    with pytest.raises(OffsetAhead) as ahead:
        stores.changelog.position_at_commit(tenant_id, feed.id, FromVersion(4))
    assert ahead.value.facts == {"since_version": 4, "head_version": 2}


def test_a_version_without_changes_starts_at_the_next_one(
    stores: Stores, tenant_id: str, feed: Dataset, running: Callable[[], Job]
) -> None:
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message(4, changes=0)], read_version=2))
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message(5, changes=1)], read_version=3))
    found = [
        stores.changelog.position_at_commit(tenant_id, feed.id, FromVersion(version))
        for version in (2, 3, 4, 5)
    ]
    assert found == [5, 9, 9, 10]


def test_a_time_starts_at_the_first_change_committed_then_or_later(
    stores: Stores, tenant_id: str, feed: Dataset
) -> None:
    first, second = stores.timeline.commit_times(tenant_id, feed.id, [1, 2]).values()
    tick = timedelta(microseconds=1)
    times = (datetime(1970, 1, 1, tzinfo=UTC), first - tick, first, first + tick, second, second + tick)
    found = [stores.changelog.position_at_commit(tenant_id, feed.id, FromTime(time)) for time in times]
    assert found == [0, 0, 0, 5, 5, 9]
    future = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(OffsetAhead) as ahead:
        stores.changelog.position_at_commit(tenant_id, feed.id, FromTime(future))
    assert ahead.value.facts["since_time"] == future


def test_an_empty_feed_starts_at_its_beginning_whatever_is_named(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    for start in (FromVersion(0), FromVersion(1), FromTime(datetime.now(UTC) - timedelta(minutes=1))):
        assert stores.changelog.position_at_commit(tenant_id, dataset.id, start) == 0
    with pytest.raises(OffsetAhead):
        stores.changelog.position_at_commit(tenant_id, dataset.id, FromVersion(2))
    with pytest.raises(NotFound):
        stores.changelog.position_at_commit(tenant_id, new_id(), FromVersion(1))
