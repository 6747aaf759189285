"""What the catalogue refuses although no caller requests it: each would leave rows that contradict one another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs
from sqlalchemy import delete

from app.core.catalog.values import Dataset
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import FollowerStore, add_follower
from app.core.jobs.tables import instants
from app.core.jobs.values import Job
from app.core.timeline.archives import TimelineArchive
from app.core.timeline.repository.archives import TimelineArchiveStore
from app.core.timeline.repository.conflict_window import InconsistentCommit
from app.core.timeline.values import Advance, Overtaken
from app.infra.identifiers import new_id
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores


def test_commit_of_a_job_without_an_instant_is_refused(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    """Its version would name an instant that the timeline does not have."""
    job = running()
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(delete(instants).where(instants.c.job_id == job.id))
    with pytest.raises(InconsistentCommit, match="1 instants were to be completed, not 0"):
        stores.timeline.publish(tenant_id, [commit_of([job], [message()])])
    assert stores.catalog.get(tenant_id, dataset.id).version == 0


def test_outcome_of_commits_is_unknown_unless_all_of_them_were_published(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    done = running()
    stores.timeline.publish(tenant_id, [commit_of([done], [message()])])
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    stores.jobs.accept(tenant_id, new_job(other.id))
    [waits] = stores.jobs.claim(tenant_id, other.id, "worker", RULES)
    ask = stores.timeline.outcome_of
    assert ask(tenant_id, {dataset.id: [done.id], other.id: [waits.id]}) is None
    stores.timeline.publish(tenant_id, [commit_of([waits], [message()])])
    found = ask(tenant_id, {dataset.id: [done.id], other.id: [waits.id]})
    assert found is not None
    assert len(found) == 2


def test_open_instant_is_not_archived(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    """Its commit would not find it."""
    job = running()
    archive = TimelineArchive(
        path="x",
        first_instant=job.instant,
        last_instant=job.instant,
        row_count=1,
        size_bytes=1,
        checksum="",
    )
    archives = TimelineArchiveStore(stores.database)
    assert not archives.archive(tenant_id, dataset.id, job.claim, archive, [job.instant])
    assert archives.before(tenant_id, dataset.id, None, 9) == []
    assert isinstance(stores.timeline.publish(tenant_id, [commit_of([job], [message()])]), tuple)


def test_commit_of_already_processed_input_is_refused(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    source = stores.catalog.create(tenant_id, new_id(), definition("source"))
    with stores.database.tenant(tenant_id) as connection:
        add_follower(connection, source.id, "view", ConsumerKind.VIEW, 4)
    commit = commit_of([running()], [message()])
    late = Advance(dataset_id=source.id, name="view", since=3, next_since=9, schema_id=1)
    refused = stores.timeline.publish(tenant_id, [structs.replace(commit, advances=(late,))])
    assert refused == Overtaken(dataset_id=dataset.id, since=3)
    assert stores.catalog.get(tenant_id, dataset.id).version == 0
    timely = structs.replace(late, since=4)
    published = stores.timeline.publish(tenant_id, [structs.replace(commit, advances=(timely,))])
    assert isinstance(published, tuple)


def test_commit_that_is_overtaken_moves_no_position(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    """Also none that was checked before: of two inputs another commit has taken in the second."""
    source = stores.catalog.create(tenant_id, new_id(), definition("source"))
    with stores.database.tenant(tenant_id) as connection:
        add_follower(connection, source.id, "first", ConsumerKind.VIEW, 4)
        add_follower(connection, source.id, "second", ConsumerKind.VIEW, 5)
    commit = commit_of([running()], [message()])
    first = Advance(dataset_id=source.id, name="first", since=4, next_since=9, schema_id=1)
    late = Advance(dataset_id=source.id, name="second", since=3, next_since=9, schema_id=1)
    refused = stores.timeline.publish(tenant_id, [structs.replace(commit, advances=(first, late))])
    assert refused == Overtaken(dataset_id=dataset.id, since=3)
    timely = structs.replace(late, since=5)
    published = stores.timeline.publish(tenant_id, [structs.replace(commit, advances=(first, timely))])
    assert isinstance(published, tuple)


def test_commit_that_moves_a_follower_makes_it_due_again(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    """It is behind after the commit, too, and was not due before."""
    source = stores.catalog.create(tenant_id, new_id(), definition("source"))
    stores.jobs.accept(tenant_id, new_job(source.id))
    [job] = stores.jobs.claim(tenant_id, source.id, "worker", RULES)
    stores.timeline.publish(tenant_id, [commit_of([job], [message(3, changes=9)])])
    with stores.database.tenant(tenant_id) as connection:
        add_follower(connection, source.id, "view", ConsumerKind.VIEW, 4, wake_after_seconds=3_600)
    followers = FollowerStore(stores.database)
    assert followers.claim(tenant_id, source.id, "worker", 60) is None
    stores.outbox.relay(lambda messages: None, 10_000)
    advance = Advance(dataset_id=source.id, name="view", since=4, next_since=6, schema_id=1)
    commit = structs.replace(commit_of([running()], [message()]), advances=(advance,))
    assert isinstance(stores.timeline.publish(tenant_id, [commit]), tuple)
    assert followers.claim(tenant_id, source.id, "worker", 60) is not None
    sent: list[tuple[str, str | None]] = []
    stores.outbox.relay(lambda messages: sent.extend((each.topic, each.dataset_id) for each in messages), 10)
    assert ("follow", source.id) in sent
