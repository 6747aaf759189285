"""What happens to sources in the transactions of other rooms: a round ends, a dataset is deleted."""

from __future__ import annotations

from sqlalchemy import Connection, case, delete, func, select, update

from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.tables import jobs
from app.core.timeline.values import Checkpoint, NewCommit, Overtaken, Published
from app.features.sources.repository.rounds import failure_values, insert_items
from app.features.sources.tables import sources
from app.features.sources.values import RECENT_ROUNDS, RoundTime, SourceState, StoredRound
from app.infra.db.times import lease_end
from app.kernel.format.errors import Fault
from app.kernel.format.instant import RowCounts


class SourceParticipant:
    """Sources in commits, in failures of jobs and in deletions of datasets."""

    def publishing(self, connection: Connection, commit: NewCommit) -> Overtaken | None:
        """Moves the position of the source whose rows are committed; Overtaken if it was moved meanwhile."""
        checkpoint = commit.checkpoint
        if checkpoint is None:
            return None
        last_round = _last_round(connection, commit, checkpoint)
        statement = (
            update(sources)
            .where(sources.c.id == checkpoint.source_id, sources.c.rounds == checkpoint.since)
            .values(
                position=checkpoint.position,
                rounds=checkpoint.since + 1,
                failures=0,
                error=None,
                state=case(
                    (sources.c.state == SourceState.FAILED.value, SourceState.ACTIVE.value),
                    else_=sources.c.state,
                ),
                due_at=lease_end(checkpoint.due_seconds),
                last_round=last_round,
            )
        )
        if not connection.execute(statement).rowcount:
            return Overtaken(dataset_id=commit.dataset_id, since=checkpoint.since)
        insert_items(connection, checkpoint.source_id, checkpoint.items, checkpoint.since + 1)
        return None

    def published(self, connection: Connection, commit: NewCommit, publication: Published) -> None:
        """A new version changes no source."""

    def job_failed(self, connection: Connection, job_id: str, kind: JobKind, fault: Fault) -> None:
        """Stores the fault of a round with its source."""
        if kind is not JobKind.SOURCE_ROUND:
            return
        request = connection.execute(select(jobs.c.request).where(jobs.c.id == job_id)).scalar_one()
        this_source = sources.c.id == request.round.source_id
        failures = connection.execute(
            select(sources.c.failures).where(this_source).with_for_update()
        ).scalar_one_or_none()
        if failures is None:
            return
        values = failure_values(failures, fault)
        if "state" in values:
            # One that its user has paused stays paused.
            values["state"] = case(
                (sources.c.state == SourceState.PAUSED.value, sources.c.state), else_=values["state"]
            )
        connection.execute(update(sources).where(this_source).values(values))

    def job_cancelled(self, connection: Connection, job_id: str, kind: JobKind) -> None:
        """A cancelled round changes no source: it is due again after its pause."""

    def dataset_deleted(self, connection: Connection, dataset_id: str) -> None:
        """Deletes the sources of the dataset; their jobs were cancelled before."""
        connection.execute(delete(sources).where(sources.c.dataset_id == dataset_id))


def _last_round(connection: Connection, commit: NewCommit, checkpoint: Checkpoint) -> StoredRound:
    """The round that is committed, after the ones before it."""
    job_id = commit.outcomes[0].claim.job_id
    start_time = func.coalesce(jobs.c.started_at, jobs.c.created_at)
    times = select(start_time.label("started_at"), func.clock_timestamp().label("ended_at"))
    row = connection.execute(times.where(jobs.c.id == job_id)).one()
    of_source = select(sources.c.last_round).where(sources.c.id == checkpoint.source_id)
    before: StoredRound | None = connection.execute(of_source).scalar_one_or_none()
    counts = sum((outcome.counts for outcome in commit.outcomes), RowCounts())
    this = RoundTime(rows=counts.sent, started_at=row.started_at, ended_at=row.ended_at)
    return StoredRound(
        number=checkpoint.since + 1,
        job_id=job_id,
        rows=counts,
        items=len(checkpoint.items),
        ended_at=row.ended_at,
        recent=(*(before.recent if before else ()), this)[-RECENT_ROUNDS:],
    )
