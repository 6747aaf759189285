"""Sources in the commit transaction, and the claims of those that are due."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job, JobState
from app.core.timeline.values import Checkpoint, NewCommit, Overtaken, Published, SourceItem
from app.features.sources.repository.rounds import ItemLedger, RoundStore
from app.features.sources.repository.sources import SourceStore
from app.features.sources.service.rounds import new_round
from app.features.sources.values import (
    DataSource,
    NewSource,
    SourceChange,
    SourceDefinition,
    SourceMode,
    SourceState,
)
from app.infra.identifiers import new_id
from app.infra.kafka.errors import SourceUnavailable
from app.kernel.format.errors import CommitConflict, Fault, SchemaMismatch
from tests.support.lakehouse import RULES, commit_of, message
from tests.support.store_fixtures import Stores


@pytest.fixture
def source(stores: Stores, dataset: Dataset) -> DataSource:
    """A source that is due."""
    name = dataset.definition.name
    definition = SourceDefinition(dataset=name, kind="files", config={}, mode=SourceMode.CONTINUOUS)
    new = NewSource(id=new_id(), name="in", dataset_id=dataset.id, definition=definition, secrets={})
    return SourceStore(stores.database, stores.catalog.live.derivations).create(dataset.tenant_id, new)


def _claimed(stores: Stores, source: DataSource) -> Job:
    assert source.dataset_id is not None
    SourceStore(stores.database, stores.catalog.live.derivations).start(
        source.tenant_id, source.id, new_round(source, source.dataset_id)
    )
    [job] = stores.jobs.claim(source.tenant_id, source.dataset_id, "worker", RULES)
    return job


def _commit(source: DataSource, job: Job, read_version: int = 0) -> NewCommit:
    item = SourceItem(name="a.csv", fingerprint=str(source.rounds), checksum="c", size_bytes=1)
    return msgspec.structs.replace(
        commit_of([job], [message(changes=1)], read_version=read_version),
        checkpoint=Checkpoint(
            source_id=source.id, since=source.rounds, position={"files": source.rounds + 1}, items=(item,)
        ),
    )


def _now(stores: Stores, source: DataSource) -> DataSource:
    return RoundStore(stores.database, stores.catalog.live.derivations).get(source.tenant_id, source.id)


def test_commit_moves_the_position_once(stores: Stores, source: DataSource, dataset: Dataset) -> None:
    first = _claimed(stores, source)
    assert isinstance(stores.timeline.publish_one(source.tenant_id, _commit(source, first)), Published)
    moved = _now(stores, source)
    assert (moved.position, moved.rounds) == ({"files": 1}, 1)
    assert moved.last_round is not None
    assert moved.last_round.job_id == first.id
    ledger = ItemLedger(stores.database, source.tenant_id, source.id)
    assert ledger.unread([("a.csv", "0"), ("a.csv", "1")]) == {("a.csv", "1")}
    # A round that was read from the same position.
    second = _claimed(stores, moved)
    late = stores.timeline.publish_one(source.tenant_id, _commit(source, second, read_version=1))
    assert late == Overtaken(dataset_id=dataset.id, since=0)
    assert _now(stores, source).rounds == 1
    assert stores.catalog.get(source.tenant_id, dataset.id).version == 1
    assert stores.jobs.get(source.tenant_id, second.id).state is JobState.RUNNING


def test_reset_position_makes_the_running_round_void(
    stores: Stores, source: DataSource, dataset: Dataset
) -> None:
    job = _claimed(stores, source)
    SourceStore(stores.database, stores.catalog.live.derivations).change(
        source.tenant_id, source.id, SourceChange(revision=None, position={"files": 9})
    )
    outcome = stores.timeline.publish_one(source.tenant_id, _commit(source, job))
    assert isinstance(outcome, Overtaken)
    assert _now(stores, source).position == {"files": 9}


def test_one_of_racing_workers_claims_a_due_source(stores: Stores, source: DataSource) -> None:
    rounds, barrier = RoundStore(stores.database, stores.catalog.live.derivations), Barrier(4)

    def claim() -> DataSource | None:
        barrier.wait(20)
        return rounds.claim(source.tenant_id, source.id, "w", 60)

    assert (source.tenant_id, source.id) in rounds.due(1_000)
    with ThreadPoolExecutor(4) as pool:
        claims = [each.result() for each in [pool.submit(claim) for _ in range(4)]]
    assert len([each for each in claims if each is not None]) == 1
    assert (source.tenant_id, source.id) not in rounds.due(1_000)


def test_one_round_of_a_source_is_unfinished_at_a_time(stores: Stores, source: DataSource) -> None:
    rounds = RoundStore(stores.database, stores.catalog.live.derivations)
    claimed = rounds.claim(source.tenant_id, source.id, "w", 60)
    assert claimed is not None
    assert claimed.dataset_id is not None
    assert rounds.start(claimed, new_round(claimed, claimed.dataset_id), None) is not None
    assert rounds.start(claimed, new_round(claimed, claimed.dataset_id), None) is None


def test_lost_claim_changes_nothing(stores: Stores, source: DataSource) -> None:
    rounds = RoundStore(stores.database, stores.catalog.live.derivations)
    first = rounds.claim(source.tenant_id, source.id, "w", 0)
    second = rounds.claim(source.tenant_id, source.id, "w", 60)
    assert first is not None
    assert second is not None
    rounds.failed(first, Fault.of(SchemaMismatch("late")))
    rounds.settle(first, lag=None, due_seconds=0, state=SourceState.FINISHED)
    assert first.dataset_id is not None
    assert rounds.start(first, new_round(first, first.dataset_id), None) is None
    assert _now(stores, source).state is SourceState.ACTIVE


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (SourceUnavailable("away"), SourceState.ACTIVE),
        (CommitConflict("lost"), SourceState.ACTIVE),
        (SchemaMismatch("bad"), SourceState.FAILED),
    ],
)
def test_failed_round_is_recorded_with_its_source(
    stores: Stores, source: DataSource, error: Exception, state: SourceState
) -> None:
    job = _claimed(stores, source)
    stores.jobs.fail(source.tenant_id, job.claim, Fault.of(error))  # type: ignore[arg-type]
    failed = _now(stores, source)
    assert (failed.state, failed.failures, failed.position) == (state, 1, {})
    assert failed.error is not None
    assert failed.error.detail == str(error)


def test_paused_source_stays_paused_when_its_round_fails(stores: Stores, source: DataSource) -> None:
    job = _claimed(stores, source)
    SourceStore(stores.database, stores.catalog.live.derivations).change(
        source.tenant_id, source.id, SourceChange(revision=None, state=SourceState.PAUSED)
    )
    stores.jobs.fail(source.tenant_id, job.claim, Fault.of(SchemaMismatch("bad")))
    assert _now(stores, source).state is SourceState.PAUSED


def test_sources_of_a_worker_that_has_ended_are_due_at_once(stores: Stores, source: DataSource) -> None:
    rounds = RoundStore(stores.database, stores.catalog.live.derivations)
    claimed = rounds.claim(source.tenant_id, source.id, "ended", 60)
    assert claimed is not None
    rounds.end_claims("another")
    assert rounds.claim(source.tenant_id, source.id, "next", 60) is None
    rounds.end_claims("ended")
    assert (source.tenant_id, source.id) in rounds.due(10_000)
    following = rounds.claim(source.tenant_id, source.id, "next", 60)
    assert following is not None
    # The claim that was ended changes nothing any more.
    rounds.settle(claimed, lag=None, due_seconds=3600, state=SourceState.FINISHED)
    assert _now(stores, source).state is SourceState.ACTIVE
    # A claim that has been settled is not ended once more.
    rounds.settle(following, lag=None, due_seconds=3600)
    rounds.end_claims("next")
    assert (source.tenant_id, source.id) not in rounds.due(10_000)
