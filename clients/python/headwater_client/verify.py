"""Verifications: is a dataset what its feed says?"""

from __future__ import annotations

import msgspec

from headwater_client.connection import dataset_path
from headwater_client.jobs import JobCalls, made_up
from headwater_client.pages import JSON
from headwater_client.values import Dataset, Job


class VerifyCalls(JobCalls):
    """Has the service compare feeds with their tables."""

    async def verify(
        self,
        dataset: Dataset | str,
        *,
        version: int | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Folds the feed up to a version, the latest unless given, and compares that with the table.

        The `result` of the job says what was found, once it has succeeded: `equal`, and if not, `first_difference`.
        """
        return await self._start(
            f"{dataset_path(dataset)}/verifications",
            body=msgspec.json.encode({} if version is None else {"version": version}),
            headers={"Content-Type": JSON},
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )
