"""The ends of a job other than success: cancelled, failed; its instant is rolled back with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from app.lake.instant import InstantEvent, InstantState, next_state, states_before
from app.services.model import Fault, JobState, Progress
from app.store.models import instants, jobs, outbox

UNFINISHED = jobs.c.state.in_([state.value for state in JobState if not state.final])
NO_LEASE: dict[str, Any] = {"owner": None, "group_id": None, "lease_until": None}


def lock_jobs(connection: Connection, *conditions: ColumnElement[bool]) -> list[str]:
    """The ids of the jobs that meet the conditions, in order of acceptance, locked.

    Whoever changes several jobs of a dataset locks them in this one order, so that no two wait in a ring.
    """
    query = select(jobs.c.id).where(*conditions).order_by(jobs.c.seq).with_for_update(key_share=True)
    return list(connection.execute(query).scalars())


def end_jobs(connection: Connection, ids: Sequence[str], state: JobState, fault: Fault | None = None) -> None:
    """Ends unfinished jobs that the caller has locked. The epoch rises: every claim on them is void."""
    if not ids:
        return
    connection.execute(
        update(jobs)
        .where(jobs.c.id.in_(ids))
        .values(
            state=state.value,
            epoch=jobs.c.epoch + 1,
            progress=Progress(stage=state.value),
            error=fault,
            finished_at=func.clock_timestamp(),
            **NO_LEASE,
        )
    )
    move_instants(connection, ids, InstantEvent.ABANDON)


def cancel_jobs(connection: Connection, dataset_id: str) -> None:
    """Cancels all unfinished jobs of a dataset."""
    end_jobs(
        connection, lock_jobs(connection, jobs.c.dataset_id == dataset_id, UNFINISHED), JobState.CANCELLED
    )


def move_instants(connection: Connection, job_ids: Sequence[str], event: InstantEvent) -> None:
    """Applies an event to the instants of these jobs."""
    before = states_before(event)
    after = next_state(before[0], event)
    completed_at = func.clock_timestamp() if after is InstantState.ROLLED_BACK else None
    connection.execute(
        update(instants)
        .where(instants.c.job_id.in_(job_ids), instants.c.state.in_([state.value for state in before]))
        .values(state=after.value, completed_at=completed_at)
    )


def post(connection: Connection, topic: str, dataset_id: str) -> None:
    """Leaves a message for the relay, to be sent once this transaction is durable."""
    connection.execute(insert(outbox).values(topic=topic, dataset_id=dataset_id))
