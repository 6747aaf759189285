"""`headwater lineage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from headwater_client.cli.arguments.names import Flag
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Lineage, LineageEdge, LineageNode


def lineage(
    dataset: str | None = None,
    /,
    *,
    columns: Flag = False,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print where rows come from and go to: between sources, datasets, views, webhooks, exports, consumers and shares.

    Example: `headwater lineage orders`

    Parameters
    ----------
    dataset
        Only what leads to this dataset, and what it leads to; by default all.
    columns
        Also print which columns are computed from which.
    """
    params = ({} if dataset is None else {"dataset": dataset}) | ({"columns": "true"} if columns else {})
    with service.client() as client:
        answer = client.request("GET", "/lineage", params=params)
    found = msgspec.json.decode(answer.content, type=Lineage)
    if not output.is_table():
        output.item(found)
        return
    nodes = {node.id: node for node in found.nodes}
    output.items(
        [(nodes[edge.from_], nodes[edge.to], edge) for edge in found.edges], _headings(columns=columns)
    )


def _headings(*, columns: bool) -> Sequence[TableColumn[_Edge]]:
    return (*_COLUMNS, _FIELDS) if columns else _COLUMNS


def _fields(edge: LineageEdge) -> str | None:
    """The columns of an edge, such as `amount → total`; one name where both are the same."""
    if edge.columns is None:
        return None
    pairs = ((each.from_, each.to) for each in edge.columns)
    return ", ".join(source if source == target else f"{source} → {target}" for source, target in pairs)


_Edge = tuple[LineageNode, LineageNode, LineageEdge]
_FIELDS: Final[TableColumn[_Edge]] = TableColumn("COLUMNS", lambda each: _fields(each[2]))
_COLUMNS: Final[Sequence[TableColumn[_Edge]]] = (
    TableColumn("FROM", lambda each: each[0].name),
    TableColumn("KIND", lambda each: each[0].kind),
    TableColumn("TO", lambda each: each[1].name),
    TableColumn("KIND", lambda each: each[1].kind),
    TableColumn("STATE", lambda each: each[1].state),
    TableColumn("LAG", lambda each: each[2].lag),
)
