"""Commit slots: when a table service may publish, and how long no writes are claimed meanwhile.

A claim of writes and a commit of a table service both lock the row of the dataset first. A service that finds no
running writes therefore publishes before any are claimed. Locks are taken in the order head, dataset, jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, any_, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from app.core.catalog.tables import datasets, heads
from app.core.jobs.repository.outbox import post
from app.core.jobs.tables import jobs
from app.core.jobs.values import JobQueue, JobState
from app.infra.db.times import lease_end

_LOCK: Final = (
    select(datasets.c.id)
    .where(
        datasets.c.id == any_(bindparam("ids", type_=ARRAY(datasets.c.id.type))),
        datasets.c.deleted_at.is_(None),
    )
    .order_by(datasets.c.id)
    .with_for_update(key_share=True)
)


def lock_datasets(connection: Connection, dataset_ids: Sequence[str]) -> set[str]:
    """Makes claims of these datasets serial; returns those that are live.

    The locks go along with the share that accepting a write takes.
    """
    return set(connection.execute(_LOCK, {"ids": list(dataset_ids)}).scalars()) if dataset_ids else set()


def running_groups(connection: Connection, dataset_id: str) -> int:
    """How many groups of writes run in the dataset, which the caller has locked. One whose lease ran out does not."""
    running = select(func.count(jobs.c.group_id.distinct())).where(
        jobs.c.dataset_id == dataset_id,
        jobs.c.lane == JobQueue.WRITES.value,
        jobs.c.state == JobState.RUNNING.value,
        jobs.c.lease_until >= func.clock_timestamp(),
    )
    return int(connection.execute(running).scalar_one())


def request_slot(connection: Connection, dataset_id: str, seconds: float) -> None:
    """Has no writes claimed for so long. The caller has locked head and dataset."""
    until = lease_end(seconds)
    connection.execute(update(heads).where(heads.c.dataset_id == dataset_id).values(turn_until=until))


def release_slot(connection: Connection, dataset_id: str) -> None:
    """Lets writes be claimed again, and says so if they could not."""
    conditions = heads.c.dataset_id == dataset_id, heads.c.turn_until.is_not(None)
    if connection.execute(update(heads).where(*conditions).values(turn_until=None)).rowcount:
        post(connection, "work", dataset_id)
