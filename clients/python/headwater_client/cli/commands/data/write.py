"""`headwater write`: rows of a file, or of the standard input."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import httpx2
import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TransferSpeedColumn

from headwater_client.cli.arguments.input_file import InputFormat, RowsFile, WatchedFile, rows_file
from headwater_client.cli.arguments.missing_columns import missing_columns
from headwater_client.cli.arguments.names import DatasetName, InputFile
from headwater_client.cli.arguments.write_flags import (
    NO_NEW_DATASET,
    WRITE_FLAGS,
    NewDatasetFlags,
    WriteFlags,
)
from headwater_client.cli.failure import CommandError, ExitCode, sentences
from headwater_client.cli.printing.jobs_output import counts_text, print_job, version_text
from headwater_client.cli.printing.output import OUTPUT, Output
from headwater_client.cli.printing.text import visible
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.client import Headwater
from headwater_client.models import CreateWithRows, Job, Operation
from headwater_client.problem import JobUnfinished, Problem
from headwater_client.write_options import WriteOptions

_POLL_SECONDS: Final = 1.0
_REASONS: Final = {"space": "space in the storage of the service", "database": "the database of the service"}
_WHOLE_ROWS: Final = ("event_time", "commit_time")
"""The merge modes in which a row replaces the one of its key as a whole."""


def write(
    dataset: DatasetName,
    file: InputFile,
    /,
    *,
    new: NewDatasetFlags = NO_NEW_DATASET,
    format: InputFormat | None = None,  # noqa: A002
    how: WriteFlags = WRITE_FLAGS,
    idempotency_key: str | None = None,
    wait: float = 3_600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Write the rows of a file, and wait until they are committed, all or none of them.

    A request that is lost is sent again, and counts once. If the command itself is repeated, the same
    --idempotency-key makes sure of that.

    An upsert replaces the row of a key as a whole: columns that a row lacks become null. To change single columns,
    register the dataset with `--create --merge-mode partial`, in which they keep their values.

    Example: `headwater write orders orders.csv --create --key id`

    Example: `cat orders.ndjson | headwater write orders - --operation insert`

    Example: `headwater write orders gone.ndjson --operation delete`

    Parameters
    ----------
    file
        The file; - reads the standard input.
    format
        By default that of the name of the file (.csv, .ndjson, .json, .parquet, .arrow, also with .gz), or of its
        first bytes. arrow is a stream or a file.
    idempotency_key
        A text that identifies this write: repeated with the same one, it counts once.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    registered = new.value()
    options = how.options(registered)
    with service.client() as client, rows_file(file, format) as content:
        start = time.monotonic()
        with _how_to_register(registered):
            operation = how.operation or _default(client, dataset, registered)
            key = idempotency_key or str(uuid.uuid4())
            job = _Write(client, dataset, content, operation, options, key).run(wait)
        seconds = time.monotonic() - start
        nulls = _nulls(client, dataset, job, content)
    _print(output, dataset, job, seconds)
    if nulls:
        sys.stderr.write(
            visible(
                f"Columns missing in the rows became null: {', '.join(nulls)}. See headwater write --help."
            )
            + "\n"
        )


@contextmanager
def _how_to_register(registered: CreateWithRows | None) -> Iterator[None]:
    """Has the error for a dataset that does not exist say how a write registers it."""
    try:
        yield
    except Problem as problem:
        if registered is not None or problem.code != "not-found" or "job" in problem.document:
            raise
        raise CommandError(f"{sentences(problem)}. --create registers it", ExitCode.NOT_FOUND) from problem


def _nulls(client: Headwater, dataset: str, job: Job, content: RowsFile) -> list[str]:
    """The columns that an upsert has set to null since its rows lack them; empty if it has updated none."""
    if job.operation != "upsert" or not job.rows.updated:
        return []
    found = client.get_dataset(dataset)
    if found.merge_mode not in _WHOLE_ROWS:
        return []
    names = (field.name for field in found.schema.fields if field.name != found.delete_marker)
    return missing_columns(content, tuple(names))


def _default(client: Headwater, dataset: str, registered: CreateWithRows | None) -> Operation:
    """The operation that a dataset with or without a key has by default."""
    try:
        has_key = bool(client.get_dataset(dataset).record_key)
    except Problem as problem:
        if registered is None or problem.status != 404:
            raise
        has_key = bool(registered.record_key)
    return "upsert" if has_key else "insert"


@dataclass(frozen=True)
class _Write:
    client: Headwater
    dataset: str
    content: RowsFile
    operation: Operation
    options: WriteOptions
    idempotency_key: str

    def run(self, wait: float) -> Job:
        """The job, which has succeeded unless `wait` is 0."""
        with _progress(self.content) as shown:
            try:
                job = self.client.write(
                    self.dataset,
                    WatchedFile(self.content.path, shown.sent),
                    self.content.format,
                    operation=self.operation,
                    options=self.options,
                    gzip=self.content.gzip,
                    idempotency_key=self.idempotency_key,
                )
            except httpx2.TransportError as error:
                raise CommandError(
                    f"the service does not answer: {error}. Whether the rows are written is not known: repeat the "
                    f"command with --idempotency-key {self.idempotency_key}, and they are written once",
                    ExitCode.NOT_REACHABLE,
                ) from error
            return self._ended(job, wait, shown) if wait else job

    def _ended(self, job: Job, wait: float, shown: _Shown) -> Job:
        deadline, waits_for = time.monotonic() + wait, None
        while True:
            left = deadline - time.monotonic()
            try:
                return self.client.wait(job, seconds=max(min(left, _POLL_SECONDS), 0))
            except JobUnfinished as unfinished:
                if left <= 0:
                    raise JobUnfinished(unfinished.job, wait) from None
                job = unfinished.job
                shown.waits(job)
                if job.progress.waiting_for not in (None, waits_for):
                    waits_for = job.progress.waiting_for
                    shown.says(_waiting(job))


def _waiting(job: Job) -> str:
    """What a job waits for, in sentences."""
    reason = _REASONS.get(job.progress.waiting_for or "", job.progress.waiting_for)
    return (
        f"Job {job.id} waits for {reason}, and is tried again by itself, after a minute at most. "
        f"headwater jobs cancel {job.id} ends it."
    )


class _Shown:
    """What is shown while a write is sent and runs: what it waits for, unless a subclass shows more."""

    def sent(self, content: bytes | None) -> None:
        """Bytes were sent; None if it begins again."""

    def waits(self, job: Job) -> None:
        """The job has not ended."""

    def says(self, sentence: str) -> None:
        """A line that stays."""
        sys.stderr.write(visible(sentence) + "\n")
        sys.stderr.flush()


class _Bar(_Shown):
    def __init__(self, progress: Progress, content: RowsFile) -> None:
        self._progress = progress
        self._has_lines = content.has_lines
        self._task = progress.add_task("sending", total=content.path.stat().st_size, rows="")
        self._bytes, self._rows = 0, 0

    def sent(self, content: bytes | None) -> None:
        """See `_Shown`."""
        if content is None:
            self._bytes, self._rows = 0, 0
        else:
            self._bytes += len(content)
            self._rows += content.count(b"\n") if self._has_lines else 0
        rows = f"{self._rows:,} rows" if self._has_lines else ""
        self._progress.update(self._task, completed=self._bytes, rows=rows)

    def waits(self, job: Job) -> None:
        """See `_Shown`."""
        done, total = job.progress.done, job.progress.total
        stage = f"{job.progress.stage} {done}/{total}" if total else job.progress.stage
        self._progress.update(self._task, description=stage)

    def says(self, sentence: str) -> None:
        """See `_Shown`."""
        self._progress.console.print(visible(sentence), markup=False, highlight=False)


@contextmanager
def _progress(content: RowsFile) -> Iterator[_Shown]:
    if not sys.stderr.isatty():
        yield _Shown()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.fields[rows]}"),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        yield _Bar(progress, content)


def _print(output: Output, dataset: str, job: Job, seconds: float) -> None:
    if job.state != "succeeded" or job.committed_version is None:
        print_job(output, dataset, job)
        return
    rate = sum(msgspec.structs.astuple(job.rows)) / seconds
    speed = f" ({rate:,.0f} rows/s)" if rate >= 1 else ""
    output.done(f"{dataset}: {counts_text(job)}, {version_text(job)}, in {seconds:.1f} s{speed}", job)
