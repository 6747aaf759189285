"""Moves of the instants of jobs, as part of the statements that move the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, Update, any_, func, literal, update
from sqlalchemy.dialects.postgresql import ARRAY

from app.core.jobs.tables import instants
from app.infra.db.any_of import any_of
from app.kernel.format.instant import InstantEvent, InstantState, next_state, states_before


def move_instants(connection: Connection, job_ids: Sequence[str], event: InstantEvent) -> None:
    """Applies an event to the instants of these jobs."""
    connection.execute(moved_instants(literal(list(job_ids), ARRAY(instants.c.job_id.type)), event))


def moved_instants(job_ids: BindParameter[Any], event: InstantEvent) -> Update:
    """The statement that applies an event to the instants of these jobs."""
    before = states_before(event)
    after = next_state(before[0], event)
    ends = after in (InstantState.ROLLED_BACK, InstantState.COMPLETED)
    return (
        update(instants)
        .where(
            instants.c.job_id == any_(job_ids), any_of(instants.c.state, [state.value for state in before])
        )
        .values(state=after.value, completed_at=func.clock_timestamp() if ends else None)
    )
