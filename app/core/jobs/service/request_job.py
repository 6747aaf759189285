"""Accepts jobs other than writes of rows: the job of an earlier identical request, or a new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.declared import JobRequest, instant_action
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.group_accept import GroupAccept
from app.core.jobs.values import Accepted, NewJob
from app.infra.identifiers import new_id, new_instant_id


class RequestIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a job: its actor and its key. `text` distinguishes it from others with the same key."""

    text: str
    idempotency_key: str | None = None
    actor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestJob:
    """Accepts jobs. `wake` is called after a job was recorded."""

    jobs: JobStore
    group: GroupAccept
    wake: Callable[[], None]

    def replayed(self, dataset: Dataset, identity: RequestIdentity) -> Accepted | None:
        """The job of an earlier identical request, even if that would be refused now. Raises IdempotencyMismatch."""
        if identity.idempotency_key is None:
            return None
        job = self.jobs.find_by_key(dataset.tenant_id, dataset.id, identity.idempotency_key, identity.text)
        return None if job is None else Accepted(job=job, is_replay=True)

    def accept(
        self, dataset: Dataset, request: JobRequest, identity: RequestIdentity, *, job_id: str | None = None
    ) -> Accepted:
        """`job_id`: the id of the job, if it is new; None for one that is made here.

        Raises IdempotencyMismatch, NotFound (dataset gone).
        """
        new = NewJob(
            id=job_id or new_id(),
            instant_id=None if instant_action(request) is None else new_instant_id(),
            dataset_id=dataset.id,
            request=request,
            idempotency_key=identity.idempotency_key,
            request_hash=identity.text,
            actor=identity.actor,
        )
        outcome = self.group.accept(dataset.tenant_id, new)
        if not outcome.is_replay:
            self.wake()
        return outcome
