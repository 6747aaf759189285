"""Cleans of histories: which versions stay readable, which files go, and who may still need one that is going."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from msgspec import structs
from sqlalchemy import func, insert, select, update

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.clean import CleanTask
from app.core.jobs.tables import jobs
from app.core.jobs.values import Job, NewJob
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.kept_versions import check_kept, share_history
from app.core.timeline.repository.publish import lock_heads
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.tables import commits, files, read_leases
from app.core.timeline.values import Published
from app.features.retention.repository.history import HistoryStore
from app.features.retention.repository.references import ReferenceStore
from app.features.retention.values import ExpiredFiles, HistoryExpiry, HistoryStart
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.file_group import DataFile, DeletionVector
from app.kernel.format.policies import HistoryPolicy, TimelinePolicy
from tests.support.expired_rows import expire_rows
from tests.support.lakehouse import claim_of, commit_of, data_file, message
from tests.support.postgres import TestServer
from tests.support.store_fixtures import Stores
from tests.support.threads import together

LAST = HistoryPolicy(versions=1)


@pytest.fixture
def history(stores: Stores) -> HistoryStore:
    return HistoryStore(stores.database)


@pytest.fixture
def references(stores: Stores) -> ReferenceStore:
    return ReferenceStore(stores.database)


@pytest.fixture
def leases(stores: Stores) -> ReadLeaseStore:
    return ReadLeaseStore(stores.database)


Write = Callable[..., DataFile]


@pytest.fixture
def write(stores: Stores, tenant_id: str, running: Callable[[], Job]) -> Write:
    """Commits a new file of a bucket, in place of others."""

    def run(*removed: DataFile, bucket: int = 0) -> DataFile:
        job = running()
        made = message(bucket, removed=removed)
        version = stores.catalog.get(tenant_id, job.dataset_id).version
        stores.timeline.publish_one(tenant_id, commit_of([job], [made], read_version=version))
        return made.added[0]

    return run


@pytest.fixture
def table(write: Write) -> list[DataFile]:
    """Five versions of one bucket, each of one file in place of the one before."""
    found = [write()]
    for _ in range(4):
        found.append(write(found[-1]))
    return found


def expire_files(history: HistoryStore, dataset: Dataset, unused_seconds: float = 0) -> ExpiredFiles:
    """Finds the unused files, and removes those that have been unused for so long."""
    place = dataset.tenant_id, dataset.id
    found = history.expire_files(*place, 0, 100)
    history.remove_files(*place, unused_seconds=unused_seconds, limit=100)
    return found


def advance_start(history: HistoryStore, dataset: Dataset, policy: HistoryPolicy) -> HistoryStart:
    return history.advance_start(dataset.tenant_id, dataset.id, policy)


def listed(stores: Stores, dataset: Dataset) -> set[str]:
    with stores.database.tenant(dataset.tenant_id) as connection:
        return set(connection.execute(select(files.c.path).where(files.c.dataset_id == dataset.id)).scalars())


def paths(found: Sequence[DataFile]) -> set[str]:
    return {file.path for file in found}


def readable(leases: ReadLeaseStore, dataset: Dataset, versions: range = range(6)) -> list[int]:
    found = []
    for version in versions:
        with suppress(VersionExpired):
            leases.check(dataset.tenant_id, dataset.id, version)
            found.append(version)
    return found


@pytest.fixture
def aged(dataset: Dataset, table: list[DataFile], postgres: TestServer, database_url: str) -> None:
    """Gives each version a day: the latest is of this moment."""
    with postgres.administration(database_url.rsplit("/", 1)[1]) as connection:
        connection.execute(
            "UPDATE commits SET committed_at = clock_timestamp() - make_interval(days => 5 - version::int)"
            " WHERE dataset_id = %s",
            [dataset.id],
        )


DAY = 86_400


@pytest.mark.parametrize(
    ("policy", "earliest"),
    [
        (HistoryPolicy(versions=100), 0),
        (HistoryPolicy(versions=6), 0),
        (HistoryPolicy(versions=5), 1),
        (HistoryPolicy(versions=1), 5),
        # The version that was the latest then is kept, too.
        (HistoryPolicy(seconds=5 * DAY), 0),
        (HistoryPolicy(seconds=4 * DAY - 60), 1),
        (HistoryPolicy(seconds=3 * DAY - 60), 2),
        (HistoryPolicy(seconds=0), 5),
        # What one of the two keeps stays.
        (HistoryPolicy(versions=2, seconds=3 * DAY - 60), 2),
        (HistoryPolicy(versions=4, seconds=3 * DAY - 60), 2),
        (HistoryPolicy(versions=5, seconds=3 * DAY - 60), 1),
    ],
)
def test_versions_expire_by_number_and_age(
    stores: Stores, history: HistoryStore, leases: ReadLeaseStore, dataset: Dataset, table: list[DataFile],
    aged: None, policy: HistoryPolicy, earliest: int,
) -> None:  # fmt: skip
    expiry = partial(history.expiry, dataset.tenant_id, dataset.id, policy, None)
    assert expiry().due == (earliest > 0)
    assert advance_start(history, dataset, policy) == HistoryStart(
        earliest_version=earliest, expired_versions=earliest
    )
    assert not expiry().due
    assert stores.catalog.get(dataset.tenant_id, dataset.id).earliest_version == earliest
    assert readable(leases, dataset) == list(range(earliest, 6))
    # Version n has the file n - 1.
    kept = table[max(earliest - 1, 0) :]
    gone = table[: max(earliest - 1, 0)]
    assert expire_files(history, dataset).files == len(gone)
    assert listed(stores, dataset) == paths(kept)
    # Nothing ever comes back.
    assert advance_start(history, dataset, HistoryPolicy(versions=6)).earliest_version == earliest


@pytest.mark.parametrize(
    ("policy", "days"),
    [
        (None, None),
        (LAST, None),
        # Version 0 until version 1, which was committed four days ago, is as old.
        (HistoryPolicy(seconds=7 * DAY), 3),
        (HistoryPolicy(seconds=4 * DAY), 0),
        # Six versions are kept for their number, and five of them are not.
        (HistoryPolicy(versions=6, seconds=7 * DAY), None),
        (HistoryPolicy(versions=5, seconds=7 * DAY), 3),
    ],
)
@pytest.mark.usefixtures("aged")
def test_earliest_version_expires_when_its_successor_is_old_enough(
    history: HistoryStore, dataset: Dataset, policy: HistoryPolicy | None, days: int | None
) -> None:
    next_at = history.expiry(dataset.tenant_id, dataset.id, policy, None).next_at
    if days is None:
        assert next_at is None
    else:
        assert next_at is not None
        assert abs(next_at - datetime.now(UTC) - timedelta(days=days)) < timedelta(minutes=5)


@pytest.mark.usefixtures("aged")
def test_nothing_expires_once_the_latest_version_is_the_earliest(
    history: HistoryStore, dataset: Dataset
) -> None:
    policy = HistoryPolicy(seconds=0)
    assert advance_start(history, dataset, policy).earliest_version == 5
    assert history.expiry(dataset.tenant_id, dataset.id, policy, None) == HistoryExpiry(due=False)


def test_named_versions_and_leases_retain_their_files(
    stores: Stores, history: HistoryStore, leases: ReadLeaseStore, dataset: Dataset, table: list[DataFile]
) -> None:
    leases.acquire(dataset.tenant_id, dataset.id, 2, "reader", 60)
    leases.acquire(dataset.tenant_id, dataset.id, 3, "other", 60)
    assert advance_start(history, dataset, LAST) == HistoryStart(earliest_version=5, expired_versions=3)
    assert expire_files(history, dataset) == ExpiredFiles(files=2, bytes=200, until=5)
    assert readable(leases, dataset) == [2, 3, 5]
    assert listed(stores, dataset) == paths([table[1], table[2], table[4]])
    assert stores.timeline.live_files(dataset.tenant_id, dataset.id, 2, None)[0].path == table[1].path
    leases.release(dataset.tenant_id, dataset.id, "reader")
    # Also what was spared before.
    assert expire_files(history, dataset) == ExpiredFiles(files=1, bytes=100, until=3)
    with pytest.raises(VersionExpired):
        stores.timeline.live_files(dataset.tenant_id, dataset.id, 2, None)
    assert readable(leases, dataset) == [3, 5]


def test_expiry_in_steps_removes_all_expired_files(
    stores: Stores, history: HistoryStore, leases: ReadLeaseStore, dataset: Dataset, write: Write
) -> None:
    found = [write()]
    for number in range(6):
        found.append(write(found[-1]))
        if number == 2:
            leases.acquire(dataset.tenant_id, dataset.id, 3, "reader", 60)
    advance_start(history, dataset, LAST)
    since, steps = 0, []
    while True:
        gone = history.expire_files(dataset.tenant_id, dataset.id, since, 2)
        steps.append(gone.files)
        since = gone.until
        if gone.files < 2:
            break
    assert steps == [2, 2, 1]
    remove = partial(history.remove_files, dataset.tenant_id, dataset.id, unused_seconds=0, limit=3)
    assert [remove(), remove(), remove()] == [3, 2, 0]
    assert listed(stores, dataset) == paths([found[2], found[-1]])


def test_unused_files_stay_for_scans_that_were_planned_before(
    stores: Stores, history: HistoryStore, leases: ReadLeaseStore, dataset: Dataset, table: list[DataFile],
    postgres: TestServer, database_url: str,
) -> None:  # fmt: skip
    place = dataset.tenant_id, dataset.id
    advance_start(history, dataset, LAST)
    assert expire_files(history, dataset, 60) == ExpiredFiles(files=4, bytes=400, until=5)
    # The versions themselves are gone at once, and another clean neither finds the files again nor removes them.
    assert readable(leases, dataset) == [5]
    assert expire_files(history, dataset, 60) == ExpiredFiles(files=0, bytes=0, until=0)
    assert listed(stores, dataset) == paths(table)
    assert history.removable(dataset.tenant_id, unused_seconds=60) == []

    with postgres.administration(database_url.rsplit("/", 1)[1]) as connection:
        connection.execute(
            "UPDATE files SET unused_at = unused_at - make_interval(secs => 61)"
            " WHERE dataset_id = %s AND removed_version <= 3",
            [dataset.id],
        )
    assert history.removable(dataset.tenant_id, unused_seconds=60) == [dataset.id]
    assert history.remove_files(*place, unused_seconds=60, limit=100) == 2
    assert history.removable(dataset.tenant_id, unused_seconds=60) == []
    assert listed(stores, dataset) == paths(table[2:])


def test_round_of_retention_removes_files_that_were_unused_for_long(
    stores: Stores, history: HistoryStore, dataset: Dataset, table: list[DataFile], tmp_path: Path
) -> None:
    advance_start(history, dataset, LAST)
    expire_files(history, dataset, 60)
    rows = expire_rows(stores.database, LocalStorage(tmp_path), job_keep_seconds=DAY)
    replace(rows, unused_seconds=60).run(dataset.tenant_id)
    assert listed(stores, dataset) == paths(table)
    rows.run(dataset.tenant_id)
    assert listed(stores, dataset) == paths(table[4:])


def test_file_relisted_with_another_vector_stays(
    stores: Stores, history: HistoryStore, references: ReferenceStore, dataset: Dataset,
    running: Callable[[], Job],
) -> None:  # fmt: skip
    """Only the vector goes that no version shows any more."""
    bare = data_file(rows=9)

    def commit(read_version: int, removed: tuple[str, ...], file: DataFile) -> None:
        change = CommitMessage(file_group=file.file_group, removed=removed, added=(file,))
        commit = commit_of([running()], [change], read_version=read_version)
        assert stores.timeline.publish_one(dataset.tenant_id, commit).version == read_version + 1

    def marked(path: str) -> DataFile:
        vector = DeletionVector(path=path, offset=0, size_bytes=1, checksum="c", cardinality=1)
        return structs.replace(bare, deletion_vector=vector, written_version=1)

    commit(0, (), bare)
    commit(1, (bare.path,), marked("deletes/1"))
    commit(2, (bare.path,), marked("deletes/2"))
    assert advance_start(history, dataset, LAST).earliest_version == 3
    assert expire_files(history, dataset) == ExpiredFiles(files=2, bytes=0, until=3)
    every = [bare.path, "deletes/1", "deletes/2"]
    assert references.referenced(dataset.tenant_id, dataset.id, every) == {bare.path, "deletes/2"}


def test_write_planned_before_an_expiry_still_conflicts(
    stores: Stores, history: HistoryStore, dataset: Dataset, table: list[DataFile], write: Write,
    running: Callable[[], Job],
) -> None:  # fmt: skip
    """Though the rows are gone that show the change, and by the clock it began later."""
    last = write(table[4])
    # It has read version 5, whose file version 6 has removed.
    late = running()
    publish = partial(stores.timeline.publish_one, dataset.tenant_id)
    advance_start(history, dataset, LAST)
    expire_files(history, dataset)
    assert listed(stores, dataset) == {last.path}
    for made in (message(0, removed=[table[4]]), message(0), message(7)):
        verdict = publish(commit_of([late], [made], read_version=5))
        assert isinstance(verdict, Conflicted)
        assert (verdict.file_groups, verdict.head_version) == ((made.file_group,), 6)
    published = publish(commit_of([late], [message(0, removed=[last])], read_version=6))
    assert isinstance(published, Published)
    assert published.version == 7


def test_versions_of_running_writes_are_retained(
    stores: Stores, history: HistoryStore, dataset: Dataset, table: list[DataFile],
    accept: Callable[[], Job], claim: Callable[..., list[Job]],
) -> None:  # fmt: skip
    """So that they need not be planned again."""
    accept()
    [job] = claim()
    with stores.database.tenant(dataset.tenant_id) as connection:
        began = select(commits.c.committed_at).where(commits.c.version == 3).scalar_subquery()
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(started_at=began))
    assert advance_start(history, dataset, LAST).earliest_version == 3
    assert not history.expiry(dataset.tenant_id, dataset.id, LAST, None).due
    stores.jobs.release(dataset.tenant_id, [claim_of(job)])
    assert advance_start(history, dataset, LAST).earliest_version == 5


def test_lease_being_acquired_retains_its_version(
    stores: Stores, history: HistoryStore, leases: ReadLeaseStore, dataset: Dataset, table: list[DataFile]
) -> None:
    """A clean waits for it, and then sees it."""
    checked, cleaned = Event(), Event()

    def acquire_lease() -> None:
        with stores.database.tenant(dataset.tenant_id) as connection:
            share_history(connection, dataset.id)
            checked.set()
            assert not cleaned.wait(0.3), "nothing is forgotten meanwhile"
            check_kept(connection, dataset.id, 1)
            until = func.clock_timestamp() + timedelta(seconds=60)
            new = {"dataset_id": dataset.id, "reader": "r", "version": 1, "lease_until": until}
            connection.execute(insert(read_leases).values(new))

    def clean() -> None:
        assert checked.wait(10)
        advance_start(history, dataset, LAST)
        expire_files(history, dataset)
        cleaned.set()

    together([acquire_lease, clean])
    assert readable(leases, dataset) == [1, 5]
    assert listed(stores, dataset) == paths([table[0], table[4]])


def test_racing_leases_and_cleans_agree(
    stores: Stores, history: HistoryStore, leases: ReadLeaseStore, dataset: Dataset, write: Write
) -> None:
    """Who got a hold finds its file, round after round; who did not got an error."""
    last = write()
    for number in range(8):
        before = last
        last = write(before)
        version = stores.catalog.get(dataset.tenant_id, dataset.id).version - 1
        got: list[bool] = []

        def acquire_lease(version: int = version, got: list[bool] = got, number: int = number) -> None:
            try:
                leases.acquire(dataset.tenant_id, dataset.id, version, f"reader {number}", 60)
            except VersionExpired:
                got.append(False)
            else:
                got.append(True)

        def clean() -> None:
            advance_start(history, dataset, LAST)
            expire_files(history, dataset)

        together([acquire_lease, clean])
        assert (before.path in listed(stores, dataset)) == got[0]
        assert (version in readable(leases, dataset, range(version, version + 1))) == got[0]


def test_commit_that_checks_a_file_delays_its_expiry(
    stores: Stores, history: HistoryStore, dataset: Dataset, table: list[DataFile]
) -> None:
    """One that lists a file of before again would otherwise do so while it goes."""
    advance_start(history, dataset, LAST)
    file_checked, expired_versions = Event(), Event()

    def commit() -> None:
        with stores.database.tenant(dataset.tenant_id) as connection:
            lock_heads(connection, [dataset.id])
            file_checked.set()
            assert not expired_versions.wait(0.3)

    def clean() -> None:
        assert file_checked.wait(10)
        assert expire_files(history, dataset).files == 4
        expired_versions.set()

    together([commit, clean])


def test_waiting_or_running_clean_prevents_another(
    stores: Stores, history: HistoryStore, dataset: Dataset, table: list[DataFile]
) -> None:
    expiry = partial(history.expiry, dataset.tenant_id, dataset.id, LAST, TimelinePolicy())
    assert expiry().due
    new = NewJob(id=new_id(), instant_id=new_instant_id(), dataset_id=dataset.id, request=CleanTask())
    stores.jobs.accept(dataset.tenant_id, new)
    assert not expiry().due


def test_expiry_of_an_unknown_dataset_is_not_found(
    stores: Stores, history: HistoryStore, dataset: Dataset, table: list[DataFile], tenant_id: str
) -> None:
    neighbour = stores.tenants.add_tenant(f"neighbour-{tenant_id}")
    with pytest.raises(NotFound):
        history.advance_start(neighbour, dataset.id, LAST)
    advance_start(history, dataset, LAST)
    with pytest.raises(NotFound):
        history.expire_files(neighbour, dataset.id, 0, 100)
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        advance_start(history, dataset, LAST)
