"""Lineage: where rows come from and go to, as a picture and as a table of the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.dataset_frame import overviews
from app.features.console.pages.pipelines.lineage_chart import LineageStyle, lineage_chart
from app.features.console.pages.pipelines.lineage_graph import ColumnOfNode, LineageGraph
from app.features.console.pages.webhook_states import webhook_states
from app.features.console.rendering import StateWords, duration, problem_word, state_words
from app.features.console.visit import Visit, path_of, together

DRAWN_MAX: Final = 80
"""The most nodes of a picture."""
DRAWN_WITH_COLUMNS_MAX: Final = 25
_EDGES_MAX: Final = 100
"""The most edges that the table has."""
_LISTED_MAX: Final = 200
_PAIRS_MAX: Final = 20
_PAGES: Final = {"source": "sources", "webhook": "webhooks", "export": "exports"}


async def _read(visit: Visit) -> Context:
    dataset, column = visit.query.get("dataset"), visit.query.get("column")
    columns = bool(column) or visit.query.get("columns") == "true"
    response = await visit.api.get("/lineage", dataset=dataset, columns=True if columns else None)
    graph = LineageGraph.of(response)
    focus = graph.id_of(dataset) if dataset else None
    whole = len(graph.nodes)
    limit = DRAWN_WITH_COLUMNS_MAX if columns else DRAWN_MAX
    picture: LineageGraph | None = graph
    if whole > limit:
        picture = None if focus is None else graph.part(graph.nearest(focus, limit))
    trace = graph.trace(ColumnOfNode(focus, column)) if focus and column else set()
    style = LineageStyle(
        notes=await _notes(visit, graph, picture),
        columns=await _columns(visit, graph, picture) if columns and picture else {},
        trace=trace,
        focus=focus,
        node_link=lambda id_: node_link(visit, graph, id_, focus),
        column_link=lambda id_, name: _column_link(visit, graph, id_, name),
    )
    return {
        "graph": graph,
        "whole": whole,
        "picture": picture,
        "chart": None if picture is None else lineage_chart(picture, style),
        "limit": limit,
        "notes": style.notes,
        "columns": columns,
        "column": column,
        "trace": sorted((graph.nodes[each.node]["name"], each.column) for each in trace),
        "names": sorted(node["name"] for node in graph.nodes.values() if node["kind"] in ("dataset", "view"))[
            :_LISTED_MAX
        ],
        "alone": _alone(graph)[:_LISTED_MAX],
        "edges": graph.edges[:_EDGES_MAX],
        "pairs_max": _PAIRS_MAX,
        "page_of": lambda id_: page_of(graph, id_),
    }


async def _columns(visit: Visit, graph: LineageGraph, picture: LineageGraph) -> Mapping[str, Sequence[str]]:
    """The columns of each node that edges name, and of views also those that no column of an input goes into."""
    of_edges = graph.columns()
    views = [each for each in picture.nodes.values() if each["kind"] == "view"]
    parts = await together(*(visit.api.part(path_of("datasets", each["id"])) for each in views))
    return {
        **of_edges,
        **{
            view["id"]: [each["name"] for each in part.value["schema"]["fields"]]
            for view, part in zip(views, parts, strict=True)
            if part.problem is None
        },
    }


def _alone(graph: LineageGraph) -> list[str]:
    connected = {each["from"] for each in graph.edges} | {each["to"] for each in graph.edges}
    return [id_ for id_ in graph.nodes if id_ not in connected]


def page_of(graph: LineageGraph, id_: str) -> str:
    """The page of a node."""
    node = graph.nodes[id_]
    kind, name = node["kind"], quote(node["name"], safe="")
    if kind == "consumer":
        dataset = graph.nodes.get(id_.partition("/")[0])
        return "/console/lineage" if dataset is None else page_of(graph, dataset["id"]) + "/consumers"
    if kind in ("dataset", "view"):
        return f"/console/{kind}s/{name}"
    if kind == "share":
        return "/console/shares"
    return f"/console/{_PAGES[kind]}/{id_}"


def node_link(visit: Visit, graph: LineageGraph, id_: str, focus: str | None) -> str:
    """Where a node of the picture leads: a dataset to its own lineage, and from there to its page."""
    node = graph.nodes[id_]
    if id_ == focus or node["kind"] not in ("dataset", "view"):
        return page_of(graph, id_)
    columns = "true" if visit.query.get("columns") == "true" or visit.query.get("column") else None
    return visit.link("/console/lineage", dataset=node["name"], columns=columns)


def _column_link(visit: Visit, graph: LineageGraph, id_: str, name: str) -> str:
    """A column is traced from its dataset; one of a source or a reader from the dataset beside it."""
    if graph.nodes[id_]["kind"] in ("dataset", "view"):
        return visit.link("/console/lineage", dataset=graph.nodes[id_]["name"], column=name)
    for edge in graph.edges:
        for pair in edge["columns"] or ():
            if id_ == edge["from"] and pair["from"] == name:
                return _column_link(visit, graph, edge["to"], pair["to"])
            if id_ == edge["to"] and pair["to"] == name:
                return _column_link(visit, graph, edge["from"], pair["from"])
    return page_of(graph, id_)


async def _notes(visit: Visit, graph: LineageGraph, picture: LineageGraph | None) -> Mapping[str, StateWords]:
    """The state of each node that the page has, and of datasets how fresh they are."""
    ids = {id_ for each in graph.edges[:_EDGES_MAX] for id_ in (each["from"], each["to"])}
    ids |= set() if picture is None else set(picture.nodes)
    datasets = [id_ for id_ in sorted(ids) if graph.nodes[id_]["kind"] in ("dataset", "view")]
    numbers = await overviews(visit, datasets)
    webhooks = await webhook_states(visit, (graph.nodes[id_] for id_ in ids))
    lags = {each["to"]: each["lag"] for each in graph.edges}
    return {
        id_: webhooks.get(id_) or _note(visit.now, graph.nodes[id_], numbers.get(id_), lags.get(id_))
        for id_ in ids
    }


def _note(
    now: datetime, node: Mapping[str, Any], numbers: Mapping[str, Any] | None, lag: int | None
) -> StateWords:
    """The state of a node. `lag`: that of a consumer, which has no other state."""
    state = node["state"]
    if node["kind"] == "consumer" and lag is not None:
        return StateWords("idle", f"{lag:,} behind") if lag else StateWords("good", "at the head")
    if numbers is None:
        return state_words(state)
    fresh = _freshness(now, numbers)
    if numbers["version"] is not None:
        fresh = f"v{numbers['version']:,} · {fresh}"
    faults = ", ".join(problem_word(each) for each in numbers["problems"] or ())
    kind = "warning" if faults or state == "paused" else state_words(state).kind
    return StateWords(
        kind, " · ".join(each for each in (faults, state if state != "active" else "", fresh) if each)
    )


def _freshness(now: datetime, numbers: Mapping[str, Any]) -> str:
    if numbers["problems"] is None:
        return "seen in part"
    return "no commit yet" if numbers["committed_at"] is None else _ago(now, numbers["committed_at"])


def _ago(now: datetime, at: str) -> str:
    seconds = max((now - datetime.fromisoformat(at)).total_seconds(), 0.0)
    return f"{duration(float(round(seconds))) if seconds >= 1 else 'less than 1 s'} ago"


PAGES: Final = (ConsolePage(path="/lineage", template="lineage.html", read=_read),)
