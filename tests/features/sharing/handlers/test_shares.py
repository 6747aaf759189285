"""Shares and recipients over HTTP: made, found, changed, rotated and deleted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from app.access.tenants.quotas import Quotas
from app.access.tenants.values import Grant, KeyScope, TenantChange
from app.features.sharing.repository.recipients import ShareRecipientStore
from app.features.sharing.tables import recipients
from app.features.sharing.values import SHARE_TOKEN, NewRecipient, new_share_token
from app.infra.identifiers import new_id
from tests.support.http import ORDERS, problem
from tests.support.service import Service
from tests.support.webhooks import tenant_of

FUTURE = (datetime.now(UTC) + timedelta(days=1)).isoformat()


def made(client: httpx2.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.fixture
def sales(client: httpx2.Client, orders: str) -> str:
    """The path of a share of `orders`."""
    made(client, "/shares", {"name": "Sales", "datasets": [{"name": "orders"}]})
    return "/shares/sales"


def test_share_is_made_found_changed_and_deleted(client: httpx2.Client, orders: str, events: str) -> None:
    answer = client.post(
        "/shares", json={"name": "Sales", "datasets": [{"name": "orders", "as": "Orders_1"}]}
    )
    share = answer.json()
    assert answer.status_code == 201
    assert share["datasets"] == [
        {
            "id": orders.rsplit("/", 1)[1],
            "name": "orders",
            "as": "Orders_1",
            "table": "Sales.default.Orders_1",
        }
    ]
    assert client.get(answer.headers["location"]).json() == share
    assert client.get("/shares/SALES").json() == share
    assert client.get("/shares").json()["items"] == [share]
    changed = client.patch(
        "/shares/sales", json={"datasets": [{"name": "events"}]}, headers={"If-Match": answer.headers["etag"]}
    )
    assert [each["table"] for each in changed.json()["datasets"]] == ["Sales.default.events"]
    problem(
        client.patch("/shares/sales", json={"name": "x"}, headers={"If-Match": answer.headers["etag"]}),
        412,
        "precondition-failed",
    )
    problem(client.patch("/shares/sales", json={"name": "x"}), 428, "precondition-required")
    assert client.delete("/shares/sales").status_code == 204
    problem(client.get("/shares/sales"), 404, "not-found")


@pytest.mark.parametrize("name", ["a.b", "", "ü", "a b", "a/b", "-a", "x" * 129, "a\n", "a\0"])
def test_names_that_sharing_cannot_have_are_refused(client: httpx2.Client, orders: str, name: str) -> None:
    of_share = client.post("/shares", json={"name": name, "datasets": [{"name": "orders"}]})
    of_table = client.post("/shares", json={"name": "s", "datasets": [{"name": "orders", "as": name}]})
    for answer, pointer in ((of_share, "/name"), (of_table, "/datasets/0/as")):
        assert answer.status_code in (400, 422), answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer
    assert client.get("/shares").json()["items"] == []


def test_dataset_needs_an_alias_for_a_dot_and_for_a_name_in_other_capitals(client: httpx2.Client) -> None:
    for name in ("a.b", "ORDERS", "orders"):
        made(client, "/datasets", ORDERS | {"name": name})
    datasets = [{"name": "a.b"}, {"name": "ORDERS"}, {"name": "orders"}]
    answer = client.post("/shares", json={"name": "s", "datasets": datasets})
    errors = problem(answer, 422, "invalid-share")["errors"]
    assert [each["pointer"] for each in errors] == ["/datasets/0/as", "/datasets/2/as"]
    datasets = [{"name": "a.b", "as": "ab"}, {"name": "ORDERS"}, {"name": "orders", "as": "small"}]
    share = made(client, "/shares", {"name": "s", "datasets": datasets})
    assert [each["as"] for each in share["datasets"]] == ["ab", "ORDERS", "small"]
    twice = [{"name": "orders", "as": "x"}, {"name": "orders", "as": "y"}]
    problem(client.post("/shares", json={"name": "t", "datasets": twice}), 422, "invalid-share")
    problem(client.post("/shares", json={"name": "S"}), 409, "share-exists")
    problem(client.post("/shares", json={"name": "t", "datasets": [{"name": "none"}]}), 404, "not-found")


def test_recipient_has_a_profile_once(client: httpx2.Client, sales: str, service: Service) -> None:
    grants = [{"dataset": "orders", "where": "id > 1", "mask": ["note"]}]
    recipient = made(client, f"{sales}/recipients", {"name": "acme", "expires_at": FUTURE, "grants": grants})
    profile = recipient.pop("profile")
    assert SHARE_TOKEN.fullmatch(profile["bearerToken"])
    assert profile["shareCredentialsVersion"] == 1
    assert profile["endpoint"] == f"{service.url}/delta-sharing"
    assert datetime.fromisoformat(profile["expirationTime"]) == datetime.fromisoformat(FUTURE)
    path = f"{sales}/recipients/{recipient['id']}"
    assert client.get(path).json() == recipient
    assert client.get(f"{sales}/recipients/acme").json() == recipient
    assert client.get(f"{sales}/recipients").json()["items"] == [recipient]
    assert [(each["dataset"], each["where"], each["mask"]) for each in recipient["grants"]] == [
        ("orders", "id > 1", ["note"])
    ]
    token = {"Authorization": f"Bearer {profile['bearerToken']}"}
    for method, other in (("GET", "/datasets"), ("GET", "/me"), ("GET", "/shares"), ("POST", "/shares")):
        problem(client.request(method, other, headers=token, json=None), 401, "unauthorized")
    problem(client.get("/datasets/orders/rows", headers=token), 401, "unauthorized")
    for body in ({"overlap_seconds": -1}, {"seconds": 0}):
        problem(client.post(f"{path}/rotate-token", json=body), 400, "invalid-request")
    rotated = client.post(f"{path}/rotate-token", json={"overlap_seconds": 60}).json()
    assert rotated["profile"]["bearerToken"] != profile["bearerToken"]
    assert rotated["previous_token_until"] is not None
    changed = client.patch(path, json={"grants": None}, headers={"If-Match": '"1"'}).json()
    assert (changed["grants"], changed["revision"]) == (None, 2)
    assert client.delete(path).status_code == 204
    problem(client.get(path), 404, "not-found")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "a", "grants": [{"dataset": "orders", "where": "none > 1"}]}, "/grants/0/where"),
        ({"name": "a", "grants": [{"dataset": "orders", "where": "id >"}]}, "/grants/0/where"),
        ({"name": "a", "grants": [{"dataset": "orders", "mask": ["id", "none"]}]}, "/grants/0/mask/1"),
        ({"name": "a", "grants": [{"dataset": "none"}]}, "/grants/0/dataset"),
        ({"name": "a", "grants": [{"dataset": "orders"}, {"dataset": "orders"}]}, "/grants/1/dataset"),
        ({"name": "a", "grants": []}, "/grants"),
        ({"name": "a", "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "a\0"}, "/name"),
        ({"name": "  "}, "/name"),
        ({"name": "a/b"}, "/name"),
        ({"name": ".."}, "/name"),
        ({"name": "a", "grants": [{"dataset": "orders", "mask": ["id", "id"]}]}, "/grants/0/mask/1"),
        ({"name": "a", "requests_per_second": 0}, "/requests_per_second"),
    ],
)
def test_recipient_that_cannot_be_is_refused(
    client: httpx2.Client, sales: str, body: dict[str, Any], pointer: str
) -> None:
    answer = client.post(f"{sales}/recipients", json=body)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_recipient_with_a_name_of_before_is_found_by_id(
    client: httpx2.Client, sales: str, service: Service
) -> None:
    share_id = client.get(sales).json()["id"]
    new = NewRecipient(name="a/b", grants=None, expires_at=None, requests_per_second=None)
    store, recipient_id = ShareRecipientStore(service.database), new_id()
    store.add(tenant_of(client, service), share_id, recipient_id, new, new_share_token(), created_by=new_id())
    path = f"{sales}/recipients/{recipient_id}"
    assert client.get(path).json()["name"] == "a/b"
    changed = client.patch(path, json={"requests_per_second": 5}, headers={"If-Match": '"1"'})
    assert changed.status_code == 200, changed.text
    renamed = client.patch(path, json={"name": "a-b"}, headers={"If-Match": '"2"'})
    assert renamed.json()["name"] == "a-b"
    assert client.get(f"{sales}/recipients/a-b").json()["id"] == recipient_id


def test_recipient_ends_in_the_future_and_gets_no_token_afterwards(
    client: httpx2.Client, sales: str, service: Service
) -> None:
    recipient = made(client, f"{sales}/recipients", {"name": "acme", "expires_at": FUTURE})
    path = f"{sales}/recipients/acme"
    answer = client.patch(path, json={"expires_at": "2020-01-01T00:00:00Z"}, headers={"If-Match": '"1"'})
    [error] = problem(answer, 422, "invalid-share")["errors"]
    assert (error["pointer"], "delete" in error["detail"]) == ("/expires_at", True)
    with service.database.tenant(tenant_of(client, service)) as connection:
        ended = update(recipients).where(recipients.c.id == recipient["id"])
        connection.execute(ended.values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    assert "expires_at" in problem(client.post(f"{path}/rotate-token"), 409, "recipient-expired")["detail"]
    # Its name can be changed without its end.
    assert client.patch(path, json={"name": "b"}, headers={"If-Match": '"1"'}).status_code == 200
    later = client.patch(f"{sales}/recipients/b", json={"expires_at": FUTURE}, headers={"If-Match": '"2"'})
    assert later.status_code == 200, later.text
    assert client.post(f"{sales}/recipients/b/rotate-token").status_code == 200


def test_recipient_comes_to_see_no_more_than_the_key_that_made_it(
    client: httpx2.Client, orders: str, events: str, sales: str, service: Service
) -> None:
    whole = made(client, f"{sales}/recipients", {"name": "whole"})
    scopes = {KeyScope.READ, KeyScope.WRITE, KeyScope.MANAGE}
    key = service.tenants.make_key(tenant_of(client, service), scopes, grants=[Grant(datasets="orders")])
    with service.client(key.api_key) as limited:
        answer = limited.post("/shares", json={"name": "empty"})
        assert problem(answer, 422, "invalid-share")["errors"][0]["pointer"] == "/datasets"
        answer = limited.post(f"{sales}/recipients", json={"name": "acme"})
        assert problem(answer, 422, "invalid-share")["errors"][0]["pointer"] == "/grants"
        problem(limited.post(f"{sales}/recipients/whole/rotate-token"), 403, "forbidden")
        body = {"name": "acme", "grants": [{"dataset": "orders"}]}
        acme = made(limited, f"{sales}/recipients", body)
        path = f"{sales}/recipients/acme"
        answer = limited.patch(path, json={"grants": None}, headers={"If-Match": '"1"'})
        assert problem(answer, 422, "invalid-share")["errors"][0]["pointer"] == "/grants"
        assert limited.post(f"{path}/rotate-token").status_code == 200
    more = {"datasets": [{"name": "orders"}, {"name": "events"}]}
    assert client.patch(sales, json=more, headers={"If-Match": '"1"'}).status_code == 200
    assert tables_of(service, acme) == ["orders"]
    assert tables_of(service, whole) == ["events", "orders"]


def tables_of(service: Service, recipient: dict[str, Any]) -> list[str]:
    headers = {"Authorization": f"Bearer {recipient['profile']['bearerToken']}"}
    with httpx2.Client(base_url=service.url, headers=headers, trust_env=False, timeout=30) as client:
        answer = client.get("/delta-sharing/shares/sales/all-tables")
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()["items"]]


def test_recipient_names_may_be_any_text(client: httpx2.Client, sales: str) -> None:
    names = ["Müller & Söhne", "a.b", "A.B", "ada@example.org"]
    for name in names:
        made(client, f"{sales}/recipients", {"name": name})
    first = client.get(f"{sales}/recipients", params={"page_size": 3}).json()
    rest = client.get(
        f"{sales}/recipients", params={"page_size": 3, "page_token": first["next_page_token"]}
    ).json()
    assert [each["name"] for each in first["items"] + rest["items"]] == sorted(names)
    problem(client.post(f"{sales}/recipients", json={"name": "a.b"}), 409, "recipient-exists")


def test_key_shares_only_what_it_manages_and_reads_whole(
    client: httpx2.Client, orders: str, events: str, sales: str, service: Service
) -> None:
    tenant = tenant_of(client, service)

    def answer(*grants: Grant) -> httpx2.Response:
        scopes = {KeyScope.READ, KeyScope.WRITE, KeyScope.MANAGE}
        key = service.tenants.make_key(tenant, scopes, grants=grants).api_key
        with service.client(key) as other:
            return other.post("/shares", json={"name": "mine", "datasets": [{"name": "orders"}]})

    manages = Grant(datasets="orders", scopes=(KeyScope.MANAGE,))
    part = Grant(datasets="orders", scopes=(KeyScope.READ,), where="id > 1")
    problem(answer(manages), 403, "forbidden")
    problem(answer(manages, part), 403, "restricted-grant")
    problem(answer(Grant(datasets="events")), 404, "not-found")
    assert answer(Grant(datasets="orders")).status_code == 201
    key = service.tenants.make_key(tenant, {KeyScope.READ}, grants=[Grant(datasets="events")]).api_key
    with service.client(key) as other:
        assert other.get("/shares").json()["items"] == []
        problem(other.get(sales), 404, "not-found")
        problem(other.get(f"{sales}/recipients"), 404, "not-found")


def test_change_of_the_schema_that_breaks_a_recipient_is_refused(client: httpx2.Client, sales: str) -> None:
    body = {"name": "acme", "grants": [{"dataset": "orders", "mask": ["note"]}]}
    recipient = made(client, f"{sales}/recipients", body)
    etag = client.get("/datasets/orders").headers["etag"]
    drop = {"changes": [{"kind": "drop", "name": "note"}]}
    answer = client.patch("/datasets/orders", json=drop, headers={"If-Match": etag})
    [broken] = problem(answer, 409, "schema-in-use")["breaks"]
    assert (broken["kind"], broken["id"], broken["column"]) == ("recipient", recipient["id"], "note")
    answer = client.patch(
        "/datasets/orders", json=drop, headers={"If-Match": etag}, params={"cascade": "pause"}
    )
    assert answer.status_code == 200, answer.text


def test_rename_to_a_masked_name_is_refused_with_advice_that_helps(client: httpx2.Client, sales: str) -> None:
    body = {"name": "acme", "grants": [{"dataset": "orders", "mask": ["note"]}]}
    made(client, f"{sales}/recipients", body)

    def change(**step: Any) -> httpx2.Response:
        change = {"changes": [step]}
        etag = client.get("/datasets/orders").headers["etag"]
        return client.patch(
            "/datasets/orders", json=change, headers={"If-Match": etag}, params={"cascade": "pause"}
        )

    assert change(kind="add", field={"name": "city", "type": "string"}).status_code == 200
    assert change(kind="rename", name="note", to="memo").status_code == 200
    refused = problem(change(kind="rename", name="city", to="note"), 409, "schema-in-use")
    assert "cascade=pause does not pause it" in refused["detail"]
    [broken] = refused["breaks"]
    assert "from the change on" not in broken["action"]
    assert "present name" in broken["action"]
    # The advice is followed.
    grants = {"grants": [{"dataset": "orders", "mask": ["memo"]}]}
    changed = client.patch(f"{sales}/recipients/acme", json=grants, headers={"If-Match": '"1"'})
    assert changed.status_code == 200, changed.text
    assert change(kind="rename", name="city", to="note").status_code == 200


def test_quotas_limit_shares_and_recipients(client: httpx2.Client, sales: str, service: Service) -> None:
    tenant = tenant_of(client, service)
    service.tenants.change(tenant, TenantChange(quotas=Quotas(shares=1, recipients=1)))
    made(client, f"{sales}/recipients", {"name": "a"})
    assert problem(client.post("/shares", json={"name": "t"}), 429, "quota-exceeded")["quota"] == "shares"
    answer = client.post(f"{sales}/recipients", json={"name": "b"})
    assert problem(answer, 429, "quota-exceeded")["quota"] == "recipients"


def test_rotations_and_deletions_race_without_a_fault(
    client: httpx2.Client, sales: str, new_client: Callable[..., httpx2.Client]
) -> None:
    recipient = made(client, f"{sales}/recipients", {"name": "acme"})
    path = f"{sales}/recipients/{recipient['id']}"

    def rotate(_: int) -> int:
        return client.post(f"{path}/rotate-token").status_code

    with ThreadPoolExecutor(4) as pool:
        rotations = [pool.submit(rotate, number) for number in range(12)]
        deletion = pool.submit(client.delete, path)
        assert {each.result() for each in rotations} <= {200, 404}
        assert deletion.result().status_code == 204
    problem(client.get(path), 404, "not-found")
    problem(new_client().get(path), 404, "not-found")
