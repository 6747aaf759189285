"""The quarantine: bad records of writes, and redriving them."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from headwater_client.connection import dataset_path, decoded
from headwater_client.feed import walk_list
from headwater_client.jobs import JobCalls, made_up
from headwater_client.pages import JSON
from headwater_client.problem import FieldError
from headwater_client.values import Dataset, Job


class QuarantinedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A bad record. `position` is its row number in the write; pointers in `errors` are relative to the record.

    `header`: the header line of a CSV record. `redrive_job_id`: the job that redrove it.
    """

    id: str
    job_id: str
    position: int
    errors: tuple[FieldError, ...]
    payload: str
    encoding: str
    header: str | None
    written_at: datetime
    state: str
    redrive_job_id: str | None

    @property
    def sent(self) -> bytes:
        """The original bytes of the record."""
        return base64.b64decode(self.payload) if self.encoding == "base64" else self.payload.encode()


class QuarantinePage(msgspec.Struct, frozen=True, kw_only=True):
    """Records in the order of their quarantining."""

    items: tuple[QuarantinedRecord, ...]
    next_page_token: str | None


class QuarantineCalls(JobCalls):
    """Lists, redrives and discards the quarantined records of a dataset."""

    async def quarantine(
        self, dataset: Dataset | str, *, job: Job | str | None = None
    ) -> AsyncGenerator[QuarantinedRecord, None]:
        """The bad records of a dataset, or those of one job, in the order of their quarantining."""
        params: dict[str, Any] = {"page_size": 1_000} | ({} if job is None else {"job": _id(job)})
        fetch = partial(self._get, f"{dataset_path(dataset)}/quarantine")
        async for page in walk_list(fetch, partial(decoded, QuarantinePage), params):
            for item in page.items:
                yield item

    async def redrive(
        self,
        dataset: Dataset | str,
        records: Mapping[str, str | None],
        *,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Redrives records of one job: by id the repaired payload, or None for the unchanged record.

        The job is like that of a write; see `write` for the other parameters.
        """
        chosen = [
            {"id": record} | ({} if payload is None else {"payload": payload})
            for record, payload in records.items()
        ]
        return await self._redrive(dataset, {"records": chosen}, idempotency_key, wait)

    async def redrive_job(
        self, dataset: Dataset | str, job: Job | str, *, idempotency_key: str | None = None, wait: float = 0
    ) -> Job:
        """Redrives the waiting bad records of a job unchanged; at most 100,000 at a time."""
        return await self._redrive(dataset, {"job": _id(job)}, idempotency_key, wait)

    async def discard_quarantine(self, dataset: Dataset | str, job: Job | str) -> None:
        """Permanently deletes the bad records of a job."""
        path = f"{dataset_path(dataset)}/quarantine"
        await self._send("DELETE", path, params={"job": _id(job)})

    async def _redrive(
        self, dataset: Dataset | str, body: Mapping[str, Any], idempotency_key: str | None, wait: float
    ) -> Job:
        return await self._start(
            f"{dataset_path(dataset)}/quarantine/redrives",
            body=msgspec.json.encode(body),
            headers={"Content-Type": JSON},
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job
