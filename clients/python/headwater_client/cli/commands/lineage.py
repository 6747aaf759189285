"""`headwater lineage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Lineage, LineageEdge, LineageNode


def lineage(
    dataset: str | None = None, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """Print where rows come from and go to: between sources, datasets, views, webhooks, exports, consumers and shares.

    Example: `headwater lineage orders`

    Parameters
    ----------
    dataset
        Only what leads to this dataset, and what it leads to; by default all.
    """
    params = {} if dataset is None else {"dataset": dataset}
    with service.client() as client:
        answer = client.request("GET", "/lineage", params=params)
    found = msgspec.json.decode(answer.content, type=Lineage)
    if not output.is_table():
        output.item(found)
        return
    nodes = {node.id: node for node in found.nodes}
    output.items([(nodes[edge.from_], nodes[edge.to], edge) for edge in found.edges], _COLUMNS)


_COLUMNS: Final[Sequence[TableColumn[tuple[LineageNode, LineageNode, LineageEdge]]]] = (
    TableColumn("FROM", lambda each: each[0].name),
    TableColumn("KIND", lambda each: each[0].kind),
    TableColumn("TO", lambda each: each[1].name),
    TableColumn("KIND", lambda each: each[1].kind),
    TableColumn("STATE", lambda each: each[1].state),
    TableColumn("LAG", lambda each: each[2].lag),
)
