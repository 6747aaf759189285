"""Batches of streams: numbered upwards by their writer, each committed once, however often it is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, func, insert, select, text, update

from app.core.jobs.errors import BatchMismatch, BatchOutOfOrder
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.repository.job_row import get_job
from app.core.jobs.tables import writer_batches
from app.core.jobs.values import Job, NewJob, failed_by_service

_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtextextended(:stream, 0))")


class _Owner(NamedTuple):
    """The job that a batch belongs to, and the digest of its rows, if there is one."""

    job_id: str
    rows_digest: str | None

    def check(self, writer_id: str, batch_id: int, rows_digest: str | None) -> None:
        """Raises BatchMismatch for a batch with other rows."""
        if None not in (self.rows_digest, rows_digest) and self.rows_digest != rows_digest:
            raise BatchMismatch(
                f"batch {batch_id} of writer {writer_id!r} was accepted with other rows, by job {self.job_id}; to "
                "write these rows, send them with the next batch_id; for the outcome of the batch, request the job, or "
                "send the first rows byte for byte",
                job_id=self.job_id,
            )


_Refusal = BatchMismatch | BatchOutOfOrder


def reserve_batches(connection: Connection, new: Sequence[NewJob]) -> dict[str, str | _Refusal]:
    """Gives batches to the jobs that come first with theirs.

    For each job that does not, by its id: the id of the job that its batch belongs to, or why it cannot be taken.
    """
    streams: dict[tuple[str, str], list[NewJob]] = defaultdict(list)
    for each in new:
        if isinstance(each.request, WriteRequest) and each.request.options.writer_id is not None:
            streams[each.dataset_id, each.request.options.writer_id].append(each)
    outcomes: dict[str, str | _Refusal] = {}
    # Every transaction takes its streams in the same order, so that no two wait for each other in a ring.
    for stream in sorted(streams):
        connection.execute(_LOCK, {"stream": " ".join(stream)})
        outcomes |= _reserve(connection, *stream, streams[stream])
    return outcomes


def find_batch(
    connection: Connection, dataset_id: str, writer_id: str, batch_id: int, rows_digest: str | None
) -> Job | None:
    """The job that the batch belongs to; None if a new one may have it. Raises BatchOutOfOrder, BatchMismatch."""
    owner = _owners(connection, dataset_id, writer_id, [batch_id]).get(batch_id)
    if owner is None:
        _check_order(writer_id, batch_id, _last(connection, dataset_id, writer_id))
        return None
    job = get_job(connection, owner.job_id)
    if failed_by_service(job.state, job.error):
        return None
    owner.check(writer_id, batch_id, rows_digest)
    return job


def _reserve(
    connection: Connection, dataset_id: str, writer_id: str, new: Sequence[NewJob]
) -> dict[str, str | _Refusal]:
    """The same for the jobs of one stream, in order."""
    batches = [(each, each.write.options.batch_id or 0) for each in new]
    owners = _owners(connection, dataset_id, writer_id, [batch_id for _, batch_id in batches])
    jobs_by_batch = {batch_id: get_job(connection, owner.job_id) for batch_id, owner in owners.items()}
    free = {batch_id for batch_id, job in jobs_by_batch.items() if failed_by_service(job.state, job.error)}
    last = _last(connection, dataset_id, writer_id)
    outcomes: dict[str, str | _Refusal] = {}
    for each, batch_id in batches:
        owner = owners.get(batch_id)
        try:
            if owner is None:
                _check_order(writer_id, batch_id, last)
            elif batch_id not in free:
                owner.check(writer_id, batch_id, each.rows_digest)
                outcomes[each.id] = owner.job_id
                continue
        except (BatchMismatch, BatchOutOfOrder) as error:
            outcomes[each.id] = error
            continue
        _give(connection, dataset_id, writer_id, batch_id, each, has_owner=owner is not None)
        owners[batch_id] = _Owner(each.id, each.rows_digest)
        free.discard(batch_id)
        last = batch_id if last is None else max(last, batch_id)
    return outcomes


def _check_order(writer_id: str, batch_id: int, last: int | None) -> None:
    if last is not None and batch_id < last:
        raise BatchOutOfOrder(
            f"batch {batch_id} of writer {writer_id!r} comes after batch {last}, and was never sent or has expired",
            last_batch_id=last,
        )


def _give(
    connection: Connection, dataset_id: str, writer_id: str, batch_id: int, new: NewJob, *, has_owner: bool
) -> None:
    values = {"job_id": new.id, "rows_digest": new.rows_digest}
    if not has_owner:
        place = {"dataset_id": dataset_id, "writer_id": writer_id, "batch_id": batch_id}
        connection.execute(insert(writer_batches).values(place | values))
        return
    of_batch = (*_of(dataset_id, writer_id), writer_batches.c.batch_id == batch_id)
    connection.execute(
        update(writer_batches).where(*of_batch).values(values | {"created_at": func.clock_timestamp()})
    )


def _owners(
    connection: Connection, dataset_id: str, writer_id: str, batch_ids: Sequence[int]
) -> dict[int, _Owner]:
    """What these batches belong to, as far as they were seen."""
    query = select(writer_batches.c.batch_id, writer_batches.c.job_id, writer_batches.c.rows_digest).where(
        *_of(dataset_id, writer_id), writer_batches.c.batch_id.in_(batch_ids)
    )
    return {row.batch_id: _Owner(row.job_id, row.rows_digest) for row in connection.execute(query).all()}


def _last(connection: Connection, dataset_id: str, writer_id: str) -> int | None:
    query = select(func.max(writer_batches.c.batch_id)).where(*_of(dataset_id, writer_id))
    return connection.execute(query).scalar_one()


def _of(dataset_id: str, writer_id: str) -> tuple[Any, Any]:
    return writer_batches.c.dataset_id == dataset_id, writer_batches.c.writer_id == writer_id
