"""The client."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx
import msgspec
import pyarrow as pa

from clients.headwater_client import pages
from clients.headwater_client.encode import arrow_stream, ndjson
from clients.headwater_client.feed import Since, walk_feed, walk_list
from clients.headwater_client.pages import ARROW_STREAM, JSON, ChangePage, ChangeTable, RowTable
from clients.headwater_client.problem import JobUnfinished, problem_of_job
from clients.headwater_client.transport import Body, Transport
from clients.headwater_client.values import (
    Change,
    Dataset,
    DatasetPage,
    Format,
    Instant,
    InstantPage,
    Job,
    NewDataset,
    Operation,
    Upload,
)

_WAIT_SECONDS_MAX: Final = 60
_MEDIA_TYPES: Final[Mapping[Format, str]] = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "arrow": ARROW_STREAM,
    "parquet": "application/vnd.apache.parquet",
}


class Headwater:
    """A connection to the service with one credential, which decides the tenant.

    Requests that are safe to repeat are repeated while the service cannot be reached or asks to come back
    later. That holds for writes as well: each has an idempotency key, the caller's or one made up for the
    call, so it is done once however often it is sent. A dataset is given by its value, its id or its name.
    Methods raise Problem where the service refuses, and httpx.TransportError where it cannot be reached.
    """

    def __init__(self, url: str, api_key: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._transport = Transport(url, api_key, transport)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The client that HEADWATER_URL and HEADWATER_API_KEY describe. Raises KeyError."""
        return cls(environment["HEADWATER_URL"], environment["HEADWATER_API_KEY"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections."""
        self._transport.close()

    # Datasets

    def create_dataset(self, new: NewDataset) -> Dataset:
        """Registers a dataset."""
        body = msgspec.json.encode(new.document())
        answer = self._transport.send(
            "POST", "/datasets", body=body, headers={"Content-Type": JSON}, repeatable=False
        )
        return msgspec.json.decode(answer.content, type=Dataset)

    def get_dataset(self, dataset: Dataset | str) -> Dataset:
        """A dataset as it stands now."""
        return msgspec.json.decode(self._get(_path(dataset)).content, type=Dataset)

    def datasets(self) -> Iterator[Dataset]:
        """The tenant's datasets by name."""
        decode = partial(_decoded, DatasetPage)
        for page in walk_list(partial(self._get, "/datasets"), decode, {"page_size": 1_000}):
            yield from page.items

    def delete_dataset(self, dataset: Dataset | str) -> None:
        """Ends a dataset and cancels its jobs."""
        self._transport.send("DELETE", _path(dataset), repeatable=False)

    # Writes

    def write_rows(
        self,
        dataset: Dataset | str,
        rows: Iterable[Mapping[str, Any]],
        *,
        operation: Operation = "upsert",
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Writes rows given as Python values; see `write` for the rest.

        Datetimes, dates, decimals and bytes are sent in the forms that the service reads. Raises ValueError
        for NaN and infinity, TypeError for what has no form.
        """
        body = ndjson(rows)
        return self.write(
            dataset, body, "ndjson", operation=operation, idempotency_key=idempotency_key, wait=wait
        )

    def write_arrow(
        self,
        dataset: Dataset | str,
        table: pa.Table | pa.RecordBatch | pa.RecordBatchReader,
        *,
        operation: Operation = "upsert",
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Writes an Arrow table, batch or stream; see `write` for the rest."""
        body = arrow_stream(table)
        return self.write(
            dataset, body, "arrow", operation=operation, idempotency_key=idempotency_key, wait=wait
        )

    def write(
        self,
        dataset: Dataset | str,
        body: Body,
        form: Format,
        *,
        operation: Operation = "upsert",
        gzip: bool = False,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Writes rows that are encoded already: NDJSON, CSV, an Arrow stream or Parquet; a Path is streamed.

        Returns the job as soon as the write is durable. With `wait`, returns it once it has succeeded, and
        raises JobUnfinished after so many seconds, Problem if it fails.
        """
        headers = {"Content-Type": _MEDIA_TYPES[form]} | ({"Content-Encoding": "gzip"} if gzip else {})
        return self._write(dataset, body, headers, {"operation": operation}, idempotency_key, wait)

    def upload(self, dataset: Dataset | str, body: Body) -> Upload:
        """Stores a large input as it is, to be written by `write_upload`; a Path is streamed."""
        answer = self._transport.send(
            "POST",
            f"{_path(dataset)}/uploads",
            body=body,
            headers={"Content-Type": "application/octet-stream"},
            # A second copy that no write names is removed by the service.
            repeatable=True,
        )
        return msgspec.json.decode(answer.content, type=Upload)

    def write_upload(
        self,
        dataset: Dataset | str,
        upload: Upload,
        form: Format,
        *,
        operation: Operation = "upsert",
        gzip: bool = False,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Writes the rows of an upload; see `write` for the rest."""
        source = {"kind": "upload", "upload_id": upload.id, "format": form}
        source |= {"compression": "gzip"} if gzip else {}
        body = msgspec.json.encode({"operation": operation, "source": source})
        return self._write(dataset, body, {"Content-Type": JSON}, {}, idempotency_key, wait)

    def _write(
        self,
        dataset: Dataset | str,
        body: Body,
        headers: dict[str, str],
        params: dict[str, str],
        idempotency_key: str | None,
        wait: float,
    ) -> Job:
        deadline = time.monotonic() + wait
        first_wait = min(int(wait), _WAIT_SECONDS_MAX)
        answer = self._transport.send(
            "POST",
            f"{_path(dataset)}/writes",
            body=body,
            params=params,
            headers={
                **headers,
                "Idempotency-Key": idempotency_key or str(uuid.uuid4()),
                **({"Prefer": f"wait={first_wait}"} if first_wait else {}),
            },
            repeatable=True,
            patience_seconds=first_wait,
        )
        job = msgspec.json.decode(answer.content, type=Job)
        return self.wait(job, seconds=max(deadline - time.monotonic(), 0)) if wait else job

    # Jobs

    def get_job(self, job: Job | str) -> Job:
        """A job as it stands, however it ended."""
        return self._job(job, 0)

    def wait(self, job: Job | str, *, seconds: float = 600) -> Job:
        """The job once it has succeeded. Raises JobUnfinished; Problem if it fails or is cancelled."""
        deadline = time.monotonic() + seconds
        found = job if isinstance(job, Job) else self.get_job(job)
        while not found.ended:
            left = deadline - time.monotonic()
            if left <= 0:
                raise JobUnfinished(found, seconds)
            found = self._job(found, min(int(left) + 1, _WAIT_SECONDS_MAX))
        if problem := problem_of_job(found):
            raise problem
        return found

    def cancel(self, job: Job | str) -> Job:
        """Cancels a job that has not ended: nothing of it will be visible."""
        answer = self._transport.send("POST", f"{_job_path(job)}/cancel", repeatable=False)
        return msgspec.json.decode(answer.content, type=Job)

    def _job(self, job: Job | str, wait: int) -> Job:
        answer = self._get(_job_path(job), {"wait": wait} if wait else {}, patience_seconds=wait)
        return msgspec.json.decode(answer.content, type=Job)

    # The feed

    def changes(
        self,
        dataset: Dataset | str,
        *,
        since: Since = 0,
        limit: int = 1_000,
        follow: bool = False,
        poll_seconds: int = 25,
    ) -> Iterator[Change]:
        """Changes one by one, from position `since` on.

        To go on later, keep the offset of the last change plus one, and keep it after a `+A`, `-R` or `+C`
        only, so that a `-C` is never parted from its `+C`. See `change_pages` for the rest.
        """
        for page in self.change_pages(
            dataset, since=since, limit=limit, follow=follow, poll_seconds=poll_seconds
        ):
            yield from page.changes

    def change_pages(
        self,
        dataset: Dataset | str,
        *,
        since: Since = 0,
        limit: int = 1_000,
        follow: bool = False,
        poll_seconds: int = 25,
    ) -> Iterator[ChangePage]:
        """Pages of the feed from position `since` on, to its head.

        With `follow` the walk does not end there: it waits for changes, and gives an empty page for each
        `poll_seconds` without any. Keep a page's `next_since` with what was made of the page, and the next
        walk goes on right behind it. Raises Problem `offset-ahead` where `since` is not of this dataset.
        """
        fetch = self._feed_of(dataset, JSON, poll_seconds)
        return walk_feed(
            fetch, pages.change_page, since=since, limit=limit, follow=follow, poll_seconds=poll_seconds
        )

    def change_tables(
        self,
        dataset: Dataset | str,
        *,
        since: Since = 0,
        limit: int = 10_000,
        follow: bool = False,
        poll_seconds: int = 25,
    ) -> Iterator[ChangeTable]:
        """As `change_pages`, in the columnar form, which is the fast one."""
        fetch = self._feed_of(dataset, ARROW_STREAM, poll_seconds)
        return walk_feed(
            fetch, pages.change_table, since=since, limit=limit, follow=follow, poll_seconds=poll_seconds
        )

    def _feed_of(self, dataset: Dataset | str, accept: str, patience_seconds: int) -> Any:
        path = f"{_path(dataset)}/changes"
        return partial(self._get, path, accept=accept, patience_seconds=patience_seconds)

    # The table

    def rows(
        self,
        dataset: Dataset | str,
        *,
        version: int | None = None,
        as_of: datetime | None = None,
        columns: Sequence[str] | None = None,
        limit: int = 1_000,
    ) -> Iterator[dict[str, Any]]:
        """Rows of the table, all of one version: the latest unless one or a moment is given.

        `limit` is the number of rows that are fetched at a time.
        """
        params = _row_params(version, as_of, columns, limit)
        for page in walk_list(partial(self._get, f"{_path(dataset)}/rows"), pages.row_page, params):
            yield from page.rows

    def row_tables(
        self,
        dataset: Dataset | str,
        *,
        version: int | None = None,
        as_of: datetime | None = None,
        columns: Sequence[str] | None = None,
        limit: int = 10_000,
    ) -> Iterator[RowTable]:
        """As `rows`, in pages of Arrow tables."""
        fetch = partial(self._get, f"{_path(dataset)}/rows", accept=ARROW_STREAM)
        return walk_list(fetch, pages.row_table, _row_params(version, as_of, columns, limit))

    def timeline(self, dataset: Dataset | str) -> Iterator[Instant]:
        """Every attempt to change the dataset, the latest request first."""
        fetch = partial(self._get, f"{_path(dataset)}/timeline")
        for page in walk_list(fetch, partial(_decoded, InstantPage), {"page_size": 1_000}):
            yield from page.items

    def _get(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        accept: str = JSON,
        patience_seconds: float = 0,
    ) -> httpx.Response:
        return self._transport.send(
            "GET",
            path,
            params=params,
            headers={"Accept": accept},
            repeatable=True,
            patience_seconds=patience_seconds,
        )


def _path(dataset: Dataset | str) -> str:
    return f"/datasets/{quote(dataset.id if isinstance(dataset, Dataset) else dataset, safe='')}"


def _job_path(job: Job | str) -> str:
    return f"/jobs/{quote(job.id if isinstance(job, Job) else job, safe='')}"


def _decoded(kind: Any, response: httpx.Response) -> Any:
    return msgspec.json.decode(response.content, type=kind)


def _row_params(
    version: int | None, as_of: datetime | None, columns: Sequence[str] | None, limit: int
) -> dict[str, Any]:
    chosen = {
        "version": version,
        "as_of": None if as_of is None else as_of.isoformat(),
        "columns": None if columns is None else list(columns),
    }
    return {"limit": limit, **{name: value for name, value in chosen.items() if value is not None}}
