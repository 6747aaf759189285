"""`headwater quarantine …`: bad records of writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, Literal

from headwater_client.cli.arguments.names import Count, Flag
from headwater_client.cli.printing.jobs_output import print_job
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import QuarantinedRecord

RecordState = Literal["quarantined", "redriven"]
_COLUMNS: Final[Sequence[TableColumn[QuarantinedRecord]]] = (
    TableColumn("ID", lambda each: each.id),
    TableColumn("JOB", lambda each: each.job_id),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("RECORD", lambda each: each.position),
    TableColumn("ERROR", lambda each: "; ".join(f"{fault.pointer}: {fault.detail}" for fault in each.errors)),
    TableColumn("PAYLOAD", lambda each: each.payload[:80]),
)


def list_records(
    dataset: str,
    /,
    *,
    job: str | None = None,
    state: RecordState | None = None,
    limit: Count = 100,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List the bad records of a dataset, in the order of their quarantining.

    Example: `headwater quarantine orders`

    Parameters
    ----------
    dataset
        The name or the id of the dataset.
    job
        Only those of this job, by its id.
    state
        Only those in this state.
    limit
        How many records, at most.
    """
    with service.client() as client:
        found = client.quarantine(dataset, job=job)
        wanted = (each for each in found if state is None or each.state == state)
        output.items(islice(wanted, limit), _COLUMNS)


def redrive(
    dataset: str,
    job: str,
    /,
    *,
    accept_late: Flag = False,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Write the bad records of a job once more, unchanged: after a change of the schema, for example.

    Example: `headwater quarantine redrive orders 01a1fc66-e85f-74fa-b50b-086a80c5ab7c`

    Parameters
    ----------
    dataset
        The name or the id of the dataset.
    job
        The id of the job.
    accept_late
        Write records behind the watermark, too.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        started = client.redrive_job(dataset, job, accept_late=accept_late, wait=wait)
    print_job(output, dataset, started)


def discard(dataset: str, job: str, /, *, service: ServiceChoice = SERVICE) -> None:
    """Delete the bad records of a job for good.

    Example: `headwater quarantine discard orders 01a1fc66-e85f-74fa-b50b-086a80c5ab7c`

    Parameters
    ----------
    dataset
        The name or the id of the dataset.
    job
        The id of the job.
    """
    with service.client() as client:
        client.discard_quarantine(dataset, job)
    print(f"The bad records of job {job} are deleted.")
