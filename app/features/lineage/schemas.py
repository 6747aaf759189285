"""The JSON of lineage."""

from __future__ import annotations

from typing import Annotated

import msgspec

from app.features.lineage.values import ColumnEdge, Edge, Graph, NodeKind


class ReadLineageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `read_lineage`."""

    dataset: Annotated[str, msgspec.Meta(examples=["orders"])] | None = None
    """The id or the name of a dataset: only what leads to it and what it leads to, in any number of steps."""
    columns: bool = False
    """Adds the columns of edges."""


class LineageNode(msgspec.Struct, frozen=True, kw_only=True):
    """Something that rows come from or go to."""

    id: str
    """Its id; of a consumer, the id of the dataset, `/`, and its name."""
    kind: NodeKind
    """What it is."""
    name: Annotated[str, msgspec.Meta(examples=["orders"])]
    """Its name; of a webhook its description, or the host of its URL. An export without a name has its id."""
    state: Annotated[str, msgspec.Meta(examples=["active"])] | None
    """Its state, as its own resource has it; null for what has no state."""


class LineageColumn(msgspec.Struct, frozen=True, kw_only=True, rename={"origin": "from", "target": "to"}):
    """A column of the node that an edge comes from, and one of the node that it leads to."""

    origin: Annotated[str, msgspec.Meta(examples=["amount"])]
    """The column that values come from."""
    target: Annotated[str, msgspec.Meta(examples=["total"])]
    """The column whose values are computed from it."""


class LineageEdge(msgspec.Struct, frozen=True, kw_only=True, rename={"origin": "from", "target": "to"}):
    """Rows of one node go to another."""

    origin: str
    """The id of the node that rows come from."""
    target: str
    """The id of the node that they go to."""
    lag: int | None
    """The number of changes that have not gone there yet; null where it is not known, for snapshots, and for a key that
    sees a part of the dataset that the changes are of.
    """
    columns: list[LineageColumn] | None
    """The columns, on request; null where they are not known, and for consumers and shares, which have all of them.

    Columns that only decide which rows there are, as in WHERE and ON, are not among them.
    """


class LineageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What the datasets of the tenant are made of, and where their rows go."""

    nodes: list[LineageNode]
    """The nodes, datasets and views first."""
    edges: list[LineageEdge]
    """The edges between these nodes."""


def lineage_response(graph: Graph) -> LineageResponse:
    """A graph as JSON."""
    return LineageResponse(
        nodes=[
            LineageNode(id=each.id, kind=each.kind, name=each.name, state=each.state) for each in graph.nodes
        ],
        edges=[_edge(each) for each in graph.edges],
    )


def _edge(edge: Edge) -> LineageEdge:
    return LineageEdge(
        origin=edge.origin,
        target=edge.target,
        lag=edge.lag,
        columns=None if edge.columns is None else [_column(each) for each in edge.columns],
    )


def _column(column: ColumnEdge) -> LineageColumn:
    return LineageColumn(origin=column.origin, target=column.target)
