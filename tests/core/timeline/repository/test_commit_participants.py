"""Participants of the commit transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Connection, select

from app.core.catalog.tables import heads
from app.core.catalog.values import Dataset
from app.core.jobs.values import Job, JobState
from app.core.timeline.repository.timeline import TimelineStore
from app.core.timeline.values import NewCommit, Published
from app.kernel.format.errors import CommitConflict
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores


@dataclass
class Recorder:
    """What a participant gets, and at which version it finds the head."""

    name: str
    calls: list[tuple[str, str, int]] = field(default_factory=list)
    refuses: bool = False

    def _note(self, connection: Connection, step: str, commit: NewCommit) -> None:
        query = select(heads.c.version).where(heads.c.dataset_id == commit.dataset_id)
        self.calls.append((self.name, step, connection.execute(query).scalar_one()))

    def publishing(self, connection: Connection, commit: NewCommit) -> None:
        self._note(connection, "publishing", commit)
        if self.refuses:
            raise CommitConflict("the participant refuses", retryable=True)

    def published(self, connection: Connection, commit: NewCommit, published: Published) -> None:
        self._note(connection, "published", commit)


def test_participants_are_called_in_order_before_and_after_the_version(
    stores: Stores, dataset: Dataset, running: Callable[[], Job]
) -> None:
    first = Recorder("first")
    second = Recorder("second", calls=first.calls)
    timeline = TimelineStore(stores.database, [first, second])
    timeline.publish(dataset.tenant_id, [commit_of([running()], [message(changes=1)])])
    assert first.calls == [
        ("first", "publishing", 0),
        ("second", "publishing", 0),
        ("first", "published", 1),
        ("second", "published", 1),
    ]


def test_a_commit_without_changes_makes_no_version_for_participants(
    stores: Stores, dataset: Dataset, running: Callable[[], Job]
) -> None:
    recorder = Recorder("only")
    TimelineStore(stores.database, [recorder]).publish(dataset.tenant_id, [commit_of([running()], [])])
    assert recorder.calls == [("only", "publishing", 0)]


def test_a_participant_that_refuses_undoes_the_commit(
    stores: Stores, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job, last = running(), Recorder("last")
    timeline = TimelineStore(stores.database, [Recorder("refusing", refuses=True), last])
    with pytest.raises(CommitConflict):
        timeline.publish(dataset.tenant_id, [commit_of([job], [message(changes=1)])])
    assert last.calls == []
    assert stores.catalog.get(dataset.tenant_id, dataset.id).version == 0
    assert stores.jobs.get(dataset.tenant_id, job.id).state is JobState.RUNNING
