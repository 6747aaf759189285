"""Accepts requests for verifications."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.verification import VerifyTask
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted
from app.kernel.changelog.verification import check_verifiable
from app.kernel.format.errors import FieldError, InvalidRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Verifications:
    """Accepts verifications."""

    request_job: RequestJob

    def start(
        self,
        dataset: Dataset,
        version: int | None,
        idempotency_key: str | None,
        actor: str | None,
    ) -> Accepted:
        """A job that compares the table at a version (None: the latest when it runs) with its feed.

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
