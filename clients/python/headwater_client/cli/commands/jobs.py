"""`headwater jobs …`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from headwater_client.cli.arguments.names import Count, JobId, Names
from headwater_client.cli.printing.jobs_output import counts_text
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Job


def list_jobs(
    *,
    dataset: str | None = None,
    kind: Names = None,
    state: Names = None,
    unresolved: bool = False,
    limit: Count = 50,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List jobs, the newest first.

    Example: `headwater jobs --state queued,running`

    Example: `headwater jobs --dataset orders --kind write`

    Example: `headwater jobs --unresolved`

    Parameters
    ----------
    dataset
        Only those of this dataset.
    kind
        Only these kinds, such as write,read.
    state
        Only these states: queued, running, succeeded, failed, cancelled.
    unresolved
        Only failed jobs that no later job of the same dataset and kind has made up for.
    limit
        How many jobs, at most.
    """
    with service.client() as client:
        found = islice(client.jobs(dataset, kinds=kind, states=state, unresolved=unresolved), limit)
        output.items(found, _COLUMNS)


def show(job: JobId, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Print a job.

    Example: `headwater jobs show 01a1fc66-e85f-74fa-b50b-086a80c5ab7c`
    """
    with service.client() as client:
        output.item(client.get_job(job))


def wait(
    job: JobId, /, *, seconds: float = 600, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """Wait for the end of a job. The exit code is 1 if it fails, and 7 if it goes on.

    Example: `headwater jobs wait 01a1fc66-e85f-74fa-b50b-086a80c5ab7c`

    Parameters
    ----------
    seconds
        How long to wait.
    """
    with service.client() as client:
        output.item(client.wait(job, seconds=seconds))


def cancel(job: JobId, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Cancel a job that has not ended: none of its changes become visible.

    Example: `headwater jobs cancel 01a1fc66-e85f-74fa-b50b-086a80c5ab7c`
    """
    with service.client() as client:
        found = client.cancel(job)
    output.done(f"Job {found.id} is {found.state}.", found)


def _stage(job: Job) -> str:
    if job.state == "queued" and job.progress.waiting_for is not None:
        return f"queued, waiting for {job.progress.waiting_for}"
    return job.state if job.state != "running" else f"running: {job.progress.stage}"


def _error(job: Job) -> str | None:
    return None if job.error is None else str(job.error.get("title"))


def _seconds(job: Job) -> float | None:
    if job.finished_at is None:
        return None
    return round((job.finished_at - job.created_at).total_seconds(), 1)


_COLUMNS: Final[Sequence[TableColumn[Job]]] = (
    TableColumn("ID", lambda each: each.id),
    TableColumn("DATASET", lambda each: each.dataset and each.dataset.name),
    TableColumn("KIND", lambda each: each.kind),
    TableColumn("OPERATION", lambda each: each.operation),
    TableColumn("STATE", _stage),
    TableColumn("CREATED", lambda each: each.created_at),
    TableColumn("SECONDS", _seconds),
    TableColumn("ROWS", lambda each: counts_text(each) if each.operation else None),
    TableColumn("ERROR", _error),
)
