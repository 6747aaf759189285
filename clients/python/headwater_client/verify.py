"""Verifications: whether the fold of a dataset's feed equals its table."""

from __future__ import annotations

import msgspec

from headwater_client.connection import dataset_path
from headwater_client.jobs import JobCalls, made_up
from headwater_client.pages import JSON
from headwater_client.values import Dataset, Job


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
            body=msgspec.json.encode({} if version is None else {"version": version}),
            headers={"Content-Type": JSON},
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )
