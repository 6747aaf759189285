"""The graph of lineage as SVG. Its style comes from classes; nodes and columns are links, so it needs no script."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from app.features.console.pages.pipelines.lineage_graph import ColumnOfNode, LineageGraph, step_columns

_WIDTH: Final = 170
_STEP: Final = 250
_HEIGHT: Final = 38
_LINE: Final = 16
_GAP: Final = 14
_TOP: Final = 24
_EDGE: Final = 8
_NAME_CHARACTERS: Final = 22
_COLUMNS_SHOWN: Final = 12
"""The most columns of a node that are drawn; the others are in the table."""


class NodeNote(NamedTuple):
    """What a node says beside its name. kind: of its state, such as `good`."""

    kind: str
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageStyle:
    """What is drawn besides the graph. `notes`: by id. `trace`: columns that are marked; empty for no mark."""

    notes: Mapping[str, NodeNote]
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
        return self.top + _HEIGHT // 2


def lineage_chart(graph: LineageGraph, style: LineageStyle) -> Markup:
    """The picture, as wide and high as it must be. The page scrolls it."""
    boxes: dict[str, _Box] = {}
    heads = Markup("")
    columns = step_columns(graph)
    for step, column in enumerate(columns):
        left, top = _EDGE + step * _STEP, _TOP
        heads += Markup('<text class="head" x="{}" y="14">{}</text>').format(left, _head(graph, column))
        for id_ in column:
            height = _HEIGHT + _LINE * len(_shown(style, id_)) + (4 if _shown(style, id_) else 0)
            boxes[id_] = _Box(left, top, height)
            top += height + _GAP
    width = _EDGE * 2 + _STEP * (len(columns) - 1) + _WIDTH if boxes else 0
    height = max((box.top + box.height for box in boxes.values()), default=0) + _EDGE
    edges = Markup("").join(_edge(each, boxes, style) for each in graph.edges)
    nodes = Markup("").join(_node(graph, id_, box, style) for id_, box in boxes.items())
    label = f"Lineage of {len(graph.nodes)} nodes with {len(graph.edges)} edges; the table has the same"
    return Markup(
        '<svg class="lineage{}" width="{}" height="{}" viewBox="0 0 {} {}" role="group" aria-label="{}">{}{}{}</svg>'
    ).format(" tracing" if style.trace else "", width, height, width, height, label, heads, edges, nodes)


def _head(graph: LineageGraph, column: Sequence[str]) -> str:
    kinds = list(dict.fromkeys(graph.nodes[id_]["kind"] for id_ in column))
    return ", ".join(f"{kind}s" for kind in sorted(kinds))


def _shown(style: LineageStyle, id_: str) -> Sequence[str]:
    """The columns that are drawn: those of the trace first."""
    columns = style.columns.get(id_, ())
    first = [each for each in columns if ColumnOfNode(id_, each) in style.trace]
    return [*first, *(each for each in columns if each not in first)][:_COLUMNS_SHOWN]


def _node(graph: LineageGraph, id_: str, box: _Box, style: LineageStyle) -> Markup:
    node, note = graph.nodes[id_], style.notes.get(id_, NodeNote("idle", ""))
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


def _edge(edge: Mapping[str, Any], boxes: Mapping[str, _Box], style: LineageStyle) -> Markup:
    origin, target = boxes[edge["from"]], boxes[edge["to"]]
    begin, end = origin.left + _WIDTH, target.left
    bend = max((end - begin) // 2, 30)
    mark = _carries(edge, style.trace)
    lag = edge["lag"]
    label = Markup("")
    if lag:
        label = Markup('<text class="lag" x="{}" y="{}">{}</text>').format(
            end - 6, target.middle - 5, f"{lag:,} behind"
        )
    return Markup('<g class="edge{}"><path d="M{} {} C{} {} {} {} {} {}"/>{}</g>').format(
        " traced" if mark else "",
        begin,
        origin.middle,
        begin + bend,
        origin.middle,
        end - bend,
        target.middle,
        end,
        target.middle,
        label,
    )


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
