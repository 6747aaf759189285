"""Views of orders for tests: their SQL, what computes their rows in the place of Spark, and what is seen of them."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.support.service import Service
from tests.support.view_computation import Query, Row

LONG = "SELECT id, upper(note) AS note FROM orders WHERE length(note) > 3"
COUNT = "SELECT length(note) AS letters, count(*) AS orders FROM orders GROUP BY length(note)"


def long(orders: list[Row]) -> list[Row]:
    return [order | {"note": order["note"].upper()} for order in orders if len(order["note"]) > 3]


def counted(orders: list[Row]) -> list[Row]:
    lengths = [len(order["note"]) for order in orders]
    return [{"letters": each, "orders": lengths.count(each)} for each in sorted(set(lengths))]


def register_view(
    client: httpx2.Client, service: Service, name: str, sql: str, query: Query, **more: Any
) -> Row:
    """Registers a view, with what computes its rows."""
    service.derivation.queries[name] = query
    service.derivation.requests.clear()
    answer = client.post("/views", json={"name": name, "sql": sql, **more})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == answer.json()["links"]["self"]
    return answer.json()


def write_notes(client: httpx2.Client, service: Service, orders: str, notes: dict[int, str | None]) -> None:
    """Writes notes by id, None to delete, and has all that follows done."""
    rows = [{"id": key, "note": note} for key, note in notes.items() if note is not None]
    gone = [{"id": key} for key, note in notes.items() if note is None]
    for operation, part in (("upsert", rows), ("delete", gone)):
        if part:
            body = {"operation": operation, "source": {"kind": "rows", "rows": part}}
            assert client.post(f"{orders}/writes", json=body).status_code == 202
            service.work()


def shown(client: httpx2.Client, view: Row) -> Row:
    return client.get(view["links"]["self"]).json()


def rows(client: httpx2.Client, view: Row) -> list[Row]:
    found = client.get(view["links"]["rows"]).json()["rows"]
    return sorted(found, key=lambda row: [repr(value) for value in row.values()])


def feed(client: httpx2.Client, view: Row) -> list[tuple[str, Row]]:
    return [
        (change["op"], change["row"]) for change in client.get(view["links"]["changes"]).json()["changes"]
    ]


def operations(client: httpx2.Client, view: Row) -> list[str]:
    items = client.get(view["links"]["timeline"]).json()["items"]
    return [entry["operation"] for entry in reversed(items)]
