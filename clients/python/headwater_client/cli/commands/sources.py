"""`headwater sources …`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from headwater_client.cli.arguments.documents import document, json_object
from headwater_client.cli.arguments.names import InputFile, SourceName
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.cli.state_changes import change_state
from headwater_client.models import CreateSource, Source


def list_sources(*, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """List sources by name.

    Example: `headwater sources`
    """
    with service.client() as client:
        output.items(client.sources(), _COLUMNS)


def create(file: InputFile, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Register a source.

    Example: `headwater sources create source.json`

    Parameters
    ----------
    file
        A file with the JSON body of POST /sources; - reads the standard input.
    """
    new = document(file, CreateSource, "a source")
    with service.client() as client:
        made = client.create_source(new)
    output.done(f"Source {made.name} has the id {made.id}.", made)


def show(source: SourceName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Print a source: its settings, its position, its last round and its last error.

    Example: `headwater sources show invoices`
    """
    with service.client() as client:
        output.item(client.get_source(source))


def run(
    source: SourceName, /, *, wait: float = 600, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """Start a round now, and wait for its rows.

    Example: `headwater sources run invoices`

    Parameters
    ----------
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.start_source_round(source, wait=wait)
    output.item(job)


def pause(source: SourceName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Pause a source. A round that runs is finished.

    Example: `headwater sources pause invoices`
    """
    change_state(service, output, lambda client: client.pause_source(source))


def resume(source: SourceName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Resume a source, also after it has failed or finished.

    Example: `headwater sources resume invoices`
    """
    change_state(service, output, lambda client: client.pause_source(source, paused=False))


def reset(
    source: SourceName,
    /,
    *,
    position: str | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Move a source to a position, after which it reads everything again.

    Example: `headwater sources reset invoices`

    Parameters
    ----------
    position
        The position as a JSON object, in the form that `show` prints; by default the beginning.
    """
    wanted = {} if position is None else json_object(position, "--position")
    with service.client() as client:
        moved = client.reset_source(source, wanted)
    output.done(f"Source {moved.name} is at {msgspec.json.encode(moved.position).decode()}.", moved)


def delete(source: SourceName, /, *, service: ServiceChoice = SERVICE) -> None:
    """Delete a source. Its dataset and its rows stay.

    Example: `headwater sources delete invoices`
    """
    with service.client() as client:
        client.delete_source(source)
    print(f"Source {source} is deleted.")


def _error(source: Source) -> str | None:
    return None if source.last_error is None else str(source.last_error.get("title"))


_COLUMNS: Final[Sequence[TableColumn[Source]]] = (
    TableColumn("NAME", lambda each: each.name),
    TableColumn("KIND", lambda each: each.kind),
    TableColumn("DATASET", lambda each: each.dataset.name),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("ROUNDS", lambda each: each.rounds),
    TableColumn("ERROR", _error),
)
