"""Versions with names, and versions that are held: what keeps them readable."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from sqlalchemy import select, update

from app.access.errors import NotFound
from app.core.catalog.tables import heads
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.named_version import NamedVersion, SavepointTask, TagTask, VersionKind
from app.core.jobs.tables import instants
from app.core.jobs.values import Job, JobState, NewJob
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.features.versions.errors import NameTaken
from app.features.versions.repository import NamedVersionStore
from app.infra.db.session import Database
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.format.errors import HeadwaterError, InvalidRequest
from app.kernel.format.instant import Action, InstantState
from tests.support.lakehouse import RULES, commit_of, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together

Name = Callable[..., NamedVersion | HeadwaterError]


@pytest.fixture
def names(database: Database) -> NamedVersionStore:
    return NamedVersionStore(database)


@pytest.fixture
def leases(database: Database) -> ReadLeaseStore:
    return ReadLeaseStore(database)


@pytest.fixture
def versions(stores: Stores, tenant_id: str, running: Callable[[], Job]) -> None:
    """Three versions."""
    for number in range(3):
        commit = commit_of([running()], [message(number)], read_version=number)
        stores.timeline.publish_one(tenant_id, commit)


@pytest.fixture
def claimed_job(stores: Stores, tenant_id: str, dataset: Dataset) -> Callable[..., Job]:
    """A job that names a version, held by a worker. It has an actor, unless `actor` is None."""

    def run(task: SavepointTask | TagTask, actor: str | None = new_id()) -> Job:
        new = NewJob(
            id=new_id(), instant_id=new_instant_id(), dataset_id=dataset.id, request=task, actor=actor
        )
        stores.jobs.accept(tenant_id, new)
        job = stores.jobs.claim_task(tenant_id, dataset.id, "worker", RULES)
        assert job is not None
        assert job.id == new.id
        return job

    return run


@pytest.fixture
def name(names: NamedVersionStore, tenant_id: str, dataset: Dataset, claimed_job: Callable[..., Job]) -> Name:
    """Names a version as a worker does, and reads the result of it."""

    def run(task: SavepointTask | TagTask, **more: str | None) -> NamedVersion:
        assert names.name(tenant_id, dataset.id, claimed_job(task, **more).claim, task)
        return names.get(tenant_id, dataset.id, task.name)

    return run


def clean(database: Database, tenant_id: str, dataset: Dataset, earliest: int) -> None:
    """Lets the history begin at a version."""
    with database.tenant(tenant_id) as connection:
        connection.execute(
            update(heads).where(heads.c.dataset_id == dataset.id).values(earliest_version=earliest)
        )


@pytest.mark.usefixtures("versions")
def test_savepoint_names_a_version(
    stores: Stores, tenant_id: str, dataset: Dataset, database: Database, claimed_job: Callable[..., Job],
    names: NamedVersionStore,
) -> None:  # fmt: skip
    first = SavepointTask(name="before the change", version=2)
    job = claimed_job(first)
    assert names.name(tenant_id, dataset.id, job.claim, first)
    ended = stores.jobs.get(tenant_id, job.id)
    assert ended.state is JobState.SUCCEEDED
    assert ended.result is not None
    assert (ended.result["name"], ended.result["kind"], ended.result["version"]) == (
        "before the change", "savepoint", 2,
    )  # fmt: skip
    with database.tenant(tenant_id) as connection:
        instant = connection.execute(
            select(instants.c.state, instants.c.version).where(instants.c.job_id == job.id)
        ).one()
    assert tuple(instant) == (InstantState.COMPLETED.value, 2)
    found = names.get(tenant_id, dataset.id, "before the change")
    assert (found.kind, found.version, found.automatic) == (VersionKind.SAVEPOINT, 2, False)
    assert found.expires_at is None


@pytest.mark.usefixtures("versions")
def test_name_defaults_to_the_head(name: Name) -> None:
    assert name(TagTask(name="latest")).version == 3
    assert name(TagTask(name="empty", version=0)).version == 0


@pytest.mark.usefixtures("versions")
def test_name_without_an_actor_is_automatic(name: Name) -> None:
    assert name(TagTask(name="2026-11-22"), actor=None).automatic


@pytest.mark.usefixtures("versions")
def test_name_is_assigned_once(
    name: Name, names: NamedVersionStore, tenant_id: str, dataset: Dataset
) -> None:
    name(TagTask(name="release", version=1))
    with pytest.raises(NameTaken) as refusal:
        name(SavepointTask(name="release", version=2))
    assert refusal.value.facts == {"name": "release", "version": 1, "kind": "tag"}
    assert names.get(tenant_id, dataset.id, "release").version == 1


@pytest.mark.usefixtures("versions")
def test_one_of_racing_requests_gets_the_name(
    names: NamedVersionStore, tenant_id: str, dataset: Dataset, claimed_job: Callable[..., Job]
) -> None:
    tasks = [TagTask(name="release", version=number) for number in (1, 2, 3)]
    jobs = [(task, claimed_job(task)) for task in tasks]

    def run(task: TagTask, job: Job) -> bool:
        try:
            return names.name(tenant_id, dataset.id, job.claim, task)
        except NameTaken:
            return False

    named = together([partial(run, task, job) for task, job in jobs])
    assert sorted(named) == [False, False, True]


@pytest.mark.usefixtures("versions")
def test_void_claim_does_not_name_a_version(
    stores: Stores,
    names: NamedVersionStore,
    tenant_id: str,
    dataset: Dataset,
    claimed_job: Callable[..., Job],
) -> None:
    task = TagTask(name="release")
    job = claimed_job(task)
    stores.jobs.cancel(tenant_id, job.id)
    assert not names.name(tenant_id, dataset.id, job.claim, task)
    with pytest.raises(NotFound):
        names.get(tenant_id, dataset.id, "release")


@pytest.mark.usefixtures("versions")
def test_expired_name_is_free(
    name: Name, names: NamedVersionStore, tenant_id: str, dataset: Dataset, database: Database,
    leases: ReadLeaseStore, claimed_job: Callable[..., Job],
) -> None:  # fmt: skip
    task = TagTask(name="brief", version=1, keep_seconds=0)
    assert names.name(tenant_id, dataset.id, claimed_job(task).claim, task)
    assert names.list(tenant_id, dataset.id, page_size=9, page_token=None).items == []
    clean(database, tenant_id, dataset, 2)
    with pytest.raises(VersionExpired):
        leases.check(tenant_id, dataset.id, 1)
    assert name(TagTask(name="brief", version=2)).version == 2
    assert name(TagTask(name="long", version=2, keep_seconds=60)).expires_at is not None


@pytest.mark.usefixtures("versions")
def test_names_are_listed_by_kind_and_removed(
    name: Name, names: NamedVersionStore, tenant_id: str, dataset: Dataset
) -> None:
    for text in ("b", "a", "c"):
        name(TagTask(name=text))
    name(SavepointTask(name="s"))
    first = names.list(tenant_id, dataset.id, VersionKind.TAG, page_size=2, page_token=None)
    rest = names.list(tenant_id, dataset.id, VersionKind.TAG, page_size=2, page_token=first.next_token)
    assert [[item.name for item in page.items] for page in (first, rest)] == [["a", "b"], ["c"]]
    assert rest.next_token is None
    assert [item.name for item in names.list(tenant_id, dataset.id, page_size=9, page_token=None).items] == [
        "a", "b", "c", "s",
    ]  # fmt: skip
    assert names.remove(tenant_id, dataset.id, ["a", "s", "unknown"]) == 2
    with pytest.raises(NotFound):
        names.get(tenant_id, dataset.id, "a")
    with pytest.raises(InvalidRequest):
        names.list(tenant_id, dataset.id, page_size=9, page_token="none")


@pytest.mark.usefixtures("versions")
def test_expired_version_cannot_be_named_and_a_named_one_is_retained(
    name: Name, tenant_id: str, dataset: Dataset, database: Database, leases: ReadLeaseStore
) -> None:
    name(SavepointTask(name="kept", version=1))
    clean(database, tenant_id, dataset, 3)
    with pytest.raises(VersionExpired) as refusal:
        name(TagTask(name="gone", version=2))
    assert refusal.value.facts == {"version": 2, "earliest": 3}
    # A second name for a version that is kept by its first.
    assert name(TagTask(name="again", version=1)).version == 1
    leases.check(tenant_id, dataset.id, 1)


@pytest.mark.usefixtures("versions")
def test_version_is_readable_while_it_is_leased(
    leases: ReadLeaseStore, tenant_id: str, dataset: Dataset, database: Database
) -> None:
    leases.acquire(tenant_id, dataset.id, 2, "reader", 60)
    clean(database, tenant_id, dataset, 3)
    leases.check(tenant_id, dataset.id, 2)
    # Shorter than what is there already.
    leases.acquire(tenant_id, dataset.id, 2, "reader", 0.01)
    time.sleep(0.02)
    leases.check(tenant_id, dataset.id, 2)
    leases.release(tenant_id, dataset.id, "reader")
    leases.release(tenant_id, dataset.id, "reader")
    with pytest.raises(VersionExpired):
        leases.check(tenant_id, dataset.id, 2)
    with pytest.raises(VersionExpired):
        leases.acquire(tenant_id, dataset.id, 2, "reader", 60)


@pytest.mark.usefixtures("versions")
def test_lease_expires(leases: ReadLeaseStore, tenant_id: str, dataset: Dataset, database: Database) -> None:
    leases.acquire(tenant_id, dataset.id, 0, "reader", 0.01)
    clean(database, tenant_id, dataset, 1)
    time.sleep(0.02)
    with pytest.raises(VersionExpired):
        leases.check(tenant_id, dataset.id, 0)


def test_deleted_dataset_is_neither_named_nor_leased(
    stores: Stores, leases: ReadLeaseStore, names: NamedVersionStore, tenant_id: str, dataset: Dataset,
    claimed_job: Callable[..., Job],
) -> None:  # fmt: skip
    task = TagTask(name="late")
    job = claimed_job(task)
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        names.name(tenant_id, dataset.id, job.claim, task)
    with pytest.raises(NotFound):
        leases.acquire(tenant_id, dataset.id, 0, "reader", 60)
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    with pytest.raises(NotFound):
        leases.check(other, dataset.id, 0)


def test_rollback_counts_only_versions_of_writes(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    actions = [
        Action.COMMIT,
        Action.COMPACTION,
        Action.RESTORE,
        Action.SCHEMA,
        Action.CLUSTERING,
        Action.ROLLBACK,
    ]
    for version, action in enumerate(actions):
        commit = commit_of([running()], [message(version)], read_version=version)
        stores.timeline.publish_one(tenant_id, msgspec.structs.replace(commit, action=action))
    assert stores.timeline.latest_writes(tenant_id, dataset.id, 6, 9) == [6, 3, 1]
    assert stores.timeline.latest_writes(tenant_id, dataset.id, 6, 2) == [6, 3]
    assert stores.timeline.latest_writes(tenant_id, dataset.id, 5, 1) == [3]
    assert stores.timeline.latest_writes(tenant_id, dataset.id, 0, 9) == []
