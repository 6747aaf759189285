"""Views over HTTP: registered, found, refreshed and ended, and never written to."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest

from tests.support.derived_views import LONG, long, rows
from tests.support.http import EVENTS, problem, upsert
from tests.support.service import Service
from tests.support.view_computation import Row


def test_refresh_is_queued_once_on_request(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row]
) -> None:
    view = new_view("long", LONG, long)
    first, second = (client.post(view["links"]["refreshes"]) for _ in range(2))
    assert first.status_code == second.status_code == 202
    assert first.json()["id"] == second.json()["id"]
    service.work()
    with service.working():
        answer = client.post(view["links"]["refreshes"], headers={"Prefer": "wait=20"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["state"], answer.json()["committed_version"]) == ("succeeded", 0)
    # Views of other tests may have been due as well.
    dataset = client.get(view["links"]["dataset"]).json()["id"]
    assert len([each for each in service.derivation.requests if f"/{dataset}/" in each.prefix]) == 1


def test_writes_to_a_view_are_refused(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row], orders: str
) -> None:
    view = new_view("long", LONG, long)
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
    problem(client.post(f"{dataset}/explanations", json=upsert(row)), 409, "derived-dataset")
    etag = client.get(dataset).headers["etag"]
    changes = {"changes": [{"kind": "add", "field": {"name": "more", "type": "string"}}]}
    problem(client.patch(dataset, json=changes, headers={"If-Match": etag}), 409, "derived-dataset")
    kept = {"changelog": {"retention": {"changes": 10}}}
    assert client.patch(dataset, json=kept, headers={"If-Match": etag}).status_code == 200
    assert client.post(f"{dataset}/compactions").status_code == 202
    service.work()
    assert rows(client, view) == []


def test_deleted_view_releases_its_inputs(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row], orders: str
) -> None:
    view = new_view("long", LONG, long)
    members = problem(client.delete(orders), 409, "dataset-in-use")
    assert members["views"] == ["long"]
    assert client.delete("/views/long").status_code == 204
    problem(client.get(view["links"]["self"]), 404, "not-found")
    problem(client.get(view["links"]["dataset"]), 404, "not-found")
    problem(client.delete("/views/orders"), 404, "not-found")
    assert client.get("/views").json() == {"items": [], "next_page_token": None}
    again = new_view("long", LONG, long)
    assert [each["id"] for each in client.get("/views").json()["items"]] == [again["id"]]
    # To end the dataset is to end the view.
    assert client.delete(again["links"]["dataset"]).status_code == 204
    assert client.delete(orders).status_code == 204


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        ({"sql": "SELECT id FROM nothing"}, 422, "invalid-view", "nothing"),
        ({"sql": "SELECT id FROM mine"}, 422, "invalid-view", "itself"),
        ({"sql": "SELECT missing FROM orders"}, 422, "invalid-view", "missing"),
        ({"sql": "DROP TABLE orders"}, 422, "invalid-view", "SELECT"),
        ({"sql": "SELECT at FROM untold"}, 422, "invalid-view", "'none'"),
        ({"sql": "SELECT a.id FROM orders a, orders b"}, 422, "invalid-view", "allow_cross_join"),
        ({"name": "orders"}, 409, "dataset-exists", "orders"),
        ({"name": "no name"}, 422, "invalid-dataset", "/name"),
        ({"record_key": ["missing"]}, 422, "invalid-dataset", "/record_key/0"),
        ({"changelog": {"producer": "input"}}, 422, "invalid-dataset", "/changelog/producer"),
        ({"bucket": {"mode": "postpone"}}, 422, "invalid-dataset", "/bucket/mode"),
        ({"sql": "SELECT id, id AS ID FROM orders"}, 422, None, "/sql"),
        ({"ordering_field": "id"}, 422, "invalid-dataset", "ordering_field"),
        ({"sql": 1}, 400, "invalid-request", "/sql"),
    ],
)
def test_invalid_view_is_refused(
    client: httpx2.Client, orders: str, body: Row, status: int, code: str | None, message: str
) -> None:
    client.post("/datasets", json=EVENTS | {"name": "untold", "changelog": {"producer": "none"}})
    answer = client.post("/views", json={"name": "mine", "sql": "SELECT id FROM orders"} | body)
    assert answer.status_code == status, answer.text
    assert code is None or answer.json()["type"] == f"/problems/{code}"
    assert message in answer.text
    assert client.get("/views").json()["items"] == []


def test_join_of_all_pairs_is_registered_with_its_permission(client: httpx2.Client, orders: str) -> None:
    body = {"name": "pairs", "sql": "SELECT a.id FROM orders a, orders b", "allow_cross_join": True}
    made = client.post("/views", json=body)
    assert made.status_code == 201, made.text
    assert client.get("/views/pairs").json()["allow_cross_join"] is True


def test_views_of_another_tenant_are_not_found(
    new_client: Callable[..., httpx2.Client], new_view: Callable[..., Row]
) -> None:
    view = new_view("long", LONG, long)
    stranger = new_client()
    problem(stranger.get(view["links"]["self"]), 404, "not-found")
    problem(stranger.delete(view["links"]["self"]), 404, "not-found")
    problem(stranger.post(view["links"]["refreshes"]), 404, "not-found")
    problem(stranger.post("/views", json={"name": "mine", "sql": LONG}), 422, "invalid-view")
    assert stranger.get("/views").json()["items"] == []


def test_dataset_has_one_name_in_a_view(client: httpx2.Client, orders: str) -> None:
    by_id = orders.rsplit("/", 1)[1]
    sql = f'SELECT a.id FROM orders AS a JOIN "{by_id}" AS b ON a.id = b.id'
    answer = client.post("/views", json={"name": "twice", "sql": sql})
    assert "one name" in problem(answer, 422, "invalid-view")["detail"]
    alone = client.post("/views", json={"name": "once", "sql": f'SELECT id FROM "{by_id}"'})
    assert alone.status_code == 201, alone.text
    (source,) = alone.json()["inputs"]
    assert (source["relation"], source["dataset"]) == (by_id, {"id": by_id, "name": "orders"})


def test_a_view_is_registered_and_refreshed_once_for_a_key(
    client: httpx2.Client, service: Service, orders: str
) -> None:
    headers = {"Idempotency-Key": "once"}
    body = {"name": "kept", "sql": "SELECT id FROM orders"}
    first, second = (client.post("/views", json=body, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201), second.text
    assert second.headers["idempotency-replayed"] == "true"
    assert second.json() == first.json()
    assert len(client.get("/views").json()["items"]) == 1
    path = first.json()["links"]["refreshes"]
    service.derivation.queries["kept"] = lambda rows: [{"id": row["id"]} for row in rows]
    # The refresh that the registration queued: the key stands for it, also once it has ended.
    queued = client.post(path, headers={"Idempotency-Key": "joined"})
    assert "idempotency-replayed" not in queued.headers
    service.work()
    joined = client.post(path, headers={"Idempotency-Key": "joined"})
    assert (joined.status_code, joined.json()["id"]) == (200, queued.json()["id"])
    assert joined.headers["idempotency-replayed"] == "true"
    other = client.post(path, headers={"Idempotency-Key": "other"})
    again = client.post(path, headers={"Idempotency-Key": "other"})
    assert other.json()["id"] == again.json()["id"] != joined.json()["id"]
    assert ("idempotency-replayed" in other.headers, "idempotency-replayed" in again.headers) == (False, True)
