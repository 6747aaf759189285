"""Views over HTTP. What their SQL makes of rows is computed by functions of the tests, in the place of Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import msgspec
import pytest

from app.lake.errors import DerivationFailed
from app.lake.views.derive_request import FeedInput, TableInput
from tests.support.derivation import Query, Row
from tests.support.http import EVENTS, ORDERS, problem, upsert
from tests.support.service import Service
from tests.support.waiting import until

LONG = "SELECT id, upper(note) AS note FROM orders WHERE length(note) > 3"
COUNT = "SELECT length(note) AS letters, count(*) AS orders FROM orders GROUP BY length(note)"


def long(orders: list[Row]) -> list[Row]:
    return [order | {"note": order["note"].upper()} for order in orders if len(order["note"]) > 3]


def counted(orders: list[Row]) -> list[Row]:
    lengths = [len(order["note"]) for order in orders]
    return [{"letters": each, "orders": lengths.count(each)} for each in sorted(set(lengths))]


@pytest.fixture
def register(client: httpx.Client, orders: str, service: Service) -> Callable[..., Row]:
    """Registers a view of the orders, with what computes its rows."""

    def make(name: str, sql: str, query: Query, **more: Any) -> Row:
        service.derivation.queries[name] = query
        service.derivation.requests.clear()
        answer = client.post("/views", json={"name": name, "sql": sql, **more})
        assert answer.status_code == 201, answer.text
        assert answer.headers["location"] == answer.json()["links"]["self"]
        return answer.json()

    return make


@pytest.fixture
def write(client: httpx.Client, orders: str, service: Service) -> Callable[..., None]:
    """Writes notes by id, and has all that follows from it done; None deletes."""

    def send(notes: dict[int, str | None]) -> None:
        rows = [{"id": key, "note": note} for key, note in notes.items() if note is not None]
        gone = [{"id": key} for key, note in notes.items() if note is None]
        for operation, part in (("upsert", rows), ("delete", gone)):
            if part:
                body = {"operation": operation, "source": {"kind": "rows", "rows": part}}
                assert client.post(f"{orders}/writes", json=body).status_code == 202
                service.work()

    return send


def shown(client: httpx.Client, view: Row) -> Row:
    return client.get(view["links"]["self"]).json()


def rows(client: httpx.Client, view: Row) -> list[Row]:
    found = client.get(view["links"]["rows"]).json()["rows"]
    return sorted(found, key=lambda row: [repr(value) for value in row.values()])


def feed(client: httpx.Client, view: Row) -> list[tuple[str, Row]]:
    return [
        (change["op"], change["row"]) for change in client.get(view["links"]["changes"]).json()["changes"]
    ]


def operations(client: httpx.Client, view: Row) -> list[str]:
    items = client.get(view["links"]["timeline"]).json()["items"]
    return [entry["operation"] for entry in reversed(items)]


def test_a_view_shows_what_is_there_and_follows_what_comes(
    client: httpx.Client,
    service: Service,
    register: Callable[..., Row],
    write: Callable[..., None],
    orders: str,
) -> None:
    write({1: "tea", 2: "coffee"})
    view = register("long", LONG, long)
    assert view["mode"] == "row_by_row"
    assert view["state"] == "behind"
    assert (view["version"], view["refreshed_at"], view["error"]) == (0, None, None)
    assert view["record_key"] == ["id"]
    assert view["inputs"] == [
        {"dataset": "orders", "id": orders.rsplit("/", 1)[1], "offset": 0, "version": 0, "lag": 2}
    ]
    service.work()
    assert rows(client, view) == [{"id": 2, "note": "COFFEE"}]
    now = shown(client, view)
    assert (now["state"], now["version"], now["inputs"][0]["offset"], now["inputs"][0]["version"]) == (
        "current",
        1,
        2,
        1,
    )
    assert now["refreshed_at"] is not None
    write({1: "chai latte", 2: "tea", 3: "espresso", 4: "mate"})
    write({3: None, 4: "mate!"})
    assert feed(client, view) == [
        ("+A", {"id": 2, "note": "COFFEE"}),
        *sorted(
            [
                ("+A", {"id": 1, "note": "CHAI LATTE"}),
                ("-R", {"id": 2, "note": "COFFEE"}),
                ("+A", {"id": 3, "note": "ESPRESSO"}),
                ("+A", {"id": 4, "note": "MATE"}),
            ],
            key=lambda change: _place(client, view, change[1]["id"]),
        ),
        ("-C", {"id": 4, "note": "MATE"}),
        ("+C", {"id": 4, "note": "MATE!"}),
        ("-R", {"id": 3, "note": "ESPRESSO"}),
    ]
    # Each took in the changes that were new, and nothing else.
    assert operations(client, view) == ["snapshot", "changelog", "changelog", "changelog"]
    inputs = [next(iter(request.inputs.values())) for request in service.derivation.requests]
    assert isinstance(inputs[0], TableInput)
    assert [(each.since, each.until) for each in inputs if isinstance(each, FeedInput)] == [
        (2, 8),
        (8, 10),
        (10, 11),
    ]


def _place(client: httpx.Client, view: Row, key: int) -> int:
    """Where the first change of a key after the first version stands: buckets decide on the order within a commit."""
    changes = client.get(view["links"]["changes"], params={"since": 1}).json()["changes"]
    return next(number for number, change in enumerate(changes) if change["row"]["id"] == key)


def test_a_view_that_counts_is_computed_anew_and_tells_the_difference(
    client: httpx.Client, service: Service, register: Callable[..., Row], write: Callable[..., None]
) -> None:
    view = register("counted", COUNT, counted)
    assert (view["mode"], view["record_key"]) == ("recompute", [])
    service.work()
    write({1: "tea", 2: "pot", 3: "coffee"})
    write({2: "pots"})
    write({1: "tee"})
    assert rows(client, view) == [
        {"letters": 3, "orders": 1},
        {"letters": 4, "orders": 1},
        {"letters": 6, "orders": 1},
    ]
    told = feed(client, view)
    assert sorted(told[:2], key=repr) == [
        ("+A", {"letters": 3, "orders": 2}),
        ("+A", {"letters": 6, "orders": 1}),
    ]
    assert sorted(told[2:], key=repr) == [
        ("+A", {"letters": 3, "orders": 1}),
        ("+A", {"letters": 4, "orders": 1}),
        ("-R", {"letters": 3, "orders": 2}),
    ]
    # The last write changed no count: the view has taken it in all the same.
    now = shown(client, view)
    assert (now["state"], now["version"], now["inputs"][0]["lag"]) == ("current", 2, 0)


def test_with_a_key_a_view_tells_corrections(
    client: httpx.Client, register: Callable[..., Row], write: Callable[..., None]
) -> None:
    view = register("counted", COUNT, counted, record_key=["letters"])
    write({1: "tea", 2: "pot"})
    write({2: "pots"})
    told = feed(client, view)
    assert told[0] == ("+A", {"letters": 3, "orders": 2})
    assert sorted(told[1:], key=repr) == [
        ("+A", {"letters": 4, "orders": 1}),
        ("+C", {"letters": 3, "orders": 1}),
        ("-C", {"letters": 3, "orders": 2}),
    ]


def test_a_view_may_have_no_rows_in_an_empty_world_or_some(
    client: httpx.Client, service: Service, register: Callable[..., Row]
) -> None:
    view = register(
        "total", "SELECT count(*) AS orders FROM orders", lambda orders: [{"orders": len(orders)}]
    )
    none = register("none", LONG, long)
    service.work()
    assert rows(client, view) == [{"orders": 0}]
    assert rows(client, none) == []
    assert [shown(client, each)["state"] for each in (view, none)] == ["current", "current"]


def test_a_view_reads_views(
    client: httpx.Client, service: Service, register: Callable[..., Row], write: Callable[..., None]
) -> None:
    lower = register("long", LONG, long)
    upper = register("shouted", "SELECT count(*) AS n FROM long", lambda rows: [{"n": len(rows)}])
    write({1: "coffee", 2: "espresso"})
    write({2: None})
    assert rows(client, lower) == [{"id": 1, "note": "COFFEE"}]
    assert rows(client, upper) == [{"n": 1}]
    assert shown(client, upper)["inputs"][0]["dataset"] == "long"
    members = problem(client.delete(lower["links"]["self"]), 409, "dataset-in-use")
    assert members["views"] == ["shouted"]


def test_of_a_transaction_a_view_sees_all(client: httpx.Client, service: Service, orders: str) -> None:
    other = client.post("/datasets", json=ORDERS | {"name": "payments"}).headers["location"]
    service.derivation.queries["both"] = lambda left, right: [{"orders": len(left), "payments": len(right)}]
    sql = "SELECT (SELECT count(*) FROM orders) AS orders, (SELECT count(*) FROM payments) AS payments"
    view = client.post("/views", json={"name": "both", "sql": sql}).json()
    for number in range(3):
        row = {"id": number, "note": "x"}
        writes = [{"dataset": path.rsplit("/", 1)[1], **upsert(row)} for path in (orders, other)]
        assert client.post("/transactions", json={"writes": writes}).status_code == 202
        service.work()
    told = [row for _, row in feed(client, view)]
    assert all(row["orders"] == row["payments"] for row in told)
    assert rows(client, view) == [{"orders": 3, "payments": 3}]
    # Both inputs asked for a refresh, and got one.
    assert len([each for each in operations(client, view) if each == "snapshot"]) <= 4


@pytest.mark.parametrize(("sql", "query"), [(LONG, long), (COUNT, counted)])
def test_a_failure_is_told_and_healed_by_its_inputs(
    client: httpx.Client,
    service: Service,
    register: Callable[..., Row],
    write: Callable[..., None],
    orders: str,
    sql: str,
    query: Query,
) -> None:
    def picky(orders: list[Row]) -> list[Row]:
        if any(order["note"] == "zero" for order in orders):
            raise DerivationFailed("a division by zero")
        return query(orders)

    view = register("picky", sql, picky)
    write({1: "coffee"})
    before = rows(client, view)
    write({2: "zero"})
    failed = shown(client, view)
    assert (failed["state"], failed["error"]["type"]) == ("failed", "/problems/derivation-failed")
    assert failed["error"]["detail"] == "a division by zero"
    assert failed["inputs"][0]["lag"] == 1
    assert rows(client, view) == before
    assert client.get(orders).json()["version"] == 2
    job = client.post(view["links"]["refresh"]).json()
    service.work()
    job = client.get(job["links"]["self"]).json()
    assert (job["kind"], job["state"]) == ("refresh", "failed")
    # Nobody asks again: that its input has changed is found. What was wrong is not in its rows now, only in its feed.
    write({2: "water"})

    def healed() -> bool:
        service.work()
        now = shown(client, view)
        return (now["state"], now["error"]) == ("current", None)

    until(healed, "the view to notice that its input has changed")
    assert rows(client, view) == sorted(
        query([{"id": 1, "note": "coffee"}, {"id": 2, "note": "water"}]), key=lambda row: row[next(iter(row))]
    )


def test_a_column_that_is_gone_fails_a_view_and_one_that_comes_does_not(
    client: httpx.Client,
    service: Service,
    register: Callable[..., Row],
    write: Callable[..., None],
    orders: str,
) -> None:
    def change(**change: Any) -> None:
        etag = client.get(orders).headers["etag"]
        answer = client.patch(orders, json={"changes": [change]}, headers={"If-Match": etag})
        assert answer.status_code == 200, answer.text

    view = register(
        "all", "SELECT * FROM orders", lambda orders: [{"id": o["id"], "note": o["note"]} for o in orders]
    )
    change(kind="add", field={"name": "more", "type": "string"})
    write({1: "tea"})
    assert rows(client, view) == [{"id": 1, "note": "tea"}]
    change(kind="rename", name="note", to="text")
    client.post(f"{orders}/writes", json=upsert({"id": 2, "text": "pot"}))
    service.work()
    error = shown(client, view)["error"]
    assert error["type"] == "/problems/invalid-view"
    assert '"note"' in error["detail"]
    change(kind="rename", name="text", to="note")
    client.post(view["links"]["refresh"])
    service.work()
    assert rows(client, view) == [{"id": 1, "note": "tea"}, {"id": 2, "note": "pot"}]


def test_where_changes_are_cut_off_a_view_is_computed_anew(
    client: httpx.Client,
    service: Service,
    register: Callable[..., Row],
    write: Callable[..., None],
    orders: str,
) -> None:
    view = register("long", LONG, long)
    write({1: "coffee"})
    dataset = service.api.services.datasets.catalog.get(_tenant(service, orders), orders.rsplit("/", 1)[1])
    client.post(f"{orders}/writes", json=upsert({"id": 2, "note": "water"}))
    service.run_writes.run(dataset.tenant_id, dataset.id)
    with service.database.tenant(dataset.tenant_id) as connection:
        connection.exec_driver_sql("UPDATE heads SET earliest_offset = 2 WHERE next_offset = 2")
    service.work()
    assert operations(client, view)[-1] == "snapshot"
    assert feed(client, view)[-1] == ("+A", {"id": 2, "note": "WATER"})


def _tenant(service: Service, orders: str) -> str:
    with service.database.relay() as connection:
        query = "SELECT tenant_id FROM heads WHERE dataset_id = %(id)s"
        return str(connection.exec_driver_sql(query, {"id": orders.rsplit("/", 1)[1]}).scalar_one())


def test_refreshes_that_meet_take_each_change_in_once(
    client: httpx.Client,
    service: Service,
    register: Callable[..., Row],
    write: Callable[..., None],
    orders: str,
) -> None:
    two = msgspec.structs.replace(service.run_writes.rules, dataset_writers_max=2)
    other = replace(service.run_writes, rules=two, owner="other")
    met: list[bool] = []

    def meeting(orders: list[Row]) -> list[Row]:
        if not met:
            met.append(True)
            client.post(view["links"]["refresh"])
            met.append(other.run(tenant_id, view["id"]))
        return long(orders)

    view = register("long", LONG, long)
    write({1: "coffee"})
    tenant_id = _tenant(service, orders)
    service.derivation.queries["long"] = meeting
    write({2: "water"})
    assert met == [True, True]
    assert feed(client, view) == [
        ("+A", {"id": 1, "note": "COFFEE"}),
        ("+A", {"id": 2, "note": "WATER"}),
    ]
    assert shown(client, view)["state"] == "current"


def test_a_refresh_can_be_asked_for_and_is_queued_once(
    client: httpx.Client, service: Service, register: Callable[..., Row]
) -> None:
    view = register("long", LONG, long)
    first, second = (client.post(view["links"]["refresh"]) for _ in range(2))
    assert first.status_code == second.status_code == 202
    assert first.json()["id"] == second.json()["id"]
    service.work()
    with service.working():
        answer = client.post(view["links"]["refresh"], headers={"Prefer": "wait=20"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["state"], answer.json()["committed_version"]) == ("succeeded", 0)
    assert len(service.derivation.requests) == 1


def test_nobody_else_writes_to_a_view(
    client: httpx.Client, service: Service, register: Callable[..., Row], orders: str
) -> None:
    view = register("long", LONG, long)
    dataset = view["links"]["dataset"]
    row = {"id": 1, "note": "mine"}
    assert (
        "view"
        in problem(client.post(f"{dataset}/writes", json=upsert(row)), 409, "derived-dataset")["detail"]
    )
    raw = client.post(
        f"{dataset}/writes", content=b'{"id": 1}', headers={"Content-Type": "application/x-ndjson"}
    )
    problem(raw, 409, "derived-dataset")
    writes = [{"dataset": path.rsplit("/", 1)[1], **upsert(row)} for path in (orders, dataset)]
    problem(client.post("/transactions", json={"writes": writes}), 409, "derived-dataset")
    problem(client.post(f"{dataset}/explain-write", json=upsert(row)), 409, "derived-dataset")
    etag = client.get(dataset).headers["etag"]
    changes = {"changes": [{"kind": "add", "field": {"name": "more", "type": "string"}}]}
    problem(client.patch(dataset, json=changes, headers={"If-Match": etag}), 409, "derived-dataset")
    kept = {"changelog": {"retention": {"changes": 10}}}
    assert client.patch(dataset, json=kept, headers={"If-Match": etag}).status_code == 200
    assert client.post(f"{dataset}/compactions").status_code == 202
    service.work()
    assert rows(client, view) == []


def test_a_view_ends_and_lets_go_of_what_it_read(
    client: httpx.Client, service: Service, register: Callable[..., Row], orders: str
) -> None:
    view = register("long", LONG, long)
    members = problem(client.delete(orders), 409, "dataset-in-use")
    assert members["views"] == ["long"]
    assert client.delete("/views/long").status_code == 204
    problem(client.get(view["links"]["self"]), 404, "not-found")
    problem(client.get(view["links"]["dataset"]), 404, "not-found")
    problem(client.delete("/views/orders"), 404, "not-found")
    assert client.get("/views").json() == {"items": [], "next_page_token": None}
    again = register("long", LONG, long)
    assert [each["id"] for each in client.get("/views").json()["items"]] == [again["id"]]
    # To end the dataset is to end the view.
    assert client.delete(again["links"]["dataset"]).status_code == 204
    assert client.delete(orders).status_code == 204


@pytest.mark.parametrize(
    ("body", "status", "code", "told"),
    [
        ({"sql": "SELECT id FROM nothing"}, 422, "invalid-view", "nothing"),
        ({"sql": "SELECT id FROM mine"}, 422, "invalid-view", "itself"),
        ({"sql": "SELECT missing FROM orders"}, 422, "invalid-view", "missing"),
        ({"sql": "DROP TABLE orders"}, 422, "invalid-view", "SELECT"),
        ({"sql": "SELECT at FROM untold"}, 422, "invalid-view", "'none'"),
        ({"name": "orders"}, 409, "dataset-exists", "orders"),
        ({"name": "no name"}, 422, "invalid-dataset", "/name"),
        ({"record_key": ["missing"]}, 422, "invalid-dataset", "/record_key/0"),
        ({"changelog": {"producer": "input"}}, 422, "invalid-dataset", "/changelog/producer"),
        ({"bucket": {"mode": "postpone"}}, 422, "invalid-dataset", "/bucket/mode"),
        ({"sql": "SELECT id, id AS ID FROM orders"}, 422, None, "/sql"),
        ({"ordering_field": "id"}, 400, "invalid-request", "ordering_field"),
        ({"sql": 1}, 400, "invalid-request", "/sql"),
    ],
)
def test_what_is_no_view_is_refused(
    client: httpx.Client, orders: str, body: Row, status: int, code: str | None, told: str
) -> None:
    client.post("/datasets", json=EVENTS | {"name": "untold", "changelog": {"producer": "none"}})
    answer = client.post("/views", json={"name": "mine", "sql": "SELECT id FROM orders"} | body)
    assert answer.status_code == status, answer.text
    assert code is None or answer.json()["type"] == f"/problems/{code}"
    assert told in answer.text
    assert client.get("/views").json()["items"] == []


def test_views_are_their_tenants_own(
    new_client: Callable[..., httpx.Client], register: Callable[..., Row]
) -> None:
    view = register("long", LONG, long)
    stranger = new_client()
    problem(stranger.get(view["links"]["self"]), 404, "not-found")
    problem(stranger.delete(view["links"]["self"]), 404, "not-found")
    problem(stranger.post(view["links"]["refresh"]), 404, "not-found")
    problem(stranger.post("/views", json={"name": "mine", "sql": LONG}), 422, "invalid-view")
    assert stranger.get("/views").json()["items"] == []
