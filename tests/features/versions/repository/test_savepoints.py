"""Savepoints and the feed: changes since one are kept with it; files that a restore lists again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from app.core.catalog.values import Dataset
from app.core.changes.positions import SNAPSHOT_READER
from app.core.jobs.kinds.named_version import SavepointTask, TagTask
from app.core.jobs.values import Job, NewJob
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.values import Published
from app.features.retention.repository.feed import RetentionStore
from app.features.versions.repository import NamedVersionStore
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.dataset import Retention
from tests.support.lakehouse import RULES, commit_of, message
from tests.support.store_fixtures import Stores


@pytest.fixture
def feed(stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]) -> Dataset:
    """Commits of 3, 2 and 4 changes, which end at 3, 5 and 9; the last change is to be kept, whatever its age."""
    for version, changes in enumerate((3, 2, 4)):
        commit = commit_of([running()], [message(version, changes=changes)], read_version=version)
        stores.timeline.publish_one(tenant_id, commit)
    changelog = structs.replace(dataset.definition.changelog, retention=Retention(changes=1))
    definition = structs.replace(dataset.definition, changelog=changelog)
    return stores.catalog.evolve(tenant_id, dataset.id, definition, version=3, instant_id=new_instant_id())


def test_savepoint_retains_the_feed_from_its_version(stores: Stores, feed: Dataset) -> None:
    place = (feed.tenant_id, feed.id)
    names = NamedVersionStore(stores.database)

    def name(task: SavepointTask | TagTask) -> None:
        new = NewJob(id=new_id(), instant_id=new_instant_id(), dataset_id=feed.id, request=task)
        stores.jobs.accept(feed.tenant_id, new)
        job = stores.jobs.claim_task(*place, "worker", RULES)
        assert job is not None
        assert names.name(*place, job.claim, task)

    def cut() -> int:
        return RetentionStore(stores.database).cut(*place, follower_lag_seconds=60)

    name(SavepointTask(name="first", version=1))
    name(SavepointTask(name="second", version=2))
    name(TagTask(name="a tag keeps no feed", version=0))
    assert cut() == 3
    # What is cut by then is not kept by who names an earlier version, but what is left is.
    name(SavepointTask(name="empty", version=0))
    names.remove(*place, ["first"])
    assert cut() == 0
    names.remove(*place, ["empty"])
    assert cut() == 2
    names.remove(*place, ["second"])
    assert cut() == 0
    assert stores.changelog.bounds(*place).earliest == 5


def test_version_that_a_reader_starts_with_retains_the_feed_from_it(stores: Stores, feed: Dataset) -> None:
    place = (feed.tenant_id, feed.id)
    leases, retention = ReadLeaseStore(stores.database), RetentionStore(stores.database)
    leases.acquire(*place, 2, "a read job", 60)
    leases.acquire_feed(*place, 1, SNAPSHOT_READER, 60)
    assert retention.cut(*place, follower_lag_seconds=60) == 3
    leases.release(*place, SNAPSHOT_READER)
    assert retention.cut(*place, follower_lag_seconds=60) == 2


def test_restore_of_a_purged_file_conflicts(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message()]))
    [written] = stores.timeline.live_files(tenant_id, dataset.id, 1, None)
    second = CommitMessage(file_group=written.file_group, removed=(written.path,))
    stores.timeline.publish_one(tenant_id, commit_of([running()], [second], read_version=1))
    again = CommitMessage(file_group=written.file_group, added=(written,))
    third = stores.timeline.publish_one(tenant_id, commit_of([running()], [again], read_version=2))
    assert isinstance(third, Published)
    [listed] = stores.timeline.live_files(tenant_id, dataset.id, 3, None)
    assert (listed.path, listed.added_version, listed.written_version) == (written.path, 3, 1)

    gone = structs.replace(written, path="data/gone.parquet")
    lost = CommitMessage(file_group=written.file_group, added=(gone,))
    found = stores.timeline.publish_one(tenant_id, commit_of([running()], [lost], read_version=3))
    assert isinstance(found, Conflicted)
    assert found.head_version == 3
