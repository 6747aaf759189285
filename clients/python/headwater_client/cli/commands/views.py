"""`headwater views …`: datasets that are derived by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater_client.cli.arguments.documents import document
from headwater_client.cli.arguments.names import InputFile, Names, ViewName
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.printing.jobs_output import print_job
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.cli.state_changes import change_state
from headwater_client.models import CreateView, View, ViewInput


def _name(read: ViewInput) -> str:
    return read.relation if read.dataset is None else read.dataset.name


def _lag(view: View) -> int | None:
    """The changes that the view does not show yet; None for a key that does not see all of an input."""
    lags = [read.lag for read in view.inputs if read.lag is not None]
    return sum(lags) if len(lags) == len(view.inputs) else None


_COLUMNS: Final[Sequence[TableColumn[View]]] = (
    TableColumn("NAME", lambda each: each.name),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("FRESHNESS", lambda each: each.freshness),
    TableColumn("MODE", lambda each: each.mode),
    TableColumn("READS", lambda each: ",".join(_name(read) for read in each.inputs)),
    TableColumn("LAG", _lag),
    TableColumn("REFRESHED", lambda each: each.refreshed_at),
    TableColumn("ERROR", lambda each: None if each.error is None else str(each.error.get("title"))),
)


def list_views(
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List views by name.

    Example: `headwater views`
    """
    with service.client() as client:
        output.items(client.views(), _COLUMNS)


def create(
    name: str | None = None,
    sql: str | None = None,
    /,
    *,
    key: Names = None,
    file: InputFile | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Register a view, by its SQL, or by the JSON body of POST /views. Its first refresh starts at once.

    Example: `headwater views create states 'SELECT state, count(*) AS orders FROM orders GROUP BY state'`

    Example: `headwater views create --file view.json`

    Parameters
    ----------
    name
        The name.
    sql
        The query.
    key
        The fields that identify a row; by default those that the query implies.
    file
        A file with the JSON body; - reads the standard input.
    """
    if file is not None:
        new = document(file, CreateView, "a view")
    elif name is not None and sql is not None:
        new = CreateView(name=name, sql=sql, record_key=None if key is None else tuple(key))
    else:
        raise CommandError("a view needs a name and a query, or --file", ExitCode.USAGE)
    with service.client() as client:
        made = client.create_view(new)
    output.done(f"View {made.name} has the id {made.id}.", made)


def show(
    view: ViewName,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print a view: its query, its state, and how far it has read.

    Example: `headwater views show states`
    """
    with service.client() as client:
        output.item(client.get_view(view))


def refresh(
    view: ViewName,
    /,
    *,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Refresh a view now, and wait until it has all current changes.

    Example: `headwater views refresh states`

    Parameters
    ----------
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.refresh_view(view, wait=wait)
    print_job(output, view, job)


def pause(
    view: ViewName,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Pause the automatic refreshes of a view.

    Example: `headwater views pause states`
    """
    change_state(service, output, lambda client: client.pause_view(view))


def resume(
    view: ViewName,
    /,
    *,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Resume the automatic refreshes of a view.

    Example: `headwater views resume states`
    """
    change_state(service, output, lambda client: client.pause_view(view, paused=False))


def delete(
    view: ViewName,
    /,
    *,
    service: ServiceChoice = SERVICE,
) -> None:
    """Delete a view with its rows and its feed.

    Example: `headwater views delete states`
    """
    with service.client() as client:
        client.delete_view(view)
    print(f"View {view} is deleted.")
