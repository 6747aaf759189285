"""Accepts writes: checks what was sent, stores its input, and records the job. An accepted write is durable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from app.core.catalog.service import refuse_derived
from app.core.catalog.values import Dataset
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.group_accept import GroupAccept
from app.core.jobs.values import Accepted, Job, NewJob
from app.core.timeline.service.name_winner import NameWinner
from app.features.writes.service.write_input import WriteInputs
from app.features.writes.values import IncomingWrite
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.write_rules import brings_rows, check_options, resolve_mode
from app.kernel.format.errors import FieldError, InvalidRequest


def checked_write(incoming: IncomingWrite, dataset: Dataset) -> IncomingWrite:
    """The write in terms of operations alone.

    Raises InvalidRequest for what does not go together, DerivedDataset.
    """
    refuse_derived(dataset)
    operation, options = resolve_mode(incoming.operation, incoming.options)
    check_options(operation, options, dataset.definition)
    if brings_rows(operation, options) == (incoming.source is None):
        what = "this member is required: the write needs rows"
        if incoming.source is not None:
            what = f"{operation.value} takes no rows here: leave the source out"
        raise InvalidRequest(f"source: {what}", [FieldError(pointer="/source", detail=what)])
    if incoming.idempotency_key is not None and options.batch_id is not None:
        what = "writer_id and batch_id make a retry safe by themselves: leave the Idempotency-Key out"
        raise InvalidRequest(what, [FieldError(pointer="/Idempotency-Key", detail=what)])
    return msgspec.structs.replace(incoming, operation=operation, options=options)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptWrite:
    """Accepts writes. `wake` is called after a job was recorded; losing it costs latency only."""

    inputs: WriteInputs
    jobs: JobStore
    group: GroupAccept
    winners: NameWinner
    wake: Callable[[], None]

    def accept(self, dataset: Dataset, incoming: IncomingWrite) -> Accepted:
        """Checks and records a write.

        Raises InvalidRequest, InvalidFilter, SchemaMismatch, MalformedBody, RowTooLarge, TooManyRows, NotFound,
        IdempotencyMismatch, BatchOutOfOrder, BatchMismatch, CommitConflict, DerivedDataset, StorageFull.
        """
        incoming = checked_write(incoming, dataset)
        job = self._replayed(dataset, incoming)
        if job is not None:
            self.inputs.discard(incoming)
            return Accepted(job=job, is_replay=True)
        new = self.prepare(dataset, incoming)
        outcome = self.group.accept(dataset.tenant_id, new)
        if outcome.is_replay:
            self.inputs.withdraw(new)
            self.inputs.discard(incoming)
        else:
            self.wake()
        return outcome

    def prepare(self, dataset: Dataset, incoming: IncomingWrite) -> NewJob:
        """The job of a write that was checked, its rows staged; it is still to be recorded. Raises as `accept`."""
        expected_version = incoming.options.expected_version
        if expected_version is not None and expected_version < dataset.version:
            # It only grows; what is still to come is judged at the commit.
            self.winners.check_version(dataset.tenant_id, dataset.id, expected_version, dataset.version)
        job_id = new_id()
        return NewJob(
            id=job_id,
            instant_id=new_instant_id(),
            dataset_id=dataset.id,
            request=self.inputs.store(dataset, incoming, job_id),
            idempotency_key=incoming.idempotency_key,
            request_hash=incoming.request_hash,
            rows_digest=incoming.rows_digest,
            actor=incoming.actor,
        )

    def _replayed(self, dataset: Dataset, incoming: IncomingWrite) -> Job | None:
        """The job of an earlier identical request. Raises IdempotencyMismatch, BatchOutOfOrder, BatchMismatch."""
        options = incoming.options
        if incoming.idempotency_key is not None:
            return self.jobs.find_by_key(
                dataset.tenant_id, dataset.id, incoming.idempotency_key, incoming.request_hash
            )
        if options.writer_id is not None and options.batch_id is not None:
            return self.jobs.find_by_batch(
                dataset.tenant_id, dataset.id, options.writer_id, options.batch_id, incoming.rows_digest
            )
        return None
