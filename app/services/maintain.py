"""Table services on request: jobs that keep a table in shape and change none of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.lake.identifiers import new_id, new_instant_id
from app.lake.operation import Operation
from app.services.group_accept import GroupAccept
from app.services.model import Accepted, Dataset, NewJob, WriteRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Maintain:
    """Accepts the jobs of table services. `wake` is called after a job was recorded."""

    group: GroupAccept
    wake: Callable[[], None]

    def compact(self, dataset: Dataset, idempotency_key: str | None, *, actor: str | None = None) -> Accepted:
        """A job that folds logs, postponed writes, deletion vectors and small files into base files.

        Raises IdempotencyMismatch, NotFound.
        """
        new = NewJob(
            id=new_id(),
            instant_id=new_instant_id(),
            dataset_id=dataset.id,
            request=WriteRequest(operation=Operation.COMPACT),
            idempotency_key=idempotency_key,
            request_hash=Operation.COMPACT.value,
            actor=actor,
        )
        accepted = self.group.accept(dataset.tenant_id, new)
        if not accepted.replayed:
            self.wake()
        return accepted
