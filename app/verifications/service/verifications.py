"""Verifications on request: is a table what its feed says?"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.catalog.values import Dataset
from app.changelog.verification import check_verifiable
from app.format.errors import FieldError, InvalidRequest
from app.jobs.service.request_job import RequestIdentity, RequestJob
from app.jobs.tasks import VerifyTask
from app.jobs.values import Accepted


@dataclass(frozen=True, kw_only=True, slots=True)
class Verify:
    """Accepts verifications."""

    request_job: RequestJob

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
        text = msgspec.json.encode(task).decode()
        return self.request_job.accept(
            dataset, task, RequestIdentity(text=text, idempotency_key=idempotency_key, actor=actor)
        )
