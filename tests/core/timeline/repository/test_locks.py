"""Locks that make one transaction wait for another: each race is stopped where it would go wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import msgspec
import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from app.core.catalog.errors import SchemaChanged
from app.core.catalog.impact import ColumnReader, SchemaStep
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.repository.live_datasets import share_schemas
from app.core.catalog.tables import heads
from app.core.catalog.values import Dataset
from app.core.changes.repository import lock_feed
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import add_follower
from app.core.consumers.tables import consumers
from app.core.jobs.errors import BatchOutOfOrder
from app.core.jobs.repository.accept import accept_jobs
from app.core.jobs.repository.metering import meter
from app.core.jobs.values import Accepted, Job, NewJob
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.kept_versions import check_kept, lock_history, share_history
from app.core.timeline.repository.publish import lock_heads
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.tables import read_leases
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.repository.history import HistoryStore
from app.features.transactions.values import NewTransaction
from app.infra.db.session import Database
from app.infra.db.times import lease_end
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.dataset import DatasetDefinition, Retention
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.schema_change import DropField
from app.kernel.format.errors import Fault
from app.process.features import CATALOG_PARTICIPANTS
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.waiting import until

Result = TypeVar("Result")
_WAITERS = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()")


@contextmanager
def racing(connection: Connection, call: Callable[[], Result]) -> Iterator[Future[Result]]:
    """Calls it in another thread until it has ended or waits for a lock; on leaving it may go on."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        until(
            lambda: future.done() or connection.execute(_WAITERS).scalar_one() > 0,
            "the call to wait or to end",
        )
        yield future


def batch(dataset: Dataset, number: int) -> NewJob:
    new = new_job(dataset.id)
    options = WriteOptions(writer_id="w", batch_id=number)
    return msgspec.structs.replace(new, request=msgspec.structs.replace(new.request, options=options))


def test_batch_that_another_request_is_about_to_take_is_answered_with_its_job(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    first, second = batch(dataset, 1), batch(dataset, 1)
    with stores.database.tenant(tenant_id) as connection:
        accept_jobs(connection, [first])
        with racing(connection, lambda: stores.jobs.accept(tenant_id, second)) as other:
            connection.commit()
    outcome = other.result()
    assert (outcome.job.id, outcome.is_replay) == (first.id, True)


def test_batch_below_one_that_another_request_is_about_to_take_is_out_of_order(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    with stores.database.tenant(tenant_id) as connection:
        accept_jobs(connection, [batch(dataset, 2)])
        with racing(connection, lambda: _accepted(stores, tenant_id, batch(dataset, 1))) as other:
            connection.commit()
    assert isinstance(other.result(), BatchOutOfOrder)


def _accepted(stores: Stores, tenant_id: str, new: NewJob) -> Accepted | BatchOutOfOrder:
    try:
        return stores.jobs.accept(tenant_id, new)
    except BatchOutOfOrder as error:
        return error


@pytest.fixture
def cleaned(stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]) -> Dataset:
    """A history of two versions that begins at the second, which has removed the file of the first."""
    first = message(0)
    stores.timeline.publish_one(tenant_id, commit_of([running()], [first]))
    removal = CommitMessage(file_group=first.file_group, removed=(first.added[0].path,))
    stores.timeline.publish_one(tenant_id, commit_of([running()], [removal], read_version=1))
    ReadLeaseStore(stores.database).acquire(tenant_id, dataset.id, 1, "first", 60)
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(update(heads).where(heads.c.dataset_id == dataset.id).values(earliest_version=2))
    return dataset


def test_version_that_a_reader_is_about_to_pin_keeps_its_files(
    stores: Stores, tenant_id: str, cleaned: Dataset
) -> None:
    """The reader has found the version kept by another's lease, which ends before the reader commits its own."""
    history, leases = HistoryStore(stores.database), ReadLeaseStore(stores.database)
    with stores.database.tenant(tenant_id) as connection:
        share_history(connection, cleaned.id)
        check_kept(connection, cleaned.id, 1)
        leases.release(tenant_id, cleaned.id, "first")
        with racing(connection, lambda: history.expire_files(tenant_id, cleaned.id, 0, 10)) as expired:
            connection.execute(
                insert(read_leases).values(
                    dataset_id=cleaned.id, reader="second", version=1, lease_until=lease_end(60)
                )
            )
            connection.commit()
    assert expired.result().files == 0
    assert len(stores.timeline.live_files(tenant_id, cleaned.id, 1, None)) == 1
    leases.release(tenant_id, cleaned.id, "second")
    assert history.expire_files(tenant_id, cleaned.id, 0, 10).files == 1


def test_version_that_a_clean_is_about_to_expire_cannot_be_pinned(
    stores: Stores, tenant_id: str, cleaned: Dataset
) -> None:
    """The clean has deleted the lease that kept the version, and another reader comes before it commits."""
    leases = ReadLeaseStore(stores.database)
    with stores.database.tenant(tenant_id) as connection:
        lock_history(connection, cleaned.id)
        connection.execute(delete(read_leases).where(read_leases.c.dataset_id == cleaned.id))
        with racing(connection, lambda: _pinned(leases, tenant_id, cleaned.id)) as pinned:
            connection.commit()
    assert pinned.result() is False


def _pinned(leases: ReadLeaseStore, tenant_id: str, dataset_id: str) -> bool:
    try:
        leases.acquire(tenant_id, dataset_id, 1, "second", 60)
    except VersionExpired:
        return False
    return True


@pytest.fixture
def feed(stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]) -> Dataset:
    """Commits of 3, 2 and 4 changes, of which the last change is to be kept."""
    for version, changes in enumerate((3, 2, 4)):
        commit = commit_of([running()], [message(version, changes=changes)], read_version=version)
        stores.timeline.publish_one(tenant_id, commit)
    before = stores.catalog.get(tenant_id, dataset.id)
    changelog = msgspec.structs.replace(before.definition.changelog, retention=Retention(changes=1))
    definition = msgspec.structs.replace(before.definition, changelog=changelog)
    return stores.catalog.evolve(
        tenant_id, dataset.id, definition, version=before.version, instant_id=new_instant_id()
    )


def cut(stores: Stores, feed: Dataset) -> int:
    return RetentionStore(stores.database).cut(feed.tenant_id, feed.id, follower_lag_seconds=60)


def test_feed_is_cut_behind_a_consumer_that_is_being_made(stores: Stores, feed: Dataset) -> None:
    """The cut waits for the consumer, which receives all that the feed has when the consumer is created."""
    with stores.database.tenant(feed.tenant_id) as connection:
        lock_feed(connection, feed.id)
        with racing(connection, lambda: cut(stores, feed)) as changes:
            add_follower(connection, feed.id, "c", ConsumerKind.READER, 3)
            connection.commit()
    assert changes.result() == 3


def test_feed_is_cut_behind_a_consumer_that_is_being_moved(stores: Stores, feed: Dataset) -> None:
    """Its old position is beyond the lag that keeps changes; the new one is not."""
    with stores.database.tenant(feed.tenant_id) as connection:
        add_follower(connection, feed.id, "c", ConsumerKind.READER, 0, max_lag_rows=6)
    with stores.database.tenant(feed.tenant_id) as connection:
        connection.execute(update(consumers).where(consumers.c.dataset_id == feed.id).values(position=3))
        with racing(connection, lambda: cut(stores, feed)) as changes:
            connection.commit()
    assert changes.result() == 3


def without_value(dataset: Dataset) -> DatasetDefinition:
    """The definition under its next schema, without its last field."""
    return evolve(dataset.definition, [DropField(name=dataset.definition.schema.fields[-1].name)])


def test_schema_changes_once_what_is_registered_meanwhile_is_there(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    """The change waits, so that what it breaks includes what was checked against the schema before it."""
    seen: list[str] = []

    class Registered:
        def readers(
            self, connection: Connection, dataset_id: str, step: SchemaStep
        ) -> Sequence[ColumnReader]:
            seen.extend(connection.execute(select(consumers.c.name)).scalars())
            return []

        def pause(self, connection: Connection, broken: Sequence[ColumnReader]) -> None:
            assert not broken

    catalog = CatalogStore(
        stores.database, dataclasses.replace(CATALOG_PARTICIPANTS, readers=(Registered(),))
    )

    def change() -> Dataset:
        return catalog.evolve(
            tenant_id, dataset.id, without_value(dataset), version=0, instant_id=new_instant_id()
        )

    with stores.database.tenant(tenant_id) as connection:
        share_schemas(connection, {dataset.id: 1})
        with racing(connection, change) as changed:
            add_follower(connection, dataset.id, "view:x", ConsumerKind.VIEW, 0)
            connection.commit()
    assert changed.result().definition.schema.id == 2
    assert seen == ["view:x"]
    with stores.database.tenant(tenant_id) as connection, pytest.raises(SchemaChanged):
        share_schemas(connection, {dataset.id: 1})


def test_heads_are_locked_in_the_order_of_their_ids_whatever_the_plan(
    stores: Stores, database: Database, tenant_id: str
) -> None:
    """Two commits of the same datasets would otherwise wait for each other."""
    first, second = sorted(
        stores.catalog.create(tenant_id, new_id(), definition(name)).id for name in ("one", "two")
    )
    # The rows now lie in the other order on disk.
    with database.tenant(tenant_id) as connection:
        connection.execute(update(heads).where(heads.c.dataset_id == second).values(earliest_version=0))
        connection.execute(update(heads).where(heads.c.dataset_id == first).values(earliest_version=0))

    def lock_both() -> None:
        with database.tenant(tenant_id) as connection:
            for index in ("indexscan", "bitmapscan", "indexonlyscan"):
                connection.execute(text(f"SET LOCAL enable_{index} = off"))
            lock_heads(connection, [second, first])

    of_first, of_second = (
        select(heads.c.version).where(heads.c.dataset_id == each) for each in (first, second)
    )
    with database.tenant(tenant_id) as connection:
        connection.execute(of_first.with_for_update())
        with racing(connection, lock_both):
            assert connection.execute(of_second.with_for_update(skip_locked=True)).all() != []
            connection.commit()


@pytest.mark.parametrize("failed", [0, 1])
def test_failing_transaction_meters_its_datasets_in_the_order_of_all_others(
    stores: Stores, tenant_id: str, failed: int
) -> None:
    """Whichever write has failed: in another order it would wait for a transaction that waits for it."""
    made = [stores.catalog.create(tenant_id, new_id(), definition(f"d{number}")) for number in range(2)]
    low, high = sorted(dataset.id for dataset in made)
    jobs = (new_job(low), new_job(high))
    stores.transactions.accept(tenant_id, NewTransaction(id=new_id(), jobs=jobs))
    claimed = stores.jobs.claim(tenant_id, low, "worker", RULES)
    fault = Fault(code="duplicate-key", title="t", detail="d")
    with stores.database.tenant(tenant_id) as connection:
        meter(connection, low, [])
        with racing(connection, lambda: stores.jobs.fail(tenant_id, claimed[failed].claim, fault)) as fails:
            assert not fails.done()
            meter(connection, high, [])
            connection.commit()
    assert fails.result()
