"""Verifications: whether the fold of a dataset's feed equals its table."""

from __future__ import annotations

from headwater_client.calls.jobs import JobCalls
from headwater_client.models import CreateVerification, Dataset, Job
from headwater_client.transport.connection import dataset_path, made_up


class VerifyCalls(JobCalls):
    """Verifies feeds against their tables."""

    async def verify(
        self,
        dataset: Dataset | str,
        *,
        version: int | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Folds the feed up to a version, by default the latest, and compares the result with the table.

        The `result` of the succeeded job has `equal`, and if that is false, `first_difference`.
        """
        return await self._start(
            f"{dataset_path(dataset)}/verifications",
            CreateVerification(version=version),
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )
