"""Verifications on request: is a table what its feed says?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from app.lake.errors import FieldError, InvalidRequest
from app.lake.identifiers import new_id
from app.lake.verification import check_verifiable
from app.services.group_accept import GroupAccept
from app.services.model import Accepted, Dataset, NewJob
from app.services.task_model import VerifyTask


@dataclass(frozen=True, kw_only=True, slots=True)
class Verify:
    """Accepts verifications. `wake` is called after a job was recorded."""

    group: GroupAccept
    wake: Callable[[], None]

    def start(
        self,
        dataset: Dataset,
        version: int | None,
        idempotency_key: str | None,
        *,
        actor: str | None = None,
    ) -> Accepted:
        """A job that folds the feed up to a version (None: the head when it runs) and compares it with the table.

        Raises InvalidRequest, NotVerifiable, IdempotencyMismatch, NotFound.
        """
        check_verifiable(dataset.definition)
        if version is not None and not 0 <= version <= dataset.version:
            raise InvalidRequest(
                f"there is no version {version}",
                [
                    FieldError(
                        pointer="/version", detail=f"expected 0–{dataset.version}, the dataset's version"
                    )
                ],
                head=dataset.version,
            )
        task = VerifyTask(version=version)
        new = NewJob(
            id=new_id(),
            dataset_id=dataset.id,
            request=task,
            idempotency_key=idempotency_key,
            request_hash=msgspec.json.encode(task).decode(),
            actor=actor,
        )
        accepted = self.group.accept(dataset.tenant_id, new)
        if not accepted.replayed:
            self.wake()
        return accepted
