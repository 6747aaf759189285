"""Why a dataset is late: the way of its rows, from the first link that stands still to the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

_AT_REST: Final = ("paused", "failed")
_PAGES: Final = {"source": "sources", "view": "views", "webhook": "webhooks", "export": "exports"}


class ChainLink(NamedTuple):
    """A link of a chain. `fault`: why it stands still; empty for one that only waits for the link before it."""

    kind: str
    name: str
    href: str
    fault: str
    lag: int | None
    """The changes that have not come from the link before it; None where that is not known."""


def chain_to(
    dataset_id: str, graph: Mapping[str, Any], problems: Mapping[str, Sequence[str]]
) -> list[ChainLink]:
    """The links from the first one that stands still to the dataset. `graph`: as GET /lineage has it.

    `problems`: those of datasets, by id. Of several that stand still, the one farthest upstream is the first link.
    """
    nodes = {each["id"]: each for each in graph["nodes"]}
    if dataset_id not in nodes:
        return []
    onward: dict[str, Mapping[str, Any]] = {}
    distances = {dataset_id: 0}
    waiting = [dataset_id]
    while waiting:
        target = waiting.pop(0)
        for edge in graph["edges"]:
            if edge["to"] == target and edge["from"] in nodes and edge["from"] not in distances:
                distances[edge["from"]] = distances[target] + 1
                onward[edge["from"]] = edge
                waiting.append(edge["from"])
    faults = {each: _fault(nodes[each], problems, graph) for each in distances}
    still = [each for each in distances if faults[each]]
    start = max(still, key=lambda each: (distances[each], each), default=dataset_id)
    links = [_link(nodes[start], faults[start], None)]
    while start != dataset_id:
        edge = onward[start]
        start = edge["to"]
        links.append(_link(nodes[start], faults[start], edge["lag"]))
    return links


def href_of(node: Mapping[str, Any]) -> str:
    """The page of a node of lineage; empty for one without a page of its own."""
    if node["kind"] in ("dataset", "view"):
        return f"/console/datasets/{node['name']}"
    if node["kind"] == "consumer":
        return f"/console/datasets/{node['id'].split('/', 1)[0]}/consumers"
    if node["kind"] == "share":
        return "/console/shares"
    folder = _PAGES.get(node["kind"])
    return f"/console/{folder}/{node['id']}" if folder else ""


def _link(node: Mapping[str, Any], fault: str, lag: int | None) -> ChainLink:
    return ChainLink(node["kind"], node["name"], href_of(node), fault, lag)


def _fault(node: Mapping[str, Any], problems: Mapping[str, Sequence[str]], graph: Mapping[str, Any]) -> str:
    """Why the node stands still; empty if it does not."""
    own = problems.get(node["id"]) or ()
    if node["state"] in _AT_REST:
        return f"is {node['state']}"
    if node["kind"] == "source":
        targets = [edge["to"] for edge in graph["edges"] if edge["from"] == node["id"]]
        # The problem `source` is that of one of the sources; with one alone it is this one.
        failing = [each for each in targets if "source" in (problems.get(each) or ())]
        return "its last round has failed" if failing else ""
    if "view" in own:
        return "its last refresh has failed"
    inputs = [edge for edge in graph["edges"] if edge["to"] == node["id"]]
    if "late" in own and node["kind"] == "view" and any(edge["lag"] for edge in inputs):
        return "its refresh lacks changes of its inputs"
    return "no write has come as expected" if "late" in own and not inputs else ""
