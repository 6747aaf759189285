"""Lineage over HTTP: what is connected with what, for what the key may see."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from app.access.tenants.values import Grant, KeyScope
from app.features.lineage import service as lineage_service
from tests.support.http import ORDERS, problem, upsert
from tests.support.receiver import Receiver
from tests.support.service import Service
from tests.support.webhooks import tenant_of

Edges = dict[tuple[str, str], dict[str, Any]]


def drawn(client: httpx2.Client, **options: Any) -> tuple[dict[str, dict[str, Any]], Edges]:
    """The nodes by name, and the edges by the names of their nodes."""
    answer = client.get("/lineage", params=options)
    assert answer.status_code == 200, answer.text
    graph = answer.json()
    names = {node["id"]: node["name"] for node in graph["nodes"]}
    assert len(names) == len(graph["nodes"])
    edges = {(names[each["from"]], names[each["to"]]): each for each in graph["edges"]}
    assert len(edges) == len(graph["edges"])
    return {node["name"]: node for node in graph["nodes"]}, edges


@pytest.fixture
def tenant(client: httpx2.Client, service: Service, orders: str, receiver: Receiver) -> str:
    """The id of a tenant with one of each kind of node. `copies` is made of `orders` by a source."""

    def post(path: str, body: dict[str, Any]) -> None:
        answer = client.post(path, json=body)
        assert answer.is_success, answer.text
        service.work()

    post(f"{orders}/writes", upsert({"id": 1, "note": "a"}, {"id": 2, "note": "b"}))
    service.derivation.queries["loud"] = lambda rows: rows
    post("/views", {"name": "loud", "sql": "SELECT id, upper(note) AS note FROM orders WHERE id > 0"})
    post("/datasets", ORDERS | {"name": "copies"})
    post(
        "/sources",
        {"name": "copy", "dataset": "copies", "kind": "dataset", "config": {"dataset": "orders"}},
    )
    config = {"path": (service.settings.data_dir / "incoming").as_uri(), "format": "ndjson"}
    transform = {
        "sql": "SELECT number AS id, lower(text) AS note FROM source",
        "fields": [{"name": "number", "type": "int64"}, {"name": "text", "type": "string"}],
    }
    post(
        "/sources",
        {"name": "files", "dataset": "orders", "kind": "files", "config": config, "transform": transform},
    )
    post(
        "/webhooks",
        {"dataset": "loud", "url": receiver.url, "description": "ring", "columns": ["id"]},
    )
    every = {"every_seconds": 3600}
    post(f"{orders}/exports", {"name": "daily", "query": "changes", "format": "csv", "schedule": every})
    client.put(f"{orders}/consumers/app", json={"offset": 1}, headers={"If-None-Match": "*"})
    post("/shares", {"name": "sales", "datasets": [{"name": "orders"}]})
    post("/datasets", ORDERS | {"name": "alone"})
    return tenant_of(client, service)


def test_graph_has_all_that_rows_come_from_and_go_to(client: httpx2.Client, tenant: str) -> None:
    nodes, edges = drawn(client)
    assert {name: each["kind"] for name, each in nodes.items()} == {
        "orders": "dataset",
        "copies": "dataset",
        "alone": "dataset",
        "loud": "view",
        "copy": "source",
        "files": "source",
        "ring": "webhook",
        "daily": "export",
        "app": "consumer",
        "sales": "share",
    }
    assert edges.keys() == {
        ("orders", "loud"),
        ("orders", "copy"),
        ("copy", "copies"),
        ("files", "orders"),
        ("loud", "ring"),
        ("orders", "daily"),
        ("orders", "app"),
        ("orders", "sales"),
    }
    assert all(each["columns"] is None for each in edges.values())
    assert nodes["loud"]["state"] == "active"
    assert nodes["orders"]["state"] is None
    assert edges["orders", "app"]["lag"] == 1
    assert edges["orders", "loud"]["lag"] == 0
    assert edges["orders", "sales"]["lag"] is None


def test_columns_of_edges(client: httpx2.Client, tenant: str) -> None:
    _, edges = drawn(client, columns=True)
    columns = {
        names: None
        if each["columns"] is None
        else {(column["from"], column["to"]) for column in each["columns"]}
        for names, each in edges.items()
    }
    same = {("id", "id"), ("note", "note")}
    assert columns == {
        ("orders", "loud"): same,
        ("orders", "copy"): same,
        ("copy", "copies"): same,
        ("files", "orders"): {("number", "id"), ("text", "note")},
        ("loud", "ring"): {("id", "id")},
        ("orders", "daily"): same,
        ("orders", "app"): None,
        ("orders", "sales"): None,
    }


def test_lineage_of_one_dataset_has_what_is_before_it_and_behind_it(
    client: httpx2.Client, tenant: str
) -> None:
    nodes, edges = drawn(client, dataset="loud")
    assert nodes.keys() == {"files", "orders", "loud", "ring"}
    assert edges.keys() == {("files", "orders"), ("orders", "loud"), ("loud", "ring")}
    nodes, edges = drawn(client, dataset="alone")
    assert (nodes.keys(), edges) == ({"alone"}, {})
    problem(client.get("/lineage", params={"dataset": "nothing"}), 404, "not-found")


def test_key_gets_the_part_of_the_graph_that_it_may_see(
    client: httpx2.Client, service: Service, tenant: str
) -> None:
    def graph_of(*grants: Grant, **options: Any) -> tuple[dict[str, dict[str, Any]], Edges]:
        key = service.tenants.make_key(tenant, (KeyScope.READ,), grants=grants).api_key
        with service.client(key) as narrow:
            return drawn(narrow, **options)

    nodes, edges = graph_of(Grant(datasets="loud"))
    assert (nodes.keys(), edges.keys()) == ({"loud", "ring"}, {("loud", "ring")})
    # Of a dataset that is seen in part: who follows it, and nothing that has more of it.
    nodes, edges = graph_of(Grant(datasets="orders", where="id > 1", mask=("note",)))
    assert (nodes.keys(), edges.keys()) == ({"orders", "app"}, {("orders", "app")})
    # The changes that it has not read may be hidden.
    assert edges[("orders", "app")]["lag"] is None
    assert graph_of(Grant(datasets="orders"))[1][("orders", "app")]["lag"] == 1
    nodes, edges = graph_of(Grant(datasets="elsewhere"))
    assert (nodes, edges) == ({}, {})


def test_graph_of_too_many_items_is_refused(
    client: httpx2.Client, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage_service, "ITEMS_MAX", 3)
    refused = problem(client.get("/lineage"), 400, "invalid-request")
    assert "more than 3 datasets" in refused["detail"]
    # Of one dataset only what is connected with it is read.
    nodes, _ = drawn(client, dataset="loud")
    assert nodes.keys() == {"files", "orders", "loud", "ring"}
