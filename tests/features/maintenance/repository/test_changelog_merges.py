"""Merged changelog files in the catalogue: the feed stays as it was, whatever else happens at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.features.maintenance.repository.changelog_merges import ChangelogMergeStore
from app.features.maintenance.repository.maintenance import MaintenanceStore
from app.features.maintenance.values import ClaimedTable
from app.features.overview.repository import OverviewStore
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.repository.references import ReferenceStore
from app.features.retention.repository.stored_bytes import StoredBytesStore
from app.kernel.changelog.merge_plan import SmallFile
from app.kernel.format.file_group import ChangelogSegment, StoredFile
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together

COMMITS = 4


@pytest.fixture
def publish(stores: Stores, dataset: Dataset, running: Callable[[], Job]) -> Callable[[], None]:
    """Commits two files, of 2 and 3 changes."""

    def run() -> None:
        version = stores.catalog.get(dataset.tenant_id, dataset.id).version
        messages = [message(2 * version, changes=2), message(2 * version + 1, changes=3)]
        commit = commit_of([running()], messages, read_version=version)
        stores.timeline.publish_one(dataset.tenant_id, commit)

    return run


@pytest.fixture
def merges(stores: Stores) -> ChangelogMergeStore:
    return ChangelogMergeStore(stores.database)


@pytest.fixture
def claimed(stores: Stores, dataset: Dataset, publish: Callable[[], None]) -> ClaimedTable:
    """A dataset of four commits, with 20 changes in 8 files, claimed for maintenance."""
    for _ in range(COMMITS):
        publish()
    found = tables(stores).claim(dataset.tenant_id, dataset.id, "worker", 60)
    assert found is not None
    return found


def tables(stores: Stores) -> MaintenanceStore:
    return MaintenanceStore(stores.database, stores.catalog.live)


def merged_file(run: list[SmallFile], name: str = "merged") -> StoredFile:
    rows = run[-1].end_offset - run[0].first_offset
    return StoredFile(path=f"changes/{name}", size_bytes=100, checksum="xxh3:89", row_count=rows, schema_id=1)


def segments(stores: Stores, dataset: Dataset, since: int = 0) -> list[ChangelogSegment]:
    return stores.changelog.segments(dataset.tenant_id, dataset.id, since, 2**40)


def unmoved(found: list[ChangelogSegment]) -> list[tuple[Any, ...]]:
    """All of segments but their files."""
    return [
        (each.first_offset, each.row_count, each.version, each.committed_at, each.file.file_group, each.file.schema_id)
        for each in found
    ]  # fmt: skip


def referenced(stores: Stores, dataset: Dataset, paths: list[str]) -> set[str]:
    return ReferenceStore(stores.database).referenced(dataset.tenant_id, dataset.id, paths)


def test_merged_file_takes_the_place_of_its_inputs(
    stores: Stores, dataset: Dataset, merges: ChangelogMergeStore, claimed: ClaimedTable
) -> None:
    before = segments(stores, dataset)
    small = merges.small_files(dataset.tenant_id, dataset.id, 0, 100)
    assert [each.first_offset for each in small] == [0, 2, 5, 7, 10, 12, 15, 17]
    assert [each.committed_at for each in small] == [each.committed_at for each in before]
    run = small[1:5]
    new = merged_file(run)
    assert merges.replace(dataset.tenant_id, dataset.id, claimed.epoch, run, new)
    after = segments(stores, dataset)
    assert unmoved(after) == unmoved(before)
    assert [each.file.path for each in after[1:5]] == ["changes/merged"] * 4
    assert [(each.first_row, each.file.row_count) for each in after[1:5]] == [
        (0, 10),
        (3, 10),
        (5, 10),
        (8, 10),
    ]
    assert [after[0], *after[5:]] == [before[0], *before[5:]]
    # It is merged again with its neighbours.
    listed = merges.small_files(dataset.tenant_id, dataset.id, 0, 100)
    assert [(each.first_offset, each.segments, each.file.row_count) for each in listed] == [
        (0, 1, 2), (2, 4, 10), (12, 1, 3), (15, 1, 2), (17, 1, 3)
    ]  # fmt: skip
    assert merges.replace(
        dataset.tenant_id, dataset.id, claimed.epoch, listed[:3], merged_file(listed[:3], "again")
    )
    again = segments(stores, dataset)
    assert unmoved(again) == unmoved(before)
    assert [each.first_row for each in again] == [0, 2, 5, 7, 10, 12, 0, 0]
    assert stores.changelog.segments(dataset.tenant_id, dataset.id, 6, 11) == again[2:5]
    assert stores.changelog.segments(dataset.tenant_id, dataset.id, 6, 11, limit=1) == again[2:3]
    # Of two files as they were, one merged, and the replaced ones.
    totals = OverviewStore(stores.database).totals(dataset.tenant_id, dataset.id, COMMITS, small_below=1)
    assert (totals.changelog.files, totals.changelog.size_bytes) == (3, 2 * 50 + 100)
    assert StoredBytesStore(stores.database).sample(dataset.tenant_id, older_than_seconds=0)
    with stores.database.tenant(dataset.tenant_id) as connection:
        stored = connection.execute(text("SELECT stored_bytes FROM storage_samples")).scalar_one()
    assert stored == 8 * 100 + 2 * 50 + 100 + 6 * 50 + 100


def test_merge_is_refused_without_the_claim_or_all_of_its_inputs(
    stores: Stores, dataset: Dataset, merges: ChangelogMergeStore, claimed: ClaimedTable
) -> None:
    before = segments(stores, dataset)
    run = merges.small_files(dataset.tenant_id, dataset.id, 0, 100)[:4]
    refused = [
        (claimed.epoch + 1, run),
        (claimed.epoch, [run[0], run[2]]),
        (claimed.epoch, [run[1], run[0]]),
        (claimed.epoch, [*run[:2], _longer(run[2])]),
    ]
    for epoch, inputs in refused:
        assert not merges.replace(dataset.tenant_id, dataset.id, epoch, inputs, merged_file(inputs))
        assert segments(stores, dataset) == before
    assert tables(stores).settle(dataset.tenant_id, claimed, {}, None)
    assert not merges.replace(dataset.tenant_id, dataset.id, claimed.epoch, run, merged_file(run))
    assert segments(stores, dataset) == before


def _longer(file: SmallFile) -> SmallFile:
    """The file with one row more than it has."""
    return SmallFile(
        file=structs.replace(file.file, row_count=file.file.row_count + 1),
        first_offset=file.first_offset,
        segments=file.segments,
        committed_at=file.committed_at,
    )


def cut_to(stores: Stores, dataset: Dataset, beginning: int) -> None:
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE heads SET earliest_offset = :to"), {"to": beginning})


def test_feed_is_cut_within_a_merged_file_by_rows(
    stores: Stores, dataset: Dataset, merges: ChangelogMergeStore, claimed: ClaimedTable
) -> None:
    run = merges.small_files(dataset.tenant_id, dataset.id, 0, 100)[:6]
    assert merges.replace(dataset.tenant_id, dataset.id, claimed.epoch, run, merged_file(run))
    before = segments(stores, dataset)
    retention = RetentionStore(stores.database)
    cut_to(stores, dataset, 10)
    assert retention.expire_files(dataset.tenant_id, dataset.id, 3) == 3
    assert retention.expire_files(dataset.tenant_id, dataset.id, 3) == 1
    assert segments(stores, dataset, 10) == before[4:]
    assert referenced(stores, dataset, ["changes/merged"]) == {"changes/merged"}
    # A file whose beginning was cut is not merged any more.
    listed = merges.small_files(dataset.tenant_id, dataset.id, 10, 100)
    assert [each.first_offset for each in listed] == [15, 17]
    cut_to(stores, dataset, 15)
    assert retention.expire_files(dataset.tenant_id, dataset.id, 10) == 2
    assert referenced(stores, dataset, ["changes/merged"]) == set()


def test_merge_loses_against_a_cut_that_removes_its_inputs(
    stores: Stores, dataset: Dataset, merges: ChangelogMergeStore, claimed: ClaimedTable
) -> None:
    run = merges.small_files(dataset.tenant_id, dataset.id, 0, 100)
    cut_to(stores, dataset, 5)
    outcomes: list[object] = together(
        [
            lambda: merges.replace(dataset.tenant_id, dataset.id, claimed.epoch, run, merged_file(run)),
            lambda: RetentionStore(stores.database).expire_files(dataset.tenant_id, dataset.id, 10),
        ]
    )
    left = segments(stores, dataset, 5)
    assert [each.first_offset for each in left] == [5, 7, 10, 12, 15, 17]
    # Whichever was first: all of what is left is in one file, or nothing is.
    assert {each.file.path == "changes/merged" for each in left} == {outcomes[0]}


def test_replaced_files_stay_for_jobs_that_began_before(
    stores: Stores,
    dataset: Dataset,
    merges: ChangelogMergeStore,
    claimed: ClaimedTable,
    running: Callable[[], Job],
) -> None:
    running()
    run = merges.small_files(dataset.tenant_id, dataset.id, 0, 100)
    paths = [each.file.path for each in run]
    assert merges.replace(dataset.tenant_id, dataset.id, claimed.epoch, run, merged_file(run))
    references = ReferenceStore(stores.database)
    assert references.unfinished(dataset.tenant_id, dataset.id)[2] == claimed.epoch

    def left(seconds: float) -> set[str]:
        references.expire_replaced(dataset.tenant_id, dataset.id, older_than_seconds=seconds)
        return referenced(stores, dataset, paths)

    assert left(60) == left(-60) == set(paths)
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE jobs SET claimed_at = now() + interval '1 hour'"))
    assert left(60) == set(paths)
    assert left(-60) == set()
    assert tables(stores).settle(dataset.tenant_id, claimed, {}, None)
    assert references.unfinished(dataset.tenant_id, dataset.id)[2] is None


def test_commits_and_merges_run_side_by_side(
    stores: Stores,
    dataset: Dataset,
    merges: ChangelogMergeStore,
    claimed: ClaimedTable,
    publish: Callable[[], None],
) -> None:
    def merge() -> int:
        done = 0
        for number in range(12):
            run = merges.small_files(dataset.tenant_id, dataset.id, 0, 100)
            done += merges.replace(
                dataset.tenant_id, dataset.id, claimed.epoch, run, merged_file(run, f"merged-{number}")
            )
        return done

    def write() -> int:
        return len([publish() for _ in range(8)])

    def read() -> int:
        for _ in range(30):
            found = segments(stores, dataset)
            assert [each.first_offset for each in found[1:]] == [each.end_offset for each in found[:-1]]
            for each in found:
                assert each.row_of(each.end_offset) <= each.file.row_count
        return 1

    merged, _, read_all = together([merge, write, read])
    assert (merged, read_all) == (12, 1)
    found = segments(stores, dataset)
    assert [each.version for each in found] == [version for version in range(1, COMMITS + 9) for _ in "ab"]
    assert found[-1].end_offset == 5 * (COMMITS + 8)
