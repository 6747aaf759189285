"""Views whose SQL names a column whose name is given to another column of the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.support.derived_views import rows, shown
from tests.support.http import upsert
from tests.support.service import Service

Row = dict[str, Any]
PAIRS = {
    "name": "pairs",
    "record_key": ["id"],
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "b", "type": "string"},
            {"name": "c", "type": "string"},
        ]
    },
}
LOUD = "SELECT id, upper(b) AS b FROM pairs"
COUNT = "SELECT b, count(*) AS n FROM pairs GROUP BY b"
TEXT = "SELECT id, concat('b', CAST(b AS string)) AS b FROM pairs"
DROP = {"kind": "drop", "name": "b"}
RENAME = {"kind": "rename", "name": "c", "to": "b"}
ADD = {"kind": "add", "field": {"name": "b", "type": "string"}}
ADD_NUMBER = {"kind": "add", "field": {"name": "b", "type": "int64"}}


def loud(pairs: list[Row]) -> list[Row]:
    return [{"id": pair["id"], "b": pair["b"] and pair["b"].upper()} for pair in pairs]


def counted(pairs: list[Row]) -> list[Row]:
    values = [pair["b"] for pair in pairs]
    return [{"b": each, "n": values.count(each)} for each in sorted(set(values), key=str)]


def text(pairs: list[Row]) -> list[Row]:
    return [{"id": pair["id"], "b": None if pair["b"] is None else f"b{pair['b']}"} for pair in pairs]


@pytest.fixture
def pairs(client: httpx2.Client, service: Service) -> str:
    path = client.post("/datasets", json=PAIRS).headers["location"]
    client.post(f"{path}/writes", json=upsert({"id": 1, "b": "x", "c": "C1"}, {"id": 2, "b": "x", "c": "C2"}))
    service.work()
    return path


def change(client: httpx2.Client, pairs: str, *changes: Row) -> None:
    headers = {"If-Match": client.get(pairs).headers["etag"]}
    body = {"changes": list(changes)}
    answer = client.patch(pairs, json=body, headers=headers, params={"cascade": "pause"})
    assert answer.status_code == 200, answer.text


def resume(client: httpx2.Client, service: Service, view: Row) -> Row:
    """The view once it has been refreshed."""
    path = view["links"]["self"]
    headers = {"If-Match": client.get(path).headers["etag"]}
    assert client.patch(path, json={"state": "active"}, headers=headers).status_code == 200
    service.work()
    return shown(client, view)


@pytest.mark.parametrize(
    ("sql", "query", "changes", "expected"),
    [
        (LOUD, loud, [[DROP, RENAME]], [{"id": 1, "b": "C1"}, {"id": 2, "b": "C2"}]),
        (LOUD, loud, [[DROP], [ADD]], [{"id": 1, "b": None}, {"id": 2, "b": None}]),
        (TEXT, text, [[DROP, ADD_NUMBER]], [{"id": 1, "b": None}, {"id": 2, "b": None}]),
        (COUNT, counted, [[DROP, RENAME]], [{"b": "C1", "n": 1}, {"b": "C2", "n": 1}]),
    ],
    ids=["renamed", "added later", "other type", "recompute"],
)
def test_resumed_view_shows_the_column_that_has_the_name_now(
    client: httpx2.Client,
    service: Service,
    pairs: str,
    new_view: Callable[..., Row],
    sql: str,
    query: Callable[..., list[Row]],
    changes: list[list[Row]],
    expected: list[Row],
) -> None:
    view = new_view("shown", sql, query)
    service.work()
    before = rows(client, view)
    for each in changes:
        change(client, pairs, *each)
        service.work()
    assert rows(client, view) == before
    assert (shown(client, view)["state"], shown(client, view)["freshness"]) == ("paused", "failed")
    now = resume(client, service, view)
    assert (now["state"], now["freshness"], now["error"]) == ("active", "current", None)
    assert rows(client, view) == expected


def test_requested_refresh_of_a_paused_view_shows_the_column_that_has_the_name_now(
    client: httpx2.Client, service: Service, pairs: str, new_view: Callable[..., Row]
) -> None:
    view = new_view("shown", LOUD, loud)
    service.work()
    change(client, pairs, DROP, RENAME)
    client.post(view["links"]["refreshes"])
    service.work()
    assert (shown(client, view)["state"], shown(client, view)["error"]) == ("paused", None)
    assert rows(client, view) == [{"id": 1, "b": "C1"}, {"id": 2, "b": "C2"}]


def test_resumed_view_that_cannot_read_the_new_column_states_the_reason(
    client: httpx2.Client, service: Service, pairs: str, new_view: Callable[..., Row]
) -> None:
    view = new_view("shown", LOUD, loud)
    service.work()
    before = rows(client, view)
    change(client, pairs, DROP, ADD_NUMBER)
    now = resume(client, service, view)
    assert (now["freshness"], now["error"]["type"]) == ("failed", "/problems/invalid-view")
    assert "register another view" in now["error"]["detail"]
    assert rows(client, view) == before


@pytest.mark.parametrize("mode", ["row_by_row", "recompute"])
def test_refresh_that_runs_while_the_name_is_given_to_another_column_reads_that_one(
    client: httpx2.Client, service: Service, pairs: str, new_view: Callable[..., Row], mode: str
) -> None:
    sql, query = (LOUD, loud) if mode == "row_by_row" else (COUNT, counted)
    view = new_view("shown", sql, query)
    service.work()
    runs: list[int] = []

    def interrupted(pairs_read: list[Row]) -> list[Row]:
        runs.append(len(pairs_read))
        if len(runs) == 1:
            change(client, pairs, DROP, RENAME)
        return query(pairs_read)

    service.derivation.queries["shown"] = interrupted
    client.post(f"{pairs}/writes", json=upsert({"id": 3, "b": "y", "c": "C3"}))
    service.work()
    assert len(runs) > 1
    assert shown(client, view)["freshness"] == "current"
    assert [row["b"] for row in rows(client, view)] == ["C1", "C2", "C3"]
