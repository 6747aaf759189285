"""The page of lineage: the picture, the table of the same, and where a column leads."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from app.features.console.pages.pipelines import lineage
from app.features.console.pages.pipelines.lineage_chart import LineageStyle, lineage_chart
from app.features.console.pages.pipelines.lineage_graph import (
    ColumnOfNode,
    LineageGraph,
    Passage,
    step_columns,
    way,
)
from tests.support.derived_views import COUNT, LONG, counted, long
from tests.support.http import ORDERS
from tests.support.pages import PageElement, page, parsed

NewView = Callable[..., dict[str, Any]]


def graph_of(*edges: tuple[str, str], kinds: dict[str, str] | None = None) -> LineageGraph:
    """A graph of nodes that are named by their ids. `s…` are sources, `d…` datasets, `w…` webhooks."""
    words = {"s": "source", "d": "dataset", "v": "view", "w": "webhook", "c": "consumer"}
    ids = dict.fromkeys(each for edge in edges for each in edge)
    nodes = [{"id": each, "kind": words[each[0]], "name": each, "state": None} for each in ids]
    return LineageGraph.of(
        {"nodes": nodes, "edges": [{"from": a, "to": b, "lag": 0, "columns": None} for a, b in edges]}
    )


@pytest.fixture
def connected(client: httpx2.Client, orders: str, new_view: NewView) -> str:
    """The name of a view of `orders` that a consumer reads."""
    view = new_view("long", LONG, long)
    body = {"offset": "earliest"}
    answer = client.put(
        f"/datasets/{view['id']}/consumers/billing", json=body, headers={"If-None-Match": "*"}
    )
    assert answer.status_code == 201, answer.text
    return "long"


def nodes(root: PageElement) -> list[str]:
    """The titles of the nodes of the picture."""
    return [each.all("title")[0].text.split(":")[0] for each in root.all("g", class_="node")]


def test_the_picture_and_the_table_have_the_same(visitor: httpx2.Client, connected: str) -> None:
    root = page(visitor, "/console/lineage")
    assert sorted(nodes(root)) == ["consumer billing", "dataset orders", f"view {connected}"]
    rows = root.one("table").rows()[1:]
    assert [(row[0], row[3], row[6]) for row in rows] == [("orders", "long", "0"), ("long", "billing", "0")]
    requests = root.one("footer").text.split("curl ")[1:]
    assert len(requests) == 2
    assert requests[1].count("dataset=") == 2
    assert len(root.all("g", class_="edge")) == 2
    assert root.one("table").link("orders") == "/console/datasets/orders"
    assert root.one("table").link("billing") == "/console/views/long/consumers"
    heads = [each.text for each in root.all("text", class_="head")]
    assert heads == ["datasets", "views", "consumers"]


def test_lag_stands_at_the_edge(
    client: httpx2.Client, visitor: httpx2.Client, connected: str, orders: str, service: Any
) -> None:
    etag = client.get(f"/views/{connected}").headers["etag"]
    client.patch(f"/views/{connected}", json={"state": "paused"}, headers={"If-Match": etag})
    rows = [{"id": 1, "note": "longer"}, {"id": 2, "note": "longest"}]
    client.post(f"{orders}/writes", json={"operation": "upsert", "source": {"kind": "rows", "rows": rows}})
    service.work()
    root = page(visitor, "/console/lineage")
    assert [each.text for each in root.all("text", class_="lag")] == ["2 behind"]
    assert "paused" in root.one("table").rows()[1][5]


def test_a_click_on_a_dataset_shows_its_own_lineage(
    client: httpx2.Client, visitor: httpx2.Client, connected: str
) -> None:
    client.post("/datasets", json=ORDERS | {"name": "alone"})
    root = page(visitor, "/console/lineage")
    assert root.link("alone") == "/console/datasets/alone"
    links = [each.attributes["href"] for each in root.one("svg", class_="lineage").all("a")]
    assert "/console/lineage?dataset=orders" in links
    root = page(visitor, "/console/lineage?dataset=orders")
    assert "alone" not in root.one("svg", class_="lineage").text
    focus = root.one("g", class_="focus")
    assert focus.all("a")[0].attributes["href"] == "/console/datasets/orders"
    assert page(visitor, "/console/lineage?dataset=lost", status=404).one("div", role="alert")
    assert f"view {connected}" in nodes(root)


def test_a_click_on_a_column_traces_it(visitor: httpx2.Client, connected: str) -> None:
    root = page(visitor, "/console/lineage?columns=true")
    links = [each.attributes["href"] for each in root.one("svg", class_="lineage").all("a")]
    assert "/console/lineage?dataset=orders&column=note" in links
    assert root.all("text", class_="traced") == []
    root = page(visitor, "/console/lineage?dataset=orders&column=note")
    assert [each.text for each in root.all("text", class_="traced")] == ["note", "note"]
    assert len(root.all("g", class_="traced")) == 5
    assert "billing.note, long.note, orders.note" in root.text
    assert root.one("table").rows()[1][7] == "id, note"
    assert connected in root.text


def test_a_column_that_no_column_of_an_input_goes_into_is_in_the_picture(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, new_view: NewView
) -> None:
    new_view("letters", COUNT, counted)
    root = page(visitor, "/console/lineage?columns=true")
    view = root.one("g", class_="view").all("text", class_="column")
    assert [each.text for each in view] == ["letters", "orders"]
    # Before its first refresh it is neither healthy nor late.
    header = page(visitor, "/console/datasets/letters").one("ul", class_="facts").all("li")[-1]
    assert header.text == "first refresh runs"


def test_without_datasets_the_page_leads_to_a_first_write(stranger: httpx2.Client) -> None:
    root = page(stranger, "/console/lineage")
    assert "headwater write" in root.one("div", class_="empty").text
    assert root.all("svg", class_="lineage") == []


def test_names_are_texts(client: httpx2.Client, visitor: httpx2.Client, orders: str) -> None:
    hostile = '<svg onload="alert(1)"> & "quotes" ' + "x" * 600
    body = {"dataset": "orders", "url": "http://127.0.0.1:1/x", "description": hostile}
    webhook = client.post("/webhooks", json=body)
    assert webhook.status_code == 201, webhook.text
    root = page(visitor, "/console/lineage")
    assert len(root.all("svg")) == 1
    assert any(each.text.startswith(f"webhook {hostile}") for each in root.all("title"))
    drawn = root.one("g", class_="webhook").all("text")[0].text
    assert len(drawn) == 22
    assert drawn.endswith("…")
    client.delete(webhook.headers["location"])


def test_a_key_sees_what_it_may(
    connected: str, orders: str, restricted: Callable[..., httpx2.Client]
) -> None:
    root = page(restricted({"datasets": "orders"}), "/console/lineage")
    assert nodes(root) == ["dataset orders"]
    assert connected not in root.one("main").text
    part = restricted({"datasets": "orders", "where": "id = 1"})
    root = page(part, "/console/lineage")
    assert nodes(root) == ["dataset orders"]
    assert root.one("g", class_="dataset").all("text", class_="note")[0].text == "v0 · seen in part"


@pytest.fixture
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> int:
    """Pictures have three nodes at most."""
    monkeypatch.setattr(lineage, "DRAWN_MAX", 3)
    return 3


def test_of_many_nodes_those_around_a_dataset_are_drawn(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, small_pictures: int
) -> None:
    for name in ("a", "b", "c"):
        answer = client.put(f"{orders}/consumers/{name}", json={"offset": 0}, headers={"If-None-Match": "*"})
        assert answer.status_code == 201
    root = page(visitor, "/console/lineage")
    assert root.all("svg", class_="lineage") == []
    assert "4 nodes are too many for one picture" in root.text
    assert root.link("orders") == "/console/lineage?dataset=orders"
    assert len(root.one("table").rows()) == 4
    root = page(visitor, root.link("orders"))
    assert len(nodes(root)) == small_pictures
    assert "The 3 nearest of 4 nodes" in root.text


def test_hundreds_of_nodes_make_a_bounded_page(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    for number in range(300):
        client.put(
            f"{orders}/consumers/reader-{number:03}-{'x' * 60}",
            json={"offset": 0},
            headers={"If-None-Match": "*"},
        )
    root = page(visitor, "/console/lineage?dataset=orders")
    assert len(nodes(root)) == lineage.DRAWN_MAX
    assert "of 300 edges" in root.text


def test_each_step_stands_to_the_right_of_what_it_is_made_of() -> None:
    graph = graph_of(("s1", "d1"), ("d1", "v1"), ("d2", "v1"), ("v1", "v2"), ("d1", "w1"), ("v2", "c1"))
    columns = [[place for place in column if isinstance(place, str)] for column in step_columns(graph)]
    assert [sorted(column) for column in columns] == [
        ["s1"],
        ["d1", "d2"],
        ["v1"],
        ["v2"],
        ["c1", "w1"],
    ]


def test_an_edge_passes_the_columns_between_beside_their_nodes() -> None:
    graph = graph_of(("d1", "v1"), ("v1", "v2"), ("d1", "v2"), ("d1", "w1"), ("v2", "w2"))
    columns = step_columns(graph)
    passages = [[place for place in column if isinstance(place, Passage)] for column in columns]
    assert [set(each) for each in passages] == [
        set(),
        {Passage("d1", "v2", 1), Passage("d1", "w1", 1)},
        {Passage("d1", "w1", 2)},
        set(),
    ]
    steps = {place: step for step, column in enumerate(columns) for place in column if isinstance(place, str)}
    assert way({"from": "d1", "to": "v2"}, steps) == ["d1", Passage("d1", "v2", 1), "v2"]
    assert way({"from": "v2", "to": "d1"}, steps) == ["v2", "d1"]


def test_edges_to_several_readers_have_lines_of_their_own() -> None:
    graph = graph_of(("d1", "v1"), ("d1", "w1"), ("d1", "w2"), ("d1", "w3"))
    style = LineageStyle(
        notes={},
        columns={},
        trace=(),
        focus=None,
        node_link=lambda id_: id_,
        column_link=lambda _, name: name,
    )
    chart = parsed(str(lineage_chart(graph, style)))
    lines = [each.all("path")[0].attributes["d"] for each in chart.all("g", class_="edge")]
    # Where a line passes the column of the view: the height of its straight part.
    heights = [re.search(r" (\d+) H\d+", line) for line in lines]
    passed = [match[1] for match in heights if match]
    assert len(passed) == len(set(passed)) == 3


def test_a_circle_of_sources_has_places() -> None:
    graph = graph_of(("d1", "s1"), ("s1", "d2"), ("d2", "s2"), ("s2", "d1"), ("d1", "d1"))
    columns = step_columns(graph)
    assert sorted(each for column in columns for each in column) == ["d1", "d2", "s1", "s2"]
    assert all(len(column) == 1 for column in columns)
    assert step_columns(graph_of()) == []


def test_the_nearest_nodes_come_first() -> None:
    graph = graph_of(("d1", "v1"), ("v1", "v2"), ("v2", "v3"), ("s1", "d1"))
    assert graph.nearest("d1", 3) == {"d1", "v1", "s1"}
    assert graph.nearest("v3", 10) == set(graph.nodes)


def test_a_trace_goes_both_ways_and_not_sideways() -> None:
    def edge(origin: str, target: str, *pairs: tuple[str, str]) -> dict[str, Any]:
        columns = [{"from": a, "to": b} for a, b in pairs]
        return {"from": origin, "to": target, "lag": None, "columns": columns or None}

    nodes_ = [
        {"id": each, "kind": "consumer" if each == "c" else "view", "name": each, "state": None}
        for each in "abcd"
    ]
    edges = [edge("a", "b", ("x", "y"), ("z", "y")), edge("b", "d", ("y", "q")), edge("d", "c")]
    graph = LineageGraph.of({"nodes": nodes_, "edges": edges})
    assert graph.trace(ColumnOfNode("a", "x")) == {("a", "x"), ("b", "y"), ("d", "q"), ("c", "q")}
    assert graph.trace(ColumnOfNode("d", "q")) == {("d", "q"), ("b", "y"), ("a", "x"), ("a", "z"), ("c", "q")}
    assert graph.columns() == {"a": ["x", "z"], "b": ["y"], "d": ["q"]}
