"""Values of lineage. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

import msgspec


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """What the datasets of the tenant are made of, and where their rows go."""

    nodes: tuple[LineageNode, ...]
    """The nodes, datasets and views first."""
    edges: tuple[LineageEdge, ...]
    """The edges between these nodes."""


class LineageColumn(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A column of the node that an edge comes from, and one of the node that it leads to."""

    from_: str
    """The column that values come from."""
    to: str
    """The column whose values are computed from it."""


class LineageEdge(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Rows of one node go to another."""

    from_: str
    """The id of the node that rows come from."""
    to: str
    """The id of the node that they go to."""
    lag: int | None
    """The number of changes that have not gone there yet; null where it is not known, for snapshots, and for a key that
    sees a part of the dataset that the changes are of.
    """
    columns: tuple[LineageColumn, ...] | None
    """The columns, on request; null where they are not known, and for consumers and shares, which have all of them.
    Columns that only decide which rows there are, as in WHERE and ON, are not among them.
    """


class LineageNode(msgspec.Struct, frozen=True, kw_only=True):
    """Something that rows come from or go to."""

    id: str
    """Its id; of a consumer, the id of the dataset, `/`, and its name."""
    kind: str
    """What it is."""
    name: str
    """Its name; of a webhook its description, or the host of its URL. An export without a name has its id."""
    state: str | None
    """Its state, as its own resource has it; null for what has no state."""
