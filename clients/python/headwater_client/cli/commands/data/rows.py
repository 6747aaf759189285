"""`headwater rows` and `headwater get`: the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from headwater_client.cli.arguments.names import Before, Count, DatasetName, Flag, Names, Texts
from headwater_client.cli.printing.changes_output import print_changes
from headwater_client.cli.printing.output import OUTPUT, Output
from headwater_client.cli.printing.rows_output import ROW_OUTPUT, TABLE_ROWS, RowOutput
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.client import Headwater
from headwater_client.models import QueryType, ReadOrder

_PAGE_ROWS: Final = 10_000


def rows(
    dataset: DatasetName,
    /,
    *,
    where: str | None = None,
    columns: Names = None,
    partitions: Texts = None,
    order_by: Names = None,
    limit: Count | None = None,
    version: int | None = None,
    as_of: Before = None,
    tag: str | None = None,
    meta: Flag = False,
    query_type: QueryType = "snapshot",
    service: ServiceChoice = SERVICE,
    output: RowOutput = ROW_OUTPUT,
) -> None:
    """Print rows of a table, of one version.

    Example: `headwater rows orders --where "state = 'new'" --columns id,state`

    Example: `headwater rows orders --order-by id:desc --limit 10`

    Example: `headwater rows orders -o parquet > orders.parquet`

    Parameters
    ----------
    where
        A filter, such as "price > 10 AND day < DATE '2026-01-01'".
    columns
        Only these columns, such as id,state.
    partitions
        A glob of partition paths, such as day=2026-11-*. May be repeated.
    order_by
        Columns to order by, such as at:desc,id; by default in no particular order.
    limit
        How many rows; by default the first 100 in a table, and all in other forms.
    version
        The number of the version; by default the latest one.
    as_of
        A time instead of a version, such as 2026-11-29 (UTC), or 1h for an hour ago.
    tag
        The name of a version.
    meta
        Add the meta columns, such as the key and the file of a row.
    query_type
        read_optimized reads base files only, without logs.
    """
    wanted = TABLE_ROWS + 1 if limit is None and output.form == "table" else limit
    options: dict[str, Any] = {
        "where": where,
        "columns": columns,
        "partitions": partitions,
        "version": version,
        "as_of": as_of,
        "tag": tag,
        "order_by": None if order_by is None else [_order(text) for text in order_by],
        "meta": meta,
        "query_type": query_type,
        "limit": _PAGE_ROWS if wanted is None else max(min(wanted, _PAGE_ROWS), 1),
    }
    with service.client() as client:
        if output.is_binary:
            output.print_tables(client.row_tables(dataset, **options), limit=limit)
        else:
            output.print_rows(client.rows(dataset, **options), _names(client, dataset, columns), limit=limit)


def get(
    dataset: DatasetName,
    /,
    *key: str,
    history: Flag = False,
    columns: Names = None,
    version: int | None = None,
    as_of: Before = None,
    tag: str | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print the row of a key, or how it came to be. The exit code is 3 if there is no such row.

    Example: `headwater get orders 1001`

    Example: `headwater get orders 1001 --history`

    Parameters
    ----------
    key
        The values of the key, in the order of its fields.
    history
        Print the changes of the key instead, as `tail` does.
    columns
        Only these columns, such as id,state.
    version
        The number of the version; by default the latest one.
    as_of
        A time instead of a version, such as 2026-11-29 (UTC), or 1h for an hour ago.
    tag
        The name of a version.
    """
    with service.client() as client:
        if not history:
            found = client.row(dataset, *key, version=version, as_of=as_of, tag=tag, columns=columns)
            output.row(found.row or {})
            return
        changes = client.row(dataset, *key, columns=columns, history=True, limit=1_000).changes or ()
        record_key = client.get_dataset(dataset).record_key
        print_changes(changes, "table" if output.is_table() else output.output or "ndjson", record_key)


def _names(client: Headwater, dataset: str, columns: Sequence[str] | None) -> Callable[[], Sequence[str]]:
    """The columns of a result that may have no row to name them."""
    return lambda: list(columns or (field.name for field in client.get_schema(dataset).fields))


def _order(text: str) -> ReadOrder:
    column, _, direction = text.rpartition(":")
    if direction not in ("asc", "desc"):
        return ReadOrder(column=text)
    return ReadOrder(column=column, descending=direction == "desc")
