"""Writes batches with several in flight, and follows the feed meanwhile."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from headwater_client import Dataset, Headwater, Job

_POLL_SECONDS: Final = 1
_JOB_SECONDS_MAX: Final = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Rows to write as one job. `name` is its idempotency key: a batch that is sent twice is written once.

    `columnar`: sent as an Arrow stream, which a worker decodes, instead of JSON, which the API decodes at once. Arrow
    is for many rows, JSON for few rows that should be committed soon.
    """

    name: str
    rows: pa.Table
    columnar: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A committed batch. `sent_at` is on the clock of `time.monotonic`."""

    job: Job
    rows: int
    sent_at: float

    @property
    def commit_seconds(self) -> float:
        """The time from accepted to committed, by the service's clock."""
        if self.job.finished_at is None:
            raise ValueError(f"job {self.job.id} has not ended")
        return (self.job.finished_at - self.job.created_at).total_seconds()


def write_batches(
    client: Headwater,
    dataset: Dataset,
    batches: Iterable[Batch],
    *,
    in_flight: int,
    on_written: Callable[[Written], None],
) -> list[Written]:
    """Upserts the batches in order, with at most `in_flight` batches that are accepted and not committed.

    Raises Problem, JobUnfinished.
    """
    written: list[Written] = []
    waiting: deque[Written] = deque()

    def settle() -> None:
        first = waiting.popleft()
        job = client.wait(first.job, seconds=_JOB_SECONDS_MAX)
        written.append(Written(job=job, rows=first.rows, sent_at=first.sent_at))
        on_written(written[-1])

    for batch in batches:
        while len(waiting) >= in_flight:
            settle()
        sent_at = time.monotonic()
        if batch.columnar:
            job = client.write_arrow(dataset, batch.rows, idempotency_key=batch.name)
        else:
            job = client.write_rows(dataset, batch.rows.to_pylist(), idempotency_key=batch.name)
        waiting.append(Written(job=job, rows=batch.rows.num_rows, sent_at=sent_at))
    while waiting:
        settle()
    return written


class Follower:
    """A consumer in its own thread: long-polls the feed from its start and keeps the changes."""

    def __init__(self, client: Headwater, dataset: Dataset, on_page: Callable[[int], None]) -> None:
        self._client = client
        self._dataset = dataset
        self._on_page = on_page
        self._pages: list[pa.Table] = []
        self._positions: list[int] = []
        self._times: list[float] = []
        self._until: int | None = None
        self._failure: Exception | None = None
        self._left = False
        self._thread = threading.Thread(target=self._run, name="consumer")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left = True
        self._thread.join()

    def finish(self, until: int) -> pa.Table:
        """All changes before position `until`, once they are read. Raises the exception of the thread."""
        self._until = until
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return pa.concat_tables(self._pages)

    def seen_at(self, position: int) -> float:
        """The time at which every change before the position was read, on the clock of `time.monotonic`."""
        return self._times[bisect_left(self._positions, position)]

    def _run(self) -> None:
        try:
            for page in self._client.change_tables(self._dataset, follow=True, poll_seconds=_POLL_SECONDS):
                position = int(page.next_since)
                if page.table.num_rows:
                    self._pages.append(page.table)
                    self._positions.append(position)
                    self._times.append(time.monotonic())
                    self._on_page(position)
                if self._left or (self._until is not None and position >= self._until):
                    return
        except Exception as failure:
            # Kept for the thread that reads the result: otherwise the exception would end with this thread.
            self._failure = failure
