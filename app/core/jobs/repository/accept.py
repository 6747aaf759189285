"""Accepting jobs: all of a batch in one transaction, each with an outcome of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, insert, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.errors import NotFound
from app.access.tenants.quotas import quotas_of
from app.access.tenants.repository.quotas import STORED_QUOTAS
from app.core.catalog.repository.live_datasets import share_datasets
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.kinds.declared import instant_action
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.repository.job_row import JOB_COLUMNS, get_job, job_from
from app.core.jobs.repository.metering import check_job_quotas
from app.core.jobs.repository.outbox import post
from app.core.jobs.repository.replays import key_row, replayed_job
from app.core.jobs.repository.writer_batches import reserve_batches
from app.core.jobs.tables import idempotency, instants, jobs
from app.core.jobs.values import Accepted, Job, JobQueue, JobState, NewJob, Progress
from app.infra.db.acts import act_concerns
from app.infra.instruments import STAGES
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.instant import InstantState, RowCounts

# The statements of each acceptance, made once. In order: the sequence behind the order of acceptance counts on as the
# rows come. The quotas come along: a statement of their own would cost tenants without quotas, too.
_INSERT: Final = insert(jobs).returning(
    *JOB_COLUMNS, STORED_QUOTAS.label("quotas"), sort_by_parameter_order=True
)
_INSERT_INSTANTS: Final = insert(instants)


def accept_jobs(connection: Connection, new: Sequence[NewJob]) -> list[Accepted | HeadwaterError]:
    """Inserts the jobs that are new; one outcome per job, in order.

    Raises QuotaExceeded if they go beyond a quota together: then the caller tries them one by one.
    """
    live = share_datasets(connection, {each.dataset_id for each in new})
    batches = reserve_batches(connection, [each for each in new if each.dataset_id in live])
    reserved_ids = _reserve(connection, [each for each in new if each.dataset_id in live])
    fresh = [
        each
        for each in new
        if each.dataset_id in live
        and each.id not in batches
        and (each.idempotency_key is None or each.id in reserved_ids)
    ]
    new_jobs = insert_jobs(connection, fresh)
    outcomes: list[Accepted | HeadwaterError] = []
    for each in new:
        if each.dataset_id not in live:
            outcomes.append(NotFound(f"there is no dataset {each.dataset_id}"))
        elif each.id in new_jobs:
            outcomes.append(Accepted(job=new_jobs[each.id], is_replay=False))
        elif each.id in batches:
            owner = batches[each.id]
            replay = owner if isinstance(owner, HeadwaterError) else get_job(connection, owner)
            outcomes.append(Accepted(job=replay, is_replay=True) if isinstance(replay, Job) else replay)
        else:
            outcomes.append(_replay(connection, each, each.idempotency_key or ""))
    return outcomes


def _reserve(connection: Connection, new: Sequence[NewJob]) -> set[str]:
    """Gives idempotency keys to the jobs that come first with theirs; returns the ids of those.

    A second request waits here, on the unique key, until the first is durable or gone. Every batch takes its keys in
    the same order, so that no two wait for each other in a ring.
    """
    first: dict[tuple[str, str], NewJob] = {}
    for each in new:
        if each.idempotency_key is not None:
            first.setdefault((each.dataset_id, each.idempotency_key), each)
    if not first:
        return set()
    rows = [
        {
            "dataset_id": dataset_id,
            "key": key,
            "request_hash": first[place].request_hash,
            "job_id": first[place].id,
        }
        for place in sorted(first)
        for dataset_id, key in [place]
    ]
    reserve = insert_unless(idempotency).values(rows).on_conflict_do_nothing().returning(idempotency.c.job_id)
    return set(connection.execute(reserve).scalars())


def _replay(connection: Connection, new: NewJob, key: str) -> Accepted | HeadwaterError:
    """The job that the key belongs to; the new one, if that failed for a reason of the service's own."""
    connection.execute(key_row(new.dataset_id, key).with_for_update())
    try:
        job = replayed_job(connection, new.dataset_id, key, new.request_hash)
    except IdempotencyMismatch as error:
        return error
    if job is not None:
        return Accepted(job=job, is_replay=True)
    of_key = idempotency.c.dataset_id == new.dataset_id, idempotency.c.key == key
    connection.execute(update(idempotency).where(*of_key).values(job_id=new.id))
    return Accepted(job=insert_jobs(connection, [new])[new.id], is_replay=False)


def insert_jobs(
    connection: Connection, new: Sequence[NewJob], transaction_id: str | None = None
) -> dict[str, Job]:
    """The jobs by id, queued in this order, with their instants and a message each to their datasets' workers.

    Raises QuotaExceeded for jobs that were requested.
    """
    if not new:
        return {}
    act_concerns(job=new[0].id)
    values = [_row(each, transaction_id) for each in new]
    jobs_by_id: dict[str, Job] = {}
    for row in connection.execute(_INSERT, values):
        values_by_name = row._asdict()
        stored_quotas = values_by_name.pop("quotas")
        jobs_by_id[row.id] = job_from(values_by_name)
    new_instants = [
        {
            "dataset_id": each.dataset_id,
            "id": each.instant_id,
            "action": action.value,
            "operation": _operation(each),
            "state": InstantState.REQUESTED.value,
            "job_id": each.id,
            "requested_at": jobs_by_id[each.id].created_at,
            "counts": RowCounts(),
            "metadata": each.write.options.metadata or None if _is_write(each) else None,
        }
        for each in new
        if (action := instant_action(each.request)) is not None
    ]
    if new_instants:
        connection.execute(_INSERT_INSTANTS, new_instants)
    for dataset_id, writes in sorted({(each.dataset_id, _is_write(each)) for each in new}):
        post(connection, "work" if writes else "tasks", dataset_id)
    check_job_quotas(connection, quotas_of(stored_quotas), new)
    return jobs_by_id


def _operation(new: NewJob) -> str:
    return new.write.operation.value if _is_write(new) else new.request.kind.value


def _is_write(new: NewJob) -> bool:
    return isinstance(new.request, WriteRequest)


def _row(new: NewJob, transaction_id: str | None) -> dict[str, Any]:
    request, timings = new.request, None
    if new.began is not None:
        seconds = time.perf_counter() - new.began
        timings = {"accept": round(seconds * 1_000)}
        STAGES.labels("accept", request.kind.value).observe(seconds)
    write = request if isinstance(request, WriteRequest) else None
    return {
        "id": new.id,
        "dataset_id": new.dataset_id,
        "instant_id": new.instant_id,
        "kind": request.kind.value,
        "lane": (JobQueue.TASKS if write is None else JobQueue.WRITES).value,
        "state": JobState.QUEUED.value,
        "request": None if write is None else write.with_content(None),
        "staged_rows": None if write is None else write.content,
        "task": request if write is None else None,
        "progress": Progress(stage=JobState.QUEUED.value),
        "rows": RowCounts(),
        "alone": request.exclusive or transaction_id is not None,
        "transforms": write is not None and write.transforms,
        "transaction_id": transaction_id,
        "actor": new.actor,
        "deaths": new.deaths,
        "slow": new.slow,
        "timings": timings,
    }
