"""Tenants and keys over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from app.access.tenants.errors import AdministrationUnavailable
from app.access.tenants.values import NewKey, Principal
from app.features.administration.service import Administration
from app.http.problems import status_of
from app.infra.identifiers import new_id
from tests.support.exports import EVERY_MINUTE
from tests.support.http import ORDERS, problem, upsert
from tests.support.service import Service

PRINCIPAL = Principal(tenant_id=new_id(), actor=new_id(), scopes=frozenset())


@pytest.fixture
def operator(new_client: Callable[..., httpx2.Client]) -> httpx2.Client:
    """A client of an operator, whose key has no other scope."""
    return new_client(("operate",))


@pytest.fixture
def new_tenant(
    operator: httpx2.Client, service: Service
) -> Iterator[Callable[[], tuple[dict[str, Any], httpx2.Client]]]:
    """Makes tenants, each with a client of its first key."""
    clients: list[httpx2.Client] = []

    def make() -> tuple[dict[str, Any], httpx2.Client]:
        answer = operator.post("/tenants", json={"name": f"t-{new_id()[-12:]}-x"})
        assert answer.status_code == 201, answer.text
        assert answer.headers["cache-control"] == "no-store"
        tenant = answer.json()
        clients.append(service.client(tenant["api_key"]))
        return tenant, clients[-1]

    yield make
    for client in clients:
        client.close()


def test_operator_makes_a_tenant_whose_first_key_works(operator, new_tenant):
    tenant, client = new_tenant()
    assert (tenant["state"], tenant["quotas"]) == ("active", {})
    identity = client.get("/me").json()
    assert identity["tenant"] == {"id": tenant["id"], "name": tenant["name"]}
    assert identity["scopes"] == ["manage", "read", "write"]
    assert (identity["grants"], identity["expires_at"]) == (None, None)
    assert client.post("/datasets", json=ORDERS).status_code == 201
    problem(client.get("/tenants"), 403, "forbidden")
    for reference in (tenant["id"], tenant["name"]):
        found = operator.get(f"/tenants/{reference}").json()
        assert found.pop("deletion") is None
        assert found == {name: fact for name, fact in tenant.items() if name != "api_key"}
    problem(operator.post("/tenants", json={"name": tenant["name"]}), 409, "tenant-exists")
    problem(operator.post("/tenants", json={"name": new_id()}), 400, "invalid-request")
    refused = problem(
        operator.post("/tenants", json={"name": "x", "quotas": {"dataset": 1}}), 400, "invalid-request"
    )
    assert "did you mean 'datasets'?" in refused["detail"]
    problem(operator.get("/datasets"), 403, "forbidden")


def test_tenants_are_listed_by_name_in_pages(operator, new_tenant):
    made = {new_tenant()[0]["name"] for _ in range(3)}
    names, query = [], {"page_size": 2}
    while True:
        page = operator.get("/tenants", params=query).json()
        names += [each["name"] for each in page["items"]]
        if page["next_page_token"] is None:
            break
        query["page_token"] = page["next_page_token"]
    assert names == sorted(names)
    assert made <= set(names)


def test_suspended_tenant_reads_and_does_not_write(operator, new_tenant):
    tenant, client = new_tenant()
    orders = client.post("/datasets", json=ORDERS).headers["location"]
    path = f"/tenants/{tenant['name']}"
    suspended = operator.patch(path, json={"state": "suspended", "reason": "invoice 17 is unpaid"}).json()
    assert (suspended["state"], suspended["suspended_reason"]) == ("suspended", "invoice 17 is unpaid")
    assert suspended["suspended_at"] is not None
    _until_refused(client, orders)
    for answer in (
        client.post(f"{orders}/writes", json=upsert({"id": 1})),
        client.patch(orders, json={"name": "other"}, headers={"If-Match": '"0"'}),
        client.delete(orders),
        client.post("/keys", json={"name": "k", "scopes": ["read"]}),
        client.post(
            f"{orders}/exports",
            json=EVERY_MINUTE,
        ),
    ):
        members = problem(answer, 403, "tenant-suspended")
        assert members["reason"] == "invoice 17 is unpaid"
        assert "invoice 17 is unpaid" in members["detail"]
    for read in (orders, f"{orders}/changes", f"{orders}/rows", "/jobs", "/me"):
        assert client.get(read).status_code == 200
    resumed = operator.patch(path, json={"state": "active"}).json()
    assert (resumed["suspended_reason"], resumed["suspended_at"]) == (None, None)
    _until(lambda: client.post(f"{orders}/writes", json=upsert({"id": 1})).status_code == 202)


def _until_refused(client: httpx2.Client, orders: str) -> None:
    _until(lambda: client.post(f"{orders}/writes", json=upsert({"id": 1})).status_code == 403)


def _until(done: Callable[[], bool]) -> None:
    """Another process hears of a change within milliseconds."""
    assert any(done() for _ in range(500))


@pytest.mark.parametrize("state", ["deleting", "deleted"])
def test_state_of_a_deletion_cannot_be_set(state, operator, new_tenant):
    tenant, client = new_tenant()
    path = f"/tenants/{tenant['id']}"
    members = problem(operator.patch(path, json={"state": state}), 400, "invalid-request")
    assert [error["pointer"] for error in members["errors"]] == ["/state"]
    assert operator.get(path).json()["state"] == "active"
    assert client.post("/datasets", json=ORDERS).status_code == 201


def test_key_is_made_listed_and_revoked_by_its_tenant(new_tenant, service):
    _, client = new_tenant()
    expires_at = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    grants = [{"datasets": "orders_*", "scopes": ["read"]}, {"datasets": "raw"}]
    body = {"name": "loader", "scopes": ["write", "read"], "grants": grants, "expires_at": expires_at}
    answer = client.post("/keys", json=body)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    made = answer.json()
    assert made["scopes"] == ["read", "write"]
    assert made["created_by"] == client.get("/me").json()["key"]["id"]
    seen = client.get(answer.headers["location"]).json()
    assert seen == {name: fact for name, fact in made.items() if name != "api_key"}
    listing = client.get("/keys")
    assert [each["name"] for each in listing.json()["items"]] == ["loader", "first"]
    assert "hw_" not in listing.text
    with service.client(made["api_key"]) as loader:
        identity = loader.get("/me").json()
        assert identity["grants"] == [grants[0], {"datasets": "raw", "scopes": []}]
        assert loader.post("/datasets", json=ORDERS | {"name": "raw"}).status_code == 201
        problem(loader.post("/datasets", json=ORDERS | {"name": "orders_1"}), 403, "forbidden")
        assert client.delete(answer.headers["location"]).status_code == 204
        assert loader.get("/me").status_code == 401
    assert client.delete(answer.headers["location"]).status_code == 204
    assert client.get(answer.headers["location"]).json()["revoked_at"] is not None


def test_operator_makes_keys_of_a_tenant(operator, new_tenant, service):
    tenant, _ = new_tenant()
    path = f"/tenants/{tenant['name']}/keys"
    answer = operator.post(path, json={"name": "reader", "scopes": ["read"]})
    made = answer.json()
    with service.client(made["api_key"]) as reader:
        assert reader.get("/me").json()["tenant"]["id"] == tenant["id"]
        assert [each["name"] for each in operator.get(path).json()["items"]] == ["reader", "first"]
        assert operator.get(answer.headers["location"]).json()["name"] == "reader"
        assert operator.delete(answer.headers["location"]).status_code == 204
        _until(lambda: reader.get("/me").status_code == 401)
    problem(operator.post("/tenants/nobody/keys", json={"name": "k", "scopes": ["read"]}), 404, "not-found")


def test_key_gives_no_more_than_it_has(new_tenant, service):
    _, client = new_tenant()
    answer = client.post("/keys", json={"name": "k", "scopes": ["operate"]})
    assert problem(answer, 403, "forbidden")["required_scope"] == "operate"
    manager = client.post("/keys", json={"name": "m", "scopes": ["manage"]}).json()["api_key"]
    with service.client(manager) as limited:
        problem(limited.post("/keys", json={"name": "k", "scopes": ["manage", "read"]}), 403, "forbidden")
        assert limited.post("/keys", json={"name": "k", "scopes": ["manage"]}).status_code == 201


def test_key_of_a_limited_key_is_limited_as_much(operator, new_tenant, service):
    tenant, _ = new_tenant()
    limits = {"expires_at": "2098-01-01T00:00:00Z", "requests_per_second": 50}
    body = {"name": "k", "scopes": ["manage"]}
    maker = operator.post(f"/tenants/{tenant['id']}/keys", json=body | limits).json()["api_key"]
    with service.client(maker) as limited:
        inherited = limited.post("/keys", json=body).json()
        assert limits.items() <= inherited.items()
        less = {"expires_at": "2097-01-01T00:00:00Z", "requests_per_second": 49}
        assert less.items() <= limited.post("/keys", json=body | less).json().items()
        assert limited.post("/keys", json=body | limits).status_code == 201
        for more in ({"expires_at": "2098-01-01T00:00:01Z"}, {"requests_per_second": 51}):
            refused = problem(limited.post("/keys", json=body | more), 403, "forbidden")
            assert next(iter(more)) in refused["detail"]
    with service.client(inherited["api_key"]) as third:
        assert limits.items() <= third.post("/keys", json=body).json().items()


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["admin"]}, "/scopes/0"),
        ({"grants": []}, "/grants"),
        ({"grants": [{"datasets": "a?"}]}, "/grants/0/datasets"),
        ({"grants": [{"datasets": "a\n"}]}, "/grants/0/datasets"),
        ({"grants": [{"datasets": "a" * 256}]}, "/grants/0/datasets"),
        ({"grants": [{"datasets": "a", "scopes": ["manage"]}]}, "/grants/0/scopes"),
        ({"grants": [{"datasets": "a"}] * 101}, "/grants"),
        ({"grants": [{"datasets": "a", "rows": "x = 1"}]}, "/grants/0/rows"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "2099-01-01T00:00:00"}, "/expires_at"),
        ({"name": "\0"}, "/name"),
    ],
)
def test_key_that_is_not_valid_is_refused_with_a_pointer(client, members, pointer):
    answer = client.post("/keys", json={"name": "k", "scopes": ["read"], **members})
    assert problem(answer, 400, "invalid-request")["errors"][0]["pointer"] == pointer


def test_name_of_a_tenant_does_not_end_with_a_newline(operator):
    answer = operator.post("/tenants", json={"name": "acme\n"})
    assert problem(answer, 400, "invalid-request")["errors"][0]["pointer"] == "/name"


def test_operate_is_not_limited_to_datasets(client):
    body = {"name": "k", "scopes": ["operate"], "grants": [{"datasets": "*"}]}
    assert (
        problem(client.post("/keys", json=body), 400, "invalid-request")["errors"][0]["pointer"] == "/grants"
    )


def test_deployment_without_the_login_names_the_missing_setting() -> None:
    missing = Administration(store=None, on_change=lambda _: None)
    for ask in (
        lambda: missing.tenants(page_size=1, page_token=None),
        lambda: missing.tenant("acme"),
        lambda: missing.keys(PRINCIPAL, None, page_size=1, page_token=None),
        lambda: missing.create_key(PRINCIPAL, None, NewKey(name="", scopes=())),
    ):
        with pytest.raises(AdministrationUnavailable, match="HEADWATER_ADMIN_DATABASE_URL") as refusal:
            ask()
        assert refusal.value.facts == {"setting": "HEADWATER_ADMIN_DATABASE_URL"}
        assert status_of(refusal.value.code) == 501
