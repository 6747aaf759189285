"""Usage by jobs, in the transactions in which they end; and the quotas of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, Connection, Select, any_, bindparam, cast, exists, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from app.access.tenants.quotas import METERED, Quotas, quotas_of
from app.access.tenants.repository.quotas import STORED_QUOTAS, check_count, check_metered, lock_quota
from app.access.tenants.tables import dataset_hours, usage_days
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.repository.job_locks import LEASE_LAPSED, RUNNING, has_state, in_queue
from app.core.jobs.repository.outbox import post
from app.core.jobs.tables import jobs
from app.core.jobs.values import JobQueue, JobState, NewJob
from app.kernel.format.operation import Operation

_COUNTERS: Final = ("rows_written", "bytes_written", "changes", "job_milliseconds")
_DELETIONS: Final = (Operation.DELETE, Operation.DELETE_PARTITION)
_QUEUED: Final = jobs.c.state == JobState.QUEUED.value
QUEUED_JOBS: Final[Select[int]] = select(func.count()).where(_QUEUED, jobs.c.actor.is_not(None))
"""The jobs of the quota `queued_jobs`."""
RUNNING_JOBS: Final[Select[int]] = select(func.count(jobs.c.group_id.distinct())).where(
    RUNNING, ~LEASE_LAPSED
)
"""The jobs of the quota `running_jobs`: writes that are claimed together are one."""


_RAN: Final = func.max(jobs.c.finished_at) - func.min(jobs.c.claimed_at)
_MILLISECONDS: Final = cast(func.ceil(func.extract("epoch", _RAN) * 1000), BigInteger)
_OF_JOBS: Final = jobs.c.id == any_(bindparam("job_ids", type_=ARRAY(jobs.c.id.type)))
_NEW: Final = insert(usage_days).values(
    day=func.current_date(),
    dataset_id=bindparam("dataset"),
    rows_written=bindparam("rows"),
    bytes_written=bindparam("size"),
    changes=bindparam("new_changes"),
    job_milliseconds=func.coalesce(select(_MILLISECONDS).where(_OF_JOBS).scalar_subquery(), 0),
)
_MORE_WRITES: Final = (
    select(jobs.c.id)
    .where(
        jobs.c.dataset_id == bindparam("of", type_=jobs.c.dataset_id.type),
        has_state(JobState.QUEUED),
        in_queue(JobQueue.WRITES),
    )
    .exists()
)
_HOUR: Final = insert(dataset_hours).from_select(
    ["dataset_id", "hour", "writes", "rows_written"],
    select(
        bindparam("dataset", type_=dataset_hours.c.dataset_id.type),
        func.date_trunc("hour", func.clock_timestamp()),
        bindparam("writes", type_=BigInteger),
        bindparam("rows", type_=BigInteger),
    ).where(bindparam("writes", type_=BigInteger) > 0),
    include_defaults=False,
)
_ADD_HOUR: Final = _HOUR.on_conflict_do_update(
    index_elements=["tenant_id", "dataset_id", "hour"],
    set_={name: dataset_hours.c[name] + _HOUR.excluded[name] for name in ("writes", "rows_written")},
).cte("hours")
# A part of each commit, made once.
_METER: Final = (
    _NEW.on_conflict_do_update(
        index_elements=["tenant_id", "day", "dataset_id"],
        set_={name: usage_days.c[name] + _NEW.excluded[name] for name in _COUNTERS},
    )
    .returning(STORED_QUOTAS.label("quotas"), _MORE_WRITES.label("more"))
    .add_cte(_ADD_HOUR)
)


def meter(
    connection: Connection,
    dataset_id: str,
    job_ids: Sequence[str],
    *,
    rows: int = 0,
    size: int = 0,
    changes: int = 0,
    writes: int = 0,
) -> bool:
    """Adds to the usage of the day and the hour what jobs of a dataset have done that end now, and how long they ran
    together.

    Only the attempt that ended them counts: not those that were lost or interrupted, nor pauses between them.
    `size`: bytes. `writes`: the jobs that have written rows. It is the last lock of its transaction; of several
    datasets, in the order of their ids. As its statement is the last one, it also returns whether more writes of the
    dataset wait.
    """
    values = {
        "dataset": dataset_id,
        "of": dataset_id,
        "rows": rows,
        "size": size,
        "new_changes": changes,
        "writes": writes,
        "job_ids": list(job_ids),
    }
    row = connection.execute(_METER, values).one()
    if quotas_of(row.quotas).limit("running_jobs") is not None:
        _wake_next(connection)
    return bool(row.more)


def may_run_another(connection: Connection, quotas: Quotas) -> bool:
    """Whether the tenant may run one more job. If it has the quota, its claims wait for each other here."""
    limit = quotas.limit("running_jobs")
    if limit is None:
        return True
    lock_quota(connection, "running_jobs")
    return connection.execute(RUNNING_JOBS).scalar_one() < limit


def check_job_quotas(connection: Connection, quotas: Quotas, new: Sequence[NewJob]) -> None:
    """Called after requested jobs were inserted. Raises QuotaExceeded if they go beyond a quota of the tenant."""
    requests = [each for each in new if each.actor is not None]
    if not requests or not quotas.limits:
        return
    writes = [each.write for each in requests if isinstance(each.request, WriteRequest)]
    if any(write.operation not in _DELETIONS for write in writes):
        check_metered(connection, quotas, METERED)
    elif writes:
        check_metered(connection, quotas, ("rows_per_day", "bytes_per_day"))
    check_count(connection, "queued_jobs", QUEUED_JOBS, quotas)


def _wake_next(connection: Connection) -> None:
    """Leaves messages for the datasets that have waited longest: their jobs may have waited for the one that ends."""
    waiting, running = jobs.alias("waiting"), jobs.alias("running")
    for queue, topic in ((JobQueue.WRITES, "work"), (JobQueue.TASKS, "tasks")):
        query = select(waiting.c.dataset_id).where(
            waiting.c.state == JobState.QUEUED.value, waiting.c.lane == queue.value
        )
        if queue is JobQueue.WRITES:
            busy = exists().where(
                running.c.dataset_id == waiting.c.dataset_id,
                running.c.lane == queue.value,
                running.c.state == JobState.RUNNING.value,
            )
            query = query.where(~busy)
        dataset_id = connection.execute(query.order_by(waiting.c.seq).limit(1)).scalar_one_or_none()
        if dataset_id is not None:
            post(connection, topic, dataset_id)
