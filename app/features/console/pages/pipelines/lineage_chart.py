"""The graph of lineage as SVG. Its style comes from classes; nodes and columns are links, so it needs no script."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from app.features.console.pages.pipelines.lineage_graph import (
    ColumnOfNode,
    LineageGraph,
    Place,
    step_columns,
    way,
)
from app.features.console.rendering import StateWords, counted

_WIDTH: Final = 170
_STEP: Final = 250
_HEIGHT: Final = 38
_LINE: Final = 16
_GAP: Final = 14
_PASSAGE: Final = 10
"""The height of a passage, with the gap below it: edges stay apart from each other."""
_TOP: Final = 24
_EDGE: Final = 8
_NAME_CHARACTERS: Final = 22
_LAG_CHARACTER: Final = 6
"""The width of a character beside an edge."""
_COLUMNS_SHOWN: Final = 12
"""The most columns of a node that are drawn; the others are in the table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageStyle:
    """What is drawn besides the graph. `notes`: what nodes say beside their names, by id.

    `trace`: columns that are marked; empty for no mark.
    """

    notes: Mapping[str, StateWords]
    columns: Mapping[str, Sequence[str]]
    trace: Collection[ColumnOfNode]
    focus: str | None
    node_link: Callable[[str], str]
    column_link: Callable[[str, str], str]


class _Box(NamedTuple):
    left: int
    top: int
    height: int

    @property
    def middle(self) -> int:
        return self.top + min(self.height, _HEIGHT) // 2


def lineage_chart(graph: LineageGraph, style: LineageStyle) -> Markup:
    """The picture, as wide and high as it must be. The page scrolls it."""
    columns = step_columns(graph)
    boxes = _boxes(columns, style)
    steps = {place: step for step, column in enumerate(columns) for place in column if isinstance(place, str)}
    heads = Markup("").join(
        Markup('<text class="head" x="{}" y="14">{}</text>').format(_left(step), _head(graph, column))
        for step, column in enumerate(columns)
    )
    width = _left(len(columns) - 1) + _WIDTH + _EDGE if boxes else 0
    height = max((box.top + box.height for box in boxes.values()), default=0) + _EDGE
    edges = Markup("").join(
        _edge(each, [boxes[place] for place in way(each, steps)], style) for each in graph.edges
    )
    # Above all edges, so that none crosses a text.
    lags = Markup("").join(_lag(each, boxes[each["to"]]) for each in graph.edges if each["lag"])
    nodes = Markup("").join(_node(graph, id_, boxes[id_], style) for id_ in graph.nodes)
    nodes_and_edges = f"{counted(len(graph.nodes), 'node')} with {counted(len(graph.edges), 'edge')}"
    label = f"Lineage of {nodes_and_edges}; the table has the same"
    return Markup(
        '<svg class="lineage{}" width="{}" height="{}" viewBox="0 0 {} {}" role="group" aria-label="{}">{}{}{}{}</svg>'
    ).format(
        " tracing" if style.trace else "", width, height, width, height, label, heads, edges, lags, nodes
    )


def _left(step: int) -> int:
    return _EDGE + step * _STEP


def _boxes(columns: Sequence[Sequence[Place]], style: LineageStyle) -> dict[Place, _Box]:
    boxes: dict[Place, _Box] = {}
    for step, column in enumerate(columns):
        top = _TOP
        for place in column:
            height, gap = _PASSAGE, 0
            if isinstance(place, str):
                shown = len(_shown(style, place))
                height, gap = _HEIGHT + _LINE * shown + (4 if shown else 0), _GAP
            boxes[place] = _Box(_left(step), top, height)
            top += height + gap
    return boxes


def _head(graph: LineageGraph, column: Sequence[Place]) -> str:
    kinds = {graph.nodes[place]["kind"] for place in column if isinstance(place, str)}
    return ", ".join(f"{kind}s" for kind in sorted(kinds))


def _shown(style: LineageStyle, id_: str) -> Sequence[str]:
    """The columns that are drawn: those of the trace first."""
    columns = style.columns.get(id_, ())
    first = [each for each in columns if ColumnOfNode(id_, each) in style.trace]
    return [*first, *(each for each in columns if each not in first)][:_COLUMNS_SHOWN]


def _node(graph: LineageGraph, id_: str, box: _Box, style: LineageStyle) -> Markup:
    node, note = graph.nodes[id_], style.notes.get(id_, StateWords("idle", ""))
    marks = any(each.node == id_ for each in style.trace)
    classes = " ".join(
        [
            "node",
            str(node["kind"]),
            *(["focus"] if id_ == style.focus else ()),
            *(["traced"] if marks else ()),
        ]
    )
    columns = Markup("").join(
        _column(id_, name, box, row, style) for row, name in enumerate(_shown(style, id_))
    )
    return Markup(
        '<g class="{}"><a href="{}"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="4"/>'
        '<text x="{}" y="{}">{}</text></a><text class="note {}" x="{}" y="{}">{}</text>{}</g>'
    ).format(
        classes,
        style.node_link(id_),
        f"{node['kind']} {node['name']}{': ' if note.words else ''}{note.words}",
        box.left,
        box.top,
        _WIDTH,
        box.height,
        box.left + 8,
        box.top + 16,
        short(node["name"], _NAME_CHARACTERS),
        note.kind,
        box.left + 8,
        box.top + 31,
        short(note.words, _NAME_CHARACTERS + 4),
        columns,
    )


def _column(id_: str, name: str, box: _Box, row: int, style: LineageStyle) -> Markup:
    mark = " traced" if ColumnOfNode(id_, name) in style.trace else ""
    return Markup('<a href="{}"><title>{}</title><text class="column{}" x="{}" y="{}">{}</text></a>').format(
        style.column_link(id_, name),
        name,
        mark,
        box.left + 16,
        box.top + _HEIGHT + _LINE * row + 10,
        short(name, _NAME_CHARACTERS),
    )


def _edge(edge: Mapping[str, Any], boxes: Sequence[_Box], style: LineageStyle) -> Markup:
    """A line through the boxes: from the right side of the first, along those between, to the left of the last."""
    target = boxes[-1]
    path = f"M{boxes[0].left + _WIDTH} {boxes[0].middle}"
    for box, following in pairwise(boxes):
        begin, end = box.left + _WIDTH, following.left
        bend = max((end - begin) // 2, 30)
        path += f" C{begin + bend} {box.middle} {end - bend} {following.middle} {end} {following.middle}"
        if following is not target:
            path += f" H{following.left + _WIDTH}"
    mark = " traced" if _carries(edge, style.trace) else ""
    return Markup('<g class="edge{}"><path d="{}"/></g>').format(mark, path)


def _lag(edge: Mapping[str, Any], target: _Box) -> Markup:
    """How far the target of an edge is behind, at the end of the edge, on ground of its own."""
    words = f"{edge['lag']:,} behind"
    width = len(words) * _LAG_CHARACTER + 4
    return Markup(
        '<rect class="ground" x="{}" y="{}" width="{}" height="14"/><text class="lag" x="{}" y="{}">{}</text>'
    ).format(target.left - 4 - width, target.middle - 16, width, target.left - 6, target.middle - 5, words)


def _carries(edge: Mapping[str, Any], trace: Collection[ColumnOfNode]) -> bool:
    if edge["columns"] is None:
        origins = {each.column for each in trace if each.node == edge["from"]}
        return any(each.node == edge["to"] and each.column in origins for each in trace)
    return any(
        ColumnOfNode(edge["from"], pair["from"]) in trace and ColumnOfNode(edge["to"], pair["to"]) in trace
        for pair in edge["columns"]
    )


def short(text: str, characters: int) -> str:
    """The text, cut with an ellipsis if it has more characters."""
    return text if len(text) <= characters else text[: characters - 1] + "…"
