"""`headwater schema …`: the columns of a dataset, and their changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater_client.cli.arguments.names import DatasetName, Flag
from headwater_client.cli.arguments.schema_text import columns_of
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import AddField, DropField, Field, RenameField, SchemaChange

_COLUMNS: Final[Sequence[TableColumn[Field]]] = (
    TableColumn("ID", lambda each: each.id),
    TableColumn("COLUMN", lambda each: each.name),
    TableColumn("TYPE", lambda each: each.type),
    TableColumn("NULLABLE", lambda each: each.nullable),
    TableColumn("DESCRIPTION", lambda each: each.doc),
)


def list_columns(
    dataset: DatasetName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """List the columns of a dataset, with the ids that they keep.

    Example: `headwater schema orders`
    """
    with service.client() as client:
        output.items(client.get_schema(dataset).fields, _COLUMNS)


def add(
    dataset: DatasetName,
    columns: str,
    /,
    *,
    dry_run: Flag = False,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Add columns behind the others. Rows that exist have null there.

    Example: `headwater schema add orders discount:decimal(9,2)`

    Parameters
    ----------
    columns
        The columns, such as discount:decimal(9,2),note:string.
    dry_run
        Check the change, and change nothing.
    """
    added = [AddField(field=column) for column in columns_of(columns, "the columns")]
    _change(dataset, added, service, output, dry_run=dry_run)


def drop(
    dataset: DatasetName,
    /,
    *columns: str,
    dry_run: Flag = False,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Drop columns. Their values stay readable at earlier versions.

    A change that breaks a view, a source, an export or a webhook is refused, and the error names these.

    Example: `headwater schema drop orders at --dry-run`

    Parameters
    ----------
    columns
        The names of the columns.
    dry_run
        Check the change, and change nothing.
    """
    _change(dataset, [DropField(name=name) for name in columns], service, output, dry_run=dry_run)


def rename(
    dataset: DatasetName,
    column: str,
    to: str,
    /,
    *,
    dry_run: Flag = False,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Rename a column, which keeps its values.

    A change that breaks a view, a source, an export or a webhook is refused, and the error names these.

    Example: `headwater schema rename orders at placed_at --dry-run`

    Parameters
    ----------
    column
        The present name.
    to
        The new name.
    dry_run
        Check the change, and change nothing.
    """
    _change(dataset, [RenameField(name=column, to=to)], service, output, dry_run=dry_run)


def _change(
    dataset: str, changes: Sequence[SchemaChange], service: ServiceChoice, output: Output, *, dry_run: bool
) -> None:
    with service.client() as client:
        found = client.change_schema(dataset, *changes, dry_run=dry_run)
    columns = ", ".join(f"{field.name}:{field.type}" for field in found.schema.fields)
    done = "would have" if dry_run else f"has, as version {found.version:,},"
    output.done(f"{found.name} {done} the columns {columns}", found)
