"""The values of lineage: nodes, edges, and the columns of edges."""

from __future__ import annotations

from enum import Enum

import msgspec


class NodeKind(str, Enum):
    """What a node of lineage is."""

    DATASET = "dataset"
    VIEW = "view"
    SOURCE = "source"
    WEBHOOK = "webhook"
    EXPORT = "export"
    CONSUMER = "consumer"
    SHARE = "share"


class LineagePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Something that rows come from or go to. `state`: as its own resource has it; None for what has no state."""

    id: str
    kind: NodeKind
    name: str
    state: str | None = None


class ColumnEdge(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the node that an edge comes from, and one of the node that it leads to, computed from it."""

    origin: str
    target: str


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one node, by its id, go to another. `lag`: the number of changes that have not gone there yet.

    None for a number that is not known. `columns`: None if they are not known or not wanted.
    """

    origin: str
    target: str
    lag: int | None = None
    columns: tuple[ColumnEdge, ...] | None = None


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage of a tenant, or of one of its datasets."""

    nodes: tuple[LineagePoint, ...]
    edges: tuple[Edge, ...]
