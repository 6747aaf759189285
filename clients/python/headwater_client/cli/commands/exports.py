"""`headwater exports …`: feeds and rows that are written to files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from headwater_client.cli.arguments.documents import json_of
from headwater_client.cli.arguments.names import Count, DatasetName, ExportId, InputFile
from headwater_client.cli.printing.output import OUTPUT, Bytes, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.cli.state_changes import change_state
from headwater_client.models import Export, ExportRunSummary, ExportState
from headwater_client.transport.connection import dataset_path

_COLUMNS: Final[Sequence[TableColumn[Export]]] = (
    TableColumn("ID", lambda each: each.id),
    TableColumn("DATASET", lambda each: each.dataset.name),
    TableColumn("NAME", lambda each: each.name),
    TableColumn("QUERY", lambda each: each.query),
    TableColumn("FORMAT", lambda each: each.format),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("OFFSET", lambda each: each.offset),
    TableColumn("DESTINATION", lambda each: each.destination),
    TableColumn("ERROR", lambda each: None if each.error is None else str(each.error.get("title"))),
)
_RUNS: Final[Sequence[TableColumn[ExportRunSummary]]] = (
    TableColumn("NUMBER", lambda each: each.number),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("FROM", lambda each: each.since),
    TableColumn("TO", lambda each: each.next_since),
    TableColumn("ROWS", lambda each: each.rows),
    TableColumn("FILES", lambda each: each.file_count),
    TableColumn("SIZE", lambda each: None if each.size_bytes is None else Bytes(each.size_bytes)),
    TableColumn("CREATED", lambda each: each.created_at),
)


def list_exports(
    dataset: str | None = None,
    /,
    *,
    state: ExportState | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List the exports of a dataset, or of all.

    Example: `headwater exports orders --state ended`

    Parameters
    ----------
    dataset
        The name or the id of the dataset; by default all.
    state
        Only those in this state.
    """
    with service.client() as client:
        output.items(client.exports(dataset, state=state), _COLUMNS)


def create(
    dataset: DatasetName,
    file: InputFile,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Register an export. Its first run starts at once; with cron, at the first of its times.

    Example: `headwater exports create orders export.json`

    Parameters
    ----------
    file
        A file with the JSON body, such as {"query": "incremental", "format": "parquet"}; - reads the standard input.
    """
    body = json_of(file)
    with service.client() as client:
        answer = client.request(
            "POST",
            f"{dataset_path(dataset)}/exports",
            headers={"Content-Type": "application/json"},
            body=msgspec.json.encode(body),
        )
    made = msgspec.json.decode(answer.content, type=Export)
    output.done(f"Export {made.id} is {made.state}.", made)


def show(
    export: ExportId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print an export.

    Example: `headwater exports show 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    with service.client() as client:
        output.item(client.get_export(export))


def run(
    export: ExportId,
    /,
    *,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Export what has changed since the last run.

    Example: `headwater exports run 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`

    Parameters
    ----------
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        started = client.run_export(export)
        if wait:
            output.item(client.wait_for_export(export, started.number, seconds=wait))
        else:
            output.item(started)


def runs(
    export: ExportId,
    /,
    *,
    limit: Count = 50,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List the runs of an export, the latest first.

    Example: `headwater exports runs 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`

    Parameters
    ----------
    limit
        How many runs, at most.
    """
    with service.client() as client:
        output.items(islice(client.export_runs(export), limit), _RUNS)


def download(
    export: ExportId,
    folder: Path,
    /,
    *,
    number: int | None = None,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Download the files of a run, once it has succeeded, and its manifest.

    Example: `headwater exports download 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2 orders-export`

    Parameters
    ----------
    folder
        The folder, which is made if it does not exist.
    number
        The number of the run; by default the last one.
    wait
        How many seconds to wait for the end of the run.
    """
    with service.client() as client:
        found = client.wait_for_export(export, number, seconds=wait)
        paths = client.download_export(found, folder)
    output.done(f"{len(paths)} files are in {folder}.", {"files": [str(path) for path in paths]})


def pause(
    export: ExportId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Pause an export with a schedule. A run in progress continues.

    Example: `headwater exports pause 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    change_state(service, output, lambda client: client.pause_export(export))


def resume(
    export: ExportId,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Resume an export that was paused or has ended.

    Example: `headwater exports resume 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    change_state(service, output, lambda client: client.resume_export(export))


def delete(
    export: ExportId,
    /,
    *,
    service: ServiceChoice = SERVICE,
) -> None:
    """Delete an export, and its runs with their files.

    Example: `headwater exports delete 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`
    """
    with service.client() as client:
        client.delete_export(export)
    print(f"Export {export} is deleted.")
