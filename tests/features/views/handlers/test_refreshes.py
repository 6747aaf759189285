"""Views follow their inputs. What their SQL makes of rows is computed by functions, in the place of Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import msgspec
import pytest

from app.access.tenants.values import Grant, KeyScope
from app.kernel.derivation.request import FeedInput, TableInput
from app.kernel.format.errors import DerivationFailed
from tests.support.derived_views import (
    COUNT,
    LONG,
    counted,
    feed,
    long,
    operations,
    register_view,
    rows,
    shown,
)
from tests.support.http import ORDERS, problem, upsert
from tests.support.service import Service
from tests.support.view_computation import Query, Row
from tests.support.waiting import until


def test_view_shows_current_rows_and_follows_changes(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    write_notes: Callable[..., None],
    orders: str,
) -> None:
    write_notes({1: "tea", 2: "coffee"})
    view = new_view("long", LONG, long)
    assert view["mode"] == "row_by_row"
    assert view["freshness"] == "behind"
    assert (view["version"], view["refreshed_at"], view["error"]) == (0, None, None)
    assert view["record_key"] == ["id"]
    assert view["inputs"] == [
        {
            "relation": "orders",
            "dataset": {"id": orders.rsplit("/", 1)[1], "name": "orders"},
            "offset": 0,
            "version": 0,
            "lag": 2,
        }
    ]
    service.work()
    assert rows(client, view) == [{"id": 2, "note": "COFFEE"}]
    now = shown(client, view)
    assert (now["freshness"], now["version"], now["inputs"][0]["offset"], now["inputs"][0]["version"]) == (
        "current",
        1,
        2,
        1,
    )
    assert now["refreshed_at"] is not None
    write_notes({1: "chai latte", 2: "tea", 3: "espresso", 4: "mate"})
    write_notes({3: None, 4: "mate!"})
    emitted = feed(client, view)
    assert emitted[0] == ("+A", {"id": 2, "note": "COFFEE"})
    assert sorted(emitted[1:5], key=lambda change: change[1]["id"]) == [
        ("+A", {"id": 1, "note": "CHAI LATTE"}),
        ("-R", {"id": 2, "note": "COFFEE"}),
        ("+A", {"id": 3, "note": "ESPRESSO"}),
        ("+A", {"id": 4, "note": "MATE"}),
    ]
    assert emitted[5:] == [
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


def test_aggregating_view_is_recomputed_and_emits_the_difference(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row], write_notes: Callable[..., None]
) -> None:
    view = new_view("counted", COUNT, counted)
    assert (view["mode"], view["record_key"]) == ("recompute", [])
    service.work()
    write_notes({1: "tea", 2: "pot", 3: "coffee"})
    write_notes({2: "pots"})
    write_notes({1: "tee"})
    assert rows(client, view) == [
        {"letters": 3, "orders": 1},
        {"letters": 4, "orders": 1},
        {"letters": 6, "orders": 1},
    ]
    emitted = feed(client, view)
    assert sorted(emitted[:2], key=repr) == [
        ("+A", {"letters": 3, "orders": 2}),
        ("+A", {"letters": 6, "orders": 1}),
    ]
    assert sorted(emitted[2:], key=repr) == [
        ("+A", {"letters": 3, "orders": 1}),
        ("+A", {"letters": 4, "orders": 1}),
        ("-R", {"letters": 3, "orders": 2}),
    ]
    # The last write changed no count: the view has taken it in all the same.
    now = shown(client, view)
    assert (now["freshness"], now["version"], now["inputs"][0]["lag"]) == ("current", 2, 0)


def test_keyed_view_emits_corrections(
    client: httpx2.Client, new_view: Callable[..., Row], write_notes: Callable[..., None]
) -> None:
    view = new_view("counted", COUNT, counted, record_key=["letters"])
    write_notes({1: "tea", 2: "pot"})
    write_notes({2: "pots"})
    emitted = feed(client, view)
    assert emitted[0] == ("+A", {"letters": 3, "orders": 2})
    assert sorted(emitted[1:], key=repr) == [
        ("+A", {"letters": 4, "orders": 1}),
        ("+C", {"letters": 3, "orders": 1}),
        ("-C", {"letters": 3, "orders": 2}),
    ]


def test_view_of_empty_inputs_may_have_rows(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row]
) -> None:
    view = new_view(
        "total", "SELECT count(*) AS orders FROM orders", lambda orders: [{"orders": len(orders)}]
    )
    none = new_view("none", LONG, long)
    service.work()
    assert rows(client, view) == [{"orders": 0}]
    assert rows(client, none) == []
    assert [shown(client, each)["freshness"] for each in (view, none)] == ["current", "current"]


def test_view_reads_views(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row], write_notes: Callable[..., None]
) -> None:
    lower = new_view("long", LONG, long)
    upper = new_view("shouted", "SELECT count(*) AS n FROM long", lambda rows: [{"n": len(rows)}])
    write_notes({1: "coffee", 2: "espresso"})
    write_notes({2: None})
    assert rows(client, lower) == [{"id": 1, "note": "COFFEE"}]
    assert rows(client, upper) == [{"n": 1}]
    assert shown(client, upper)["inputs"][0]["relation"] == "long"
    members = problem(client.delete(lower["links"]["self"]), 409, "dataset-in-use")
    assert members["views"] == ["shouted"]


def test_view_reads_a_transaction_as_a_whole(client: httpx2.Client, service: Service, orders: str) -> None:
    other = client.post("/datasets", json=ORDERS | {"name": "payments"}).headers["location"]
    service.derivation.queries["both"] = lambda left, right: [{"orders": len(left), "payments": len(right)}]
    sql = "SELECT (SELECT count(*) FROM orders) AS orders, (SELECT count(*) FROM payments) AS payments"
    view = client.post("/views", json={"name": "both", "sql": sql}).json()
    for number in range(3):
        row = {"id": number, "note": "x"}
        writes = [{"dataset": path.rsplit("/", 1)[1], **upsert(row)} for path in (orders, other)]
        assert client.post("/transactions", json={"writes": writes}).status_code == 202
        service.work()
    emitted = [row for _, row in feed(client, view)]
    assert all(row["orders"] == row["payments"] for row in emitted)
    assert rows(client, view) == [{"orders": 3, "payments": 3}]
    # Both inputs requested a refresh, and got one.
    assert len([each for each in operations(client, view) if each == "snapshot"]) <= 4


@pytest.mark.parametrize(("sql", "query"), [(LONG, long), (COUNT, counted)], ids=["row by row", "anew"])
def test_failed_view_reports_its_error_and_recovers_with_its_inputs(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    write_notes: Callable[..., None],
    orders: str,
    sql: str,
    query: Query,
) -> None:
    def picky(orders: list[Row]) -> list[Row]:
        if any(order["note"] == "zero" for order in orders):
            raise DerivationFailed("a division by zero")
        return query(orders)

    view = new_view("picky", sql, picky)
    write_notes({1: "coffee"})
    before = rows(client, view)
    write_notes({2: "zero"})
    failed = shown(client, view)
    assert (failed["freshness"], failed["error"]["type"]) == ("failed", "/problems/derivation-failed")
    assert failed["error"]["detail"] == "a division by zero"
    assert failed["inputs"][0]["lag"] == 1
    assert rows(client, view) == before
    assert client.get(orders).json()["version"] == 2
    job = client.post(view["links"]["refreshes"]).json()
    service.work()
    job = client.get(job["links"]["self"]).json()
    assert (job["kind"], job["state"]) == ("refresh", "failed")
    # Without another request, the change of its input is found. What was wrong is only in its feed now.
    write_notes({2: "water"})

    def healed() -> bool:
        service.work()
        now = shown(client, view)
        return (now["freshness"], now["error"]) == ("current", None)

    until(healed, "the view to notice that its input has changed")
    assert rows(client, view) == sorted(
        query([{"id": 1, "note": "coffee"}, {"id": 2, "note": "water"}]), key=lambda row: row[next(iter(row))]
    )


def test_dropped_column_fails_a_view_and_an_added_one_does_not(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    write_notes: Callable[..., None],
    orders: str,
) -> None:
    def change(**change: Any) -> None:
        etag = client.get(orders).headers["etag"]
        params = {"cascade": "pause"}
        answer = client.patch(orders, json={"changes": [change]}, headers={"If-Match": etag}, params=params)
        assert answer.status_code == 200, answer.text

    view = new_view(
        "all", "SELECT * FROM orders", lambda orders: [{"id": o["id"], "note": o["note"]} for o in orders]
    )
    change(kind="add", field={"name": "more", "type": "string"})
    write_notes({1: "tea"})
    assert rows(client, view) == [{"id": 1, "note": "tea"}]
    change(kind="rename", name="note", to="text")
    client.post(f"{orders}/writes", json=upsert({"id": 2, "text": "pot"}))
    client.post(view["links"]["refreshes"])
    service.work()
    error = shown(client, view)["error"]
    assert error["type"] == "/problems/invalid-view"
    assert '"note"' in error["detail"]
    change(kind="rename", name="text", to="note")
    paused = shown(client, view)
    etag = {"If-Match": f'"{paused["revision"]}"'}
    client.patch(view["links"]["self"], json={"state": "active"}, headers=etag)
    service.work()
    assert rows(client, view) == [{"id": 1, "note": "tea"}, {"id": 2, "note": "pot"}]
    assert shown(client, view)["error"] is None


def test_view_is_recomputed_after_its_changes_expire(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    write_notes: Callable[..., None],
    orders: str,
) -> None:
    view = new_view("long", LONG, long)
    write_notes({1: "coffee"})
    dataset = service.platform.stores.catalog.get(_tenant(service, orders), orders.rsplit("/", 1)[1])
    client.post(f"{orders}/writes", json=upsert({"id": 2, "note": "water"}))
    service.run_writes.run(dataset.tenant_id, dataset.id)
    with service.database.tenant(dataset.tenant_id) as connection:
        connection.exec_driver_sql("UPDATE heads SET earliest_offset = 2 WHERE next_offset = 2")
    service.work()
    assert operations(client, view)[-1] == "snapshot"
    assert feed(client, view)[-1] == ("+A", {"id": 2, "note": "WATER"})


def test_concurrent_refreshes_apply_each_change_once(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    write_notes: Callable[..., None],
    orders: str,
) -> None:
    two = msgspec.structs.replace(service.run_writes.rules, dataset_writers_max=2)
    other = replace(service.run_writes, rules=two, owner="other")
    concurrent_runs: list[bool] = []

    def run_concurrently(orders: list[Row]) -> list[Row]:
        if not concurrent_runs:
            concurrent_runs.append(True)
            client.post(view["links"]["refreshes"])
            other.run(tenant_id, view["id"])
            concurrent_runs.append(shown(client, view)["freshness"] == "current")
        return long(orders)

    view = new_view("long", LONG, long)
    write_notes({1: "coffee"})
    tenant_id = _tenant(service, orders)
    service.derivation.queries["long"] = run_concurrently
    write_notes({2: "water"})
    assert concurrent_runs == [True, True]
    assert feed(client, view) == [
        ("+A", {"id": 1, "note": "COFFEE"}),
        ("+A", {"id": 2, "note": "WATER"}),
    ]
    assert shown(client, view)["freshness"] == "current"


def _tenant(service: Service, orders: str) -> str:
    with service.database.relay() as connection:
        query = "SELECT tenant_id FROM heads WHERE dataset_id = %(id)s"
        return str(connection.exec_driver_sql(query, {"id": orders.rsplit("/", 1)[1]}).scalar_one())


def test_paused_view_refreshes_only_on_request(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    write_notes: Callable[..., None],
) -> None:
    view = new_view("long", LONG, long)
    write_notes({1: "coffee"})
    path = view["links"]["self"]
    etag = client.get(path).headers["etag"]
    problem(client.patch(path, json={"state": "paused"}), 428, "precondition-required")
    problem(client.patch(path, json={"state": "off"}, headers={"If-Match": etag}), 400, "invalid-request")
    paused = client.patch(path, json={"state": "paused"}, headers={"If-Match": etag})
    assert paused.status_code == 200, paused.text
    assert paused.json()["state"] == "paused"
    stale = client.patch(path, json={"state": "active"}, headers={"If-Match": etag})
    assert f'"{problem(stale, 412, "precondition-failed")["revision"]}"' == paused.headers["etag"]
    write_notes({2: "water"})
    assert shown(client, view)["freshness"] == "behind"
    assert rows(client, view) == [{"id": 1, "note": "COFFEE"}]
    client.post(view["links"]["refreshes"])
    service.work()
    write_notes({3: "mate"})
    assert [row["id"] for row in rows(client, view)] == [1, 2]
    resumed = client.patch(path, json={"state": "active"}, headers={"If-Match": paused.headers["etag"]})
    assert resumed.json()["state"] == "active"
    service.work()
    assert [row["id"] for row in rows(client, view)] == [1, 2, 3]


def test_reason_of_a_failed_refresh_is_hidden_from_keys_without_the_inputs(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    write_notes: Callable[..., None],
    orders: str,
) -> None:
    def picky(orders: list[Row]) -> list[Row]:
        if any(order["note"] == "SECRET" for order in orders):
            raise DerivationFailed("The value 'SECRET' cannot be cast", row="SECRET")
        return long(orders)

    tenant, whole = client.get("/me").json()["tenant"]["id"], Grant(datasets="picky")
    part = Grant(datasets="orders", scopes=(KeyScope.READ,), where="id = 1")

    def texts(*grants: Grant) -> list[str]:
        key = service.tenants.make_key(tenant, (KeyScope.READ, KeyScope.WRITE), grants=grants).api_key
        with service.client(key) as reader:
            return [reader.get(path).text for path in paths] + [
                reader.post(paths[0] + "/refreshes", headers={"Idempotency-Key": "k"}).text
            ]

    view = new_view("picky", LONG, picky)
    write_notes({1: "SECRET"})
    job = client.post(view["links"]["refreshes"], headers={"Idempotency-Key": "k"}).json()["links"]
    service.work()
    paths = [view["links"]["self"], "/views", "/jobs", job["self"], job["events"], view["links"]["timeline"]]
    for text in texts(whole, Grant(datasets="orders")):
        assert "SECRET" in text
    for text in [*texts(whole), *texts(whole, part)]:
        assert "SECRET" not in text
        assert "/problems/derivation-failed" in text
    client.delete(view["links"]["dataset"])


def test_feed_of_a_view_has_the_event_times_of_its_input(client: httpx2.Client, service: Service) -> None:
    fields = [
        {"name": "id", "type": "int64"},
        {"name": "taken", "type": "timestamp"},
        {"name": "rank", "type": "int32"},
    ]
    dataset = {
        "name": "taken",
        "record_key": ["id"],
        "event_time_field": "taken",
        "schema": {"fields": fields},
    }
    path = client.post("/datasets", json=dataset).headers["location"]
    view = register_view(
        client, service, "ranked", "SELECT id, rank, taken AS at FROM taken", ranked, ordering_field="rank"
    )
    assert (view["event_time_field"], view["ordering_field"], view["mode"]) == ("at", "rank", "row_by_row")
    times = ["2026-01-02T00:00:00Z", "2026-01-01T12:00:00Z"]
    for taken, rank in zip(times, (2, 1), strict=True):
        client.post(f"{path}/writes", json=upsert({"id": 1, "taken": taken, "rank": rank}))
        service.work()
    client.post(
        f"{path}/writes", json={"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 1}]}}
    )
    service.work()
    client.post(f"{path}/writes", json=upsert({"id": 1, "taken": times[0], "rank": 0}))
    service.work()
    changes = client.get(view["links"]["changes"]).json()["changes"]
    # The rank of a row may go down: the view is the result of its SQL.
    assert [(each["op"], each["event_time"], each["row"]["rank"]) for each in changes] == [
        ("+A", times[0], 2),
        ("-C", times[0], 2),
        ("+C", times[1], 1),
        ("-R", times[1], 1),
        ("+A", times[0], 0),
    ]
    assert [row["rank"] for row in rows(client, view)] == [0]


def ranked(taken: list[Row]) -> list[Row]:
    return [{"id": each["id"], "rank": each["rank"], "at": each["taken"]} for each in taken]


def test_inputs_that_a_key_may_not_read_have_only_their_names_in_the_sql(
    client: httpx2.Client,
    service: Service,
    new_view: Callable[..., Row],
    write_notes: Callable[..., None],
    orders: str,
) -> None:
    view = new_view("shown", LONG, long)
    write_notes({1: "a", 2: "b"})
    tenant = client.get("/me").json()["tenant"]["id"]
    whole = Grant(datasets="shown")
    part = Grant(datasets="orders", scopes=(KeyScope.READ,), where="id = 1")

    def inputs(*grants: Grant) -> list[Row]:
        key = service.tenants.make_key(tenant, (KeyScope.READ,), grants=grants).api_key
        with service.client(key) as reader:
            [listed] = reader.get("/views").json()["items"]
            shown = reader.get(view["links"]["self"]).json()
        assert shown["inputs"] == listed["inputs"]
        return list(shown["inputs"])

    hidden = {"offset": None, "version": None, "lag": None}
    [all_of_it] = client.get(view["links"]["self"]).json()["inputs"]
    assert all_of_it["dataset"]["id"] == orders.rsplit("/", 1)[1]
    assert None not in all_of_it.values()
    assert inputs(whole) == [{"relation": "orders", "dataset": None, **hidden}]
    assert inputs(whole, part) == [{"relation": "orders", "dataset": all_of_it["dataset"], **hidden}]
    assert inputs(whole, Grant(datasets="orders")) == [all_of_it]
