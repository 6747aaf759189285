"""The quarantine: bad records of writes, and redriving them."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from headwater_client.calls.jobs import JobCalls
from headwater_client.models import Dataset, Job, QuarantinedRecord, QuarantinePage
from headwater_client.transport.connection import dataset_path, made_up


def sent_bytes(record: QuarantinedRecord) -> bytes:
    """The original bytes of a quarantined record."""
    return base64.b64decode(record.payload) if record.encoding == "base64" else record.payload.encode()


class QuarantineCalls(JobCalls):
    """Lists, redrives and discards the quarantined records of a dataset."""

    def quarantine(
        self, dataset: Dataset | str, *, job: Job | str | None = None
    ) -> AsyncGenerator[QuarantinedRecord, None]:
        """The bad records of a dataset, or those of one job, in the order of their quarantining."""
        params = {"job": None if job is None else _id(job)}
        return self._items(f"{dataset_path(dataset)}/quarantine", QuarantinePage, params)

    async def redrive(
        self,
        dataset: Dataset | str,
        records: Mapping[str, str | None],
        *,
        accept_late: bool = False,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Redrives records of one job: by id the repaired payload, or None for the unchanged record.

        `accept_late`: records behind the watermark are written.
        The job is like that of a write; see `write` for the other parameters.
        """
        chosen = [
            {"id": record} | ({} if payload is None else {"payload": payload})
            for record, payload in records.items()
        ]
        return await self._redrive(dataset, {"records": chosen} | _late(accept_late), idempotency_key, wait)

    async def redrive_job(
        self,
        dataset: Dataset | str,
        job: Job | str,
        *,
        accept_late: bool = False,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Redrives the waiting bad records of a job unchanged; at most 100,000 at a time.

        `accept_late`: records behind the watermark are written.
        """
        return await self._redrive(dataset, {"job": _id(job)} | _late(accept_late), idempotency_key, wait)

    async def discard_quarantine(self, dataset: Dataset | str, job: Job | str) -> None:
        """Permanently deletes the bad records of a job."""
        path = f"{dataset_path(dataset)}/quarantine"
        await self._send("DELETE", path, params={"job": _id(job)})

    async def _redrive(
        self, dataset: Dataset | str, body: Mapping[str, Any], idempotency_key: str | None, wait: float
    ) -> Job:
        return await self._start(
            f"{dataset_path(dataset)}/quarantine/redrives",
            body,
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )


def _late(accept_late: bool) -> dict[str, str]:
    return {"late": "accept"} if accept_late else {}


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job
