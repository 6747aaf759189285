"""`headwater quarantine …`: bad records of writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import msgspec

from headwater_client.cli.arguments.documents import name_of
from headwater_client.cli.arguments.input_file import rows_file
from headwater_client.cli.arguments.names import Count, DatasetName, Flag, InputFile, JobId
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.printing.jobs_output import print_job
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import QuarantinedRecord

_RECORDS_MAX: Final = 10_000
"""The records that one request names."""
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
    dataset: DatasetName,
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
    dataset: DatasetName,
    job: str | None = None,
    /,
    *,
    file: InputFile | None = None,
    accept_late: Flag = False,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Write bad records once more: all of a job, unchanged, after a change of the schema for example; or repaired ones.

    Example: `headwater quarantine redrive orders 01a1fc66-e85f-74fa-b50b-086a80c5ab7c`

    Example: `headwater quarantine list orders -o ndjson > bad.ndjson`, edit each `payload`, and `headwater quarantine
    redrive orders --file bad.ndjson`

    Parameters
    ----------
    job
        The id of the job whose records that wait are written, as they are.
    file
        Instead of a job: JSON objects with the `id` of a record and its repaired `payload`, a text or a JSON object,
        one a line or in an array. Without a payload the record is written as it is. Up to 10,000 records of one job;
        - reads the standard input.
    accept_late
        Write records behind the watermark, too.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    if (job is None) == (file is None):
        raise CommandError("expected the id of a job, or --file with records", ExitCode.USAGE)
    records = {} if file is None else _repaired(file)
    with service.client() as client:
        if job is not None:
            started = client.redrive_job(dataset, job, accept_late=accept_late, wait=wait)
        else:
            started = client.redrive(dataset, records, accept_late=accept_late, wait=wait)
    print_job(output, dataset, started)


def _repaired(file: Path) -> dict[str, str | None]:
    """The payloads in a file by the ids of their records; None for a record as it is. Raises CommandError."""
    payloads: dict[str, str | None] = {}
    with rows_file(file, "json") as rows:
        for number, line in enumerate(rows.lines(), 1):
            where = f"{name_of(file)}, record {number}"
            if len(payloads) == _RECORDS_MAX:
                raise CommandError(
                    f"{where}: one request has up to {_RECORDS_MAX:,} records: split the file", ExitCode.USAGE
                )
            try:
                record = msgspec.json.decode(line, type=_Repaired)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CommandError(f"{where}: {error}", ExitCode.USAGE) from error
            if record.id in payloads:
                raise CommandError(f"{where}: {record.id} is named twice: name it once", ExitCode.USAGE)
            payloads[record.id] = record.text(where)
    if not payloads:
        raise CommandError(f"{name_of(file)} has no records", ExitCode.USAGE)
    return payloads


class _Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a file of records. Other members, such as those that the list has, are not read."""

    id: str
    payload: str | dict[str, msgspec.Raw] | None = None
    encoding: str = "text"

    def text(self, where: str) -> str | None:
        """What is sent; None for the record as it is. Raises CommandError."""
        if self.payload is None:
            return None
        if isinstance(self.payload, dict):
            return msgspec.json.encode(self.payload).decode()
        if self.encoding != "text":
            raise CommandError(
                f"{where}: its bytes are no UTF-8, and `payload` has them in {self.encoding}: write the repaired text "
                "in `payload` and remove `encoding`, or remove both to write the record as it is",
                ExitCode.USAGE,
            )
        return self.payload


def discard(dataset: DatasetName, job: JobId, /, *, service: ServiceChoice = SERVICE) -> None:
    """Delete the bad records of a job for good.

    Example: `headwater quarantine discard orders 01a1fc66-e85f-74fa-b50b-086a80c5ab7c`
    """
    with service.client() as client:
        client.discard_quarantine(dataset, job)
    print(f"The bad records of job {job} are deleted.")
