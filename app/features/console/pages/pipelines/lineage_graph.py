"""The graph of lineage as a page shows it: which part, where its nodes stand, and where a column leads."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

READERS: Final = ("webhook", "export", "consumer", "share")
"""Kinds of nodes that rows leave the service by. They stand in the last column."""
_SWEEPS: Final = 4


class ColumnOfNode(NamedTuple):
    """A column of the rows of a node."""

    node: str
    column: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageGraph:
    """Nodes by id, and the edges between them, as `GET /lineage` has them."""

    nodes: Mapping[str, Mapping[str, Any]]
    edges: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, response: Mapping[str, Any]) -> LineageGraph:
        """The graph of a response."""
        nodes = {each["id"]: each for each in response["nodes"]}
        edges = [each for each in response["edges"] if each["from"] in nodes and each["to"] in nodes]
        return cls(nodes=nodes, edges=edges)

    def part(self, ids: Collection[str]) -> LineageGraph:
        """The graph of some of its nodes."""
        return LineageGraph(
            nodes={id_: node for id_, node in self.nodes.items() if id_ in ids},
            edges=[each for each in self.edges if each["from"] in ids and each["to"] in ids],
        )

    def id_of(self, reference: str) -> str | None:
        """The id of the dataset or view with this id or name; None if there is none."""
        for id_, node in self.nodes.items():
            if node["kind"] in ("dataset", "view") and reference in (id_, node["name"]):
                return id_
        return None

    def nearest(self, start: str, count: int) -> set[str]:
        """The node and those with the fewest edges between, in both directions, `count` at most."""
        beside: dict[str, list[str]] = defaultdict(list)
        for each in self.edges:
            beside[each["from"]].append(each["to"])
            beside[each["to"]].append(each["from"])
        ids, waiting = {start}, deque([start])
        while waiting:
            for other in beside[waiting.popleft()]:
                if other not in ids:
                    if len(ids) >= count:
                        return ids
                    ids.add(other)
                    waiting.append(other)
        return ids

    def columns(self) -> Mapping[str, Sequence[str]]:
        """The columns of each node that an edge names, by name."""
        names: dict[str, set[str]] = defaultdict(set)
        for each in self.edges:
            for pair in each["columns"] or ():
                names[each["from"]].add(pair["from"])
                names[each["to"]].add(pair["to"])
        return {id_: sorted(columns) for id_, columns in names.items()}

    def trace(self, start: ColumnOfNode) -> set[ColumnOfNode]:
        """The column, what it is computed from, and what is computed from it, in any number of steps.

        A reader that gets all columns is there under the name of the column that leads to it.
        """
        onward: dict[ColumnOfNode, list[ColumnOfNode]] = defaultdict(list)
        back: dict[ColumnOfNode, list[ColumnOfNode]] = defaultdict(list)
        whole: dict[str, list[str]] = defaultdict(list)
        for each in self.edges:
            if each["columns"] is None and self.nodes[each["to"]]["kind"] in ("consumer", "share"):
                whole[each["from"]].append(each["to"])
            for pair in each["columns"] or ():
                origin, target = (
                    ColumnOfNode(each["from"], pair["from"]),
                    ColumnOfNode(each["to"], pair["to"]),
                )
                onward[origin].append(target)
                back[target].append(origin)
        trace = _ways(start, onward) | _ways(start, back)
        ends = {
            ColumnOfNode(reader, each.column) for each in _ways(start, onward) for reader in whole[each.node]
        }
        return trace | ends


def _ways(start: ColumnOfNode, steps: Mapping[ColumnOfNode, Sequence[ColumnOfNode]]) -> set[ColumnOfNode]:
    ids, waiting = {start}, [start]
    while waiting:
        for each in steps.get(waiting.pop(), ()):
            if each not in ids:
                ids.add(each)
                waiting.append(each)
    return ids


class Passage(NamedTuple):
    """Where an edge passes a column on its way to the right. `step`: the number of the column."""

    origin: str
    target: str
    step: int


Place: TypeAlias = str | Passage
"""What stands in a column: a node, by its id, or a passage."""


def step_columns(graph: LineageGraph) -> list[list[Place]]:
    """Nodes and passages, one column a step, from left to right and from top to bottom.

    What a node is made of stands to its left; in a circle, one edge leads back.
    """
    steps = _steps(graph)
    last = max((step for id_, step in steps.items() if not _is_reader(graph, id_)), default=-1) + 1
    steps |= {id_: last for id_ in graph.nodes if _is_reader(graph, id_)}
    in_use = sorted(set(steps.values()))
    steps = {id_: in_use.index(step) for id_, step in steps.items()}
    columns: list[list[Place]] = [[] for _ in in_use]
    for id_ in sorted(graph.nodes, key=lambda each: _order(graph, each)):
        columns[steps[id_]].append(id_)
    links = [pair for each in graph.edges for pair in pairwise(way(each, steps))]
    for place in dict.fromkeys(place for pair in links for place in pair):
        if isinstance(place, Passage):
            columns[place.step].append(place)
    _untangle(links, columns)
    return columns


def way(edge: Mapping[str, Any], steps: Mapping[str, int]) -> list[Place]:
    """The places of an edge: its nodes, and the passages between them. `steps`: the columns of nodes."""
    origin, target = edge["from"], edge["to"]
    between = range(steps[origin] + 1, steps[target])
    return [origin, *(Passage(origin, target, step) for step in between), target]


def _is_reader(graph: LineageGraph, id_: str) -> bool:
    return graph.nodes[id_]["kind"] in READERS


def _order(graph: LineageGraph, id_: str) -> tuple[int, str]:
    node = graph.nodes[id_]
    kinds = ("source", "dataset", "view", *READERS)
    return (kinds.index(node["kind"]) if node["kind"] in kinds else len(kinds), node["name"])


def _steps(graph: LineageGraph) -> dict[str, int]:
    """The longest way to each node. Datasets that no source writes to stand beside those with one."""
    inputs: dict[str, set[str]] = {id_: set() for id_ in graph.nodes}
    outputs: dict[str, set[str]] = {id_: set() for id_ in graph.nodes}
    for each in graph.edges:
        if each["from"] != each["to"]:
            inputs[each["to"]].add(each["from"])
            outputs[each["from"]].add(each["to"])
    has_sources = any(node["kind"] == "source" and not inputs[id_] for id_, node in graph.nodes.items())
    steps: dict[str, int] = {}
    left = dict.fromkeys(sorted(graph.nodes, key=lambda each: _order(graph, each)))
    counts = {id_: len(origins) for id_, origins in inputs.items()}
    free = deque(id_ for id_ in left if not counts[id_])
    while left:
        # In a circle of sources and datasets none is free: the first one begins.
        id_ = free.popleft() if free else next(iter(left))
        if id_ not in left:
            continue
        del left[id_]
        least = 1 if has_sources and graph.nodes[id_]["kind"] != "source" else 0
        steps[id_] = max([least, *(steps[origin] + 1 for origin in inputs[id_] if origin in steps)])
        for target in outputs[id_]:
            counts[target] -= 1
            if not counts[target]:
                free.append(target)
    return steps


def _untangle(links: Iterable[tuple[Place, Place]], columns: list[list[Place]]) -> None:
    """Orders each column by the rows of what its places are connected with, so that few edges cross."""
    beside: dict[Place, list[Place]] = defaultdict(list)
    for one, other in links:
        beside[one].append(other)
        beside[other].append(one)
    rows = {place: float(row) for column in columns for row, place in enumerate(column)}
    for _ in range(_SWEEPS):
        for column in columns:
            middles = {place: _mean(rows[other] for other in beside[place]) for place in column}
            column.sort(key=lambda place: rows[place] if middles[place] is None else middles[place] or 0.0)
            rows |= {place: float(row) for row, place in enumerate(column)}


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None
