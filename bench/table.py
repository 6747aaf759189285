"""A large trips table in a running service: loading it, and writing into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from bench.service import Service, finished
from bench.trips import definition, write_parquet

_STEP_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A trips dataset of a running service."""

    service: Service
    client: httpx2.Client
    id: str

    @classmethod
    def create(
        cls,
        service: Service,
        client: httpx2.Client,
        name: str,
        *,
        buckets: int | None,
        table_type: str = "copy_on_write",
        compression: str = "zstd",
    ) -> Table:
        """A new, empty one. Without `buckets` they grow."""
        settings = {"table_type": table_type, "compression": compression}
        registration = definition(name, buckets=buckets) | settings
        made = client.post("/datasets", json=registration).raise_for_status().json()
        return cls(service=service, client=client, id=made["id"])

    @property
    def storage(self) -> Path:
        """The storage root, as a folder of this machine."""
        return self.service.storage

    def stored(self) -> dict[Path, int]:
        """Every file of the table, by path below the storage root, with its size."""
        paths = self.storage.glob(f"*/{self.id}/**/*")
        return {path.relative_to(self.storage): path.stat().st_size for path in paths if path.is_file()}

    def upload(self, file: Path) -> dict[str, Any]:
        """Sends a Parquet file; what a write names it by, its `source`."""
        upload = self.client.post(
            f"/datasets/{self.id}/uploads",
            content=_pieces(file),
            headers={"Content-Type": "application/octet-stream"},
        )
        upload_id = upload.raise_for_status().json()["id"]
        return {"kind": "upload", "upload_id": upload_id, "format": "parquet"}

    def commit(self, operation: str, **members: Any) -> dict[str, Any]:
        """Requests a write with these members of its body, and waits for its job to succeed."""
        reply = self.client.post(
            f"/datasets/{self.id}/writes",
            json={"operation": operation, **members},
            headers={"Prefer": "wait=60"},
        )
        return finished(self.client, reply.raise_for_status().json())

    def write(self, operation: str, numbers: np.ndarray, *, ts: int) -> dict[str, Any]:
        """Uploads the rows with these numbers as Parquet and writes them; the job of the write."""
        file = self.service.data / f"{self.id}.parquet"
        write_parquet(file, numbers, ts=ts)
        job = self.commit(operation, source=self.upload(file))
        file.unlink()
        return job

    def pages(
        self,
        accept: str,
        *,
        limit: int,
        since: int | str = 0,
        until: int | None = None,
        where: str | None = None,
    ) -> Iterator[httpx2.Response]:
        """The feed from `since` to `until`, or to its end, page by page: all of it, or what a filter selects.

        `since` may be `snapshot`: the rows of the table, then the changes after it.
        """
        more: dict[str, Any] = {} if until is None else {"until": until}
        if where is not None:
            more["where"] = where
        while True:
            page = self.client.get(
                f"/datasets/{self.id}/changes",
                params={"since": since, "limit": limit, **more},
                headers={"Accept": accept},
            )
            yield page.raise_for_status()
            since = page.headers["headwater-next-since"]
            if since == str(until) or page.headers["headwater-pending"] == "0":
                return

    def row_pages(self, accept: str, *, limit: int) -> Iterator[httpx2.Response]:
        """The rows of the latest version, page by page."""
        token: dict[str, str] = {}
        while True:
            page = self.client.get(
                f"/datasets/{self.id}/rows", params={"limit": limit, **token}, headers={"Accept": accept}
            )
            yield page.raise_for_status()
            if "headwater-next-page-token" not in page.headers:
                return
            token = {"page_token": page.headers["headwater-next-page-token"]}


def run_seconds(job: Mapping[str, Any]) -> float:
    """From the worker's claim of a job to the commit."""
    started, ended = (datetime.fromisoformat(job[name]) for name in ("started_at", "finished_at"))
    return (ended - started).total_seconds()


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(_STEP_BYTES):
            yield piece


def half_new(rows: int, *, of: int, first_new: int, seed: int) -> np.ndarray:
    """Numbers of rows of which half are among the first `of`, at random, and half start at `first_new`."""
    random = np.random.default_rng(seed)
    known = random.choice(of, rows // 2, replace=False)
    numbers = np.concatenate([known, np.arange(first_new, first_new + rows - rows // 2)])
    random.shuffle(numbers)
    return numbers
