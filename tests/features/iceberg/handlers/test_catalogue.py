"""The Iceberg catalogue over HTTP: configuration, names, who sees which table, tokens, and the form of errors."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from app.access.tenants.quotas import Quotas
from app.access.tenants.values import Grant, KeyScope, TenantChange, TenantState, new_api_key
from app.features.iceberg.service.loaded_tables import LoadedTables
from app.http import credential_cache
from app.infra.errors import Unavailable
from app.infra.identifiers import new_id
from tests.support.http import ORDERS, TLS
from tests.support.service import Service
from tests.support.waiting import until

ROOT = "/iceberg/v1"
TABLES = f"{ROOT}/v3/namespaces/headwater/tables"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def failure(answer: httpx2.Response, status: int, type_: str) -> str:
    """The message of the error that the answer must be, in the form of the protocol."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    members = answer.json()["error"]
    assert set(members) == {"message", "type", "code"}
    assert (members["type"], members["code"]) == (type_, status)
    message: str = members["message"]
    return message


class Tenant:
    """A tenant with datasets, and its keys."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.id = service.tenants.add_tenant(f"iceberg-{new_id()}")

    def key(self, *grants: Grant, scopes: tuple[KeyScope, ...] = (KeyScope.READ,)) -> Any:
        return self.service.tenants.make_key(self.id, scopes, grants=grants or None)

    def client(self, *grants: Grant, scopes: tuple[KeyScope, ...] = (KeyScope.READ,)) -> httpx2.Client:
        return self.service.client(self.key(*grants, scopes=scopes).api_key)

    def add(self, *names: str) -> None:
        with self.client(scopes=(KeyScope.WRITE,)) as client:
            for name in names:
                answer = client.post("/datasets", json=ORDERS | {"name": name})
                assert answer.status_code == 201, answer.text


@pytest.fixture
def tenant(service: Service) -> Tenant:
    return Tenant(service)


def names(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    identifiers = answer.json()["identifiers"]
    assert all(each["namespace"] == ["headwater"] for each in identifiers)
    return [each["name"] for each in identifiers]


@pytest.mark.parametrize(
    ("query", "prefix"), [({}, "v3"), ({"warehouse": "v3"}, "v3"), ({"warehouse": "v2"}, "v2")]
)
def test_configuration_names_the_prefix_and_the_reads(
    client: httpx2.Client, query: dict[str, str], prefix: str
):
    config = client.get(f"{ROOT}/config", params=query | {"of_a_later_release": "1"}).json()
    assert config["overrides"]["prefix"] == prefix
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}" in config["endpoints"]
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables" not in config["endpoints"]
    assert config["defaults"] == {}


def test_unknown_warehouse_does_not_exist(client: httpx2.Client):
    message = failure(client.get(f"{ROOT}/config?warehouse=v9"), 404, "NoSuchWarehouseException")
    assert "v3 and v2" in message


@pytest.mark.parametrize("variant", ["v3", "v2"])
def test_there_is_one_namespace(client: httpx2.Client, variant: str):
    path = f"{ROOT}/{variant}/namespaces"
    assert client.get(path).json() == {"namespaces": [["headwater"]]}
    assert client.get(f"{path}?parent=headwater").json() == {"namespaces": []}
    assert client.get(f"{path}/headwater").json()["namespace"] == ["headwater"]
    answer = client.head(f"{path}/headwater")
    assert (answer.status_code, answer.content, answer.headers.get("content-length")) == (204, b"", None)
    assert client.head(f"{path}/other").status_code == 404
    for missing in (
        f"{path}/other",
        f"{path}/other/tables",
        f"{path}?parent=other",
        f"{path}/headwater%1Finner",
    ):
        failure(client.get(missing), 404, "NoSuchNamespaceException")


def test_tables_are_listed_in_pages(tenant: Tenant):
    tenant.add("a", "b", "c")
    with tenant.client() as client:
        assert names(client.get(TABLES)) == ["a", "b", "c"]
        first = client.get(TABLES, params={"pageSize": 2, "pageToken": ""})
        assert names(first) == ["a", "b"]
        second = client.get(TABLES, params={"pageSize": 2, "pageToken": first.json()["next-page-token"]})
        assert names(second) == ["c"]
        assert "next-page-token" not in second.json()
        failure(client.get(TABLES, params={"pageToken": "nonsense"}), 400, "BadRequestException")
        failure(client.get(TABLES, params={"pageSize": 0}), 400, "BadRequestException")


def test_tables_are_listed_that_the_key_may_read(tenant: Tenant):
    tenant.add("whole", "filtered", "masked", "unreadable", "elsewhere")
    grants = (
        Grant(datasets="whole"),
        Grant(datasets="filtered", scopes=(KeyScope.READ,), where="id > 1"),
        Grant(datasets="masked", scopes=(KeyScope.READ,), mask=("note",)),
        Grant(datasets="unreadable", scopes=(KeyScope.WRITE,)),
    )
    with tenant.client(*grants, scopes=(KeyScope.READ, KeyScope.WRITE)) as client:
        assert names(client.get(TABLES)) == ["filtered", "masked", "whole"]


def test_no_view_is_listed(client: httpx2.Client):
    views = f"{ROOT}/v3/namespaces/headwater/views"
    assert names(client.get(views)) == []
    failure(client.get(f"{views}/any"), 404, "NoSuchViewException")


def test_suspended_tenant_reads(tenant: Tenant):
    tenant.add("a")
    tenant.service.tenants.change(tenant.id, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    with tenant.client() as client:
        assert names(client.get(TABLES)) == ["a"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "namespaces"),
        ("DELETE", "namespaces/headwater"),
        ("POST", "namespaces/headwater/properties"),
        ("POST", "namespaces/headwater/tables"),
        ("POST", "namespaces/headwater/tables/orders"),
        ("DELETE", "namespaces/headwater/tables/orders"),
        ("POST", "namespaces/headwater/register"),
        ("POST", "namespaces/headwater/views"),
        ("POST", "tables/rename"),
        ("POST", "transactions/commit"),
    ],
)
def test_writes_are_refused_with_advice(client: httpx2.Client, method: str, path: str):
    answer = client.request(method, f"{ROOT}/v3/{path}", json={})
    assert "POST /datasets/{dataset}/writes" in failure(answer, 406, "UnsupportedOperationException")


def test_errors_have_the_form_of_the_protocol(service: Service, tenant: Tenant):
    revoked = tenant.key()
    service.tenants.revoke_key(tenant.id, revoked.key_id)
    for headers in ({}, {"Authorization": "Bearer hw_no"}, {"Authorization": f"Bearer {revoked.api_key}"}):
        with httpx2.Client(base_url=service.url, headers=headers, trust_env=False, verify=TLS) as client:
            answer = client.get(f"{ROOT}/config")
            failure(answer, 401, "NotAuthorizedException")
            assert answer.headers["www-authenticate"].startswith("Bearer")
    with tenant.client(scopes=(KeyScope.WRITE,)) as client:
        assert "'read'" in failure(client.get(TABLES), 403, "ForbiddenException")
        failure(client.get(f"{ROOT}/nothing"), 404, "NotFoundException")


@pytest.fixture
def token(service: Service) -> Callable[..., httpx2.Response]:
    """Requests a token."""

    def request(form: dict[str, str], headers: dict[str, str] | None = None) -> httpx2.Response:
        with httpx2.Client(base_url=service.url, trust_env=False, verify=TLS) as client:
            return client.post(f"{ROOT}/oauth/tokens", data=form, headers=headers)

    return request


def test_key_is_exchanged_for_a_token(
    service: Service, tenant: Tenant, token: Callable[..., httpx2.Response]
):
    made = tenant.key()
    form = {"grant_type": "client_credentials", "client_id": made.key_id, "client_secret": made.api_key}
    basic = base64.b64encode(f"{made.key_id}:{made.api_key}".encode()).decode()
    requests = [
        token(form | {"scope": "catalog"}),
        # A client whose credential has no colon sends no id.
        token({name: text for name, text in form.items() if name != "client_id"}),
        token({"grant_type": "client_credentials"}, {"Authorization": f"Basic {basic}"}),
        token({"grant_type": EXCHANGE, "subject_token": made.api_key}),
    ]
    for answer in requests:
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        members = answer.json()
        assert members["token_type"] == "bearer"
        assert 0 < members["expires_in"] <= 3_600
        assert members["issued_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
        with service.client(members["access_token"]) as client:
            assert client.get(f"{ROOT}/config").status_code == 200


def test_token_requests_are_refused_in_the_form_of_oauth(
    tenant: Tenant, token: Callable[..., httpx2.Response]
):
    made, form = tenant.key(), {"grant_type": "client_credentials"}
    refusals = [
        (form | {"client_id": made.key_id, "client_secret": new_api_key()}, 401, "invalid_client"),
        (form | {"client_id": new_id(), "client_secret": made.api_key}, 401, "invalid_client"),
        (form | {"client_id": made.key_id, "client_secret": "other"}, 401, "invalid_client"),
        ({"grant_type": EXCHANGE, "subject_token": new_api_key()}, 401, "invalid_client"),
        ({"grant_type": "password", "client_id": "a", "client_secret": "b"}, 400, "unsupported_grant_type"),
        (form, 400, "invalid_request"),
        ({"grant_type": EXCHANGE}, 400, "invalid_request"),
    ]
    for request, status, error in refusals:
        answer = token(request)
        assert (answer.status_code, answer.json()["error"]) == (status, error)
        assert answer.json()["error_description"]
        assert made.api_key not in answer.text


def test_token_of_a_revoked_key_is_not_exchanged(
    service: Service, tenant: Tenant, token: Callable[..., httpx2.Response]
):
    made = tenant.key()
    service.tenants.revoke_key(tenant.id, made.key_id)
    answer = token({"grant_type": EXCHANGE, "subject_token": made.api_key})
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_unknown_secrets_are_limited_as_other_unknown_credentials(
    tenant: Tenant, token: Callable[..., httpx2.Response], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(credential_cache, "ADDRESS_LOOKUPS_MAX", 0)
    for form in (
        {"grant_type": "client_credentials", "client_secret": new_api_key()},
        {"grant_type": EXCHANGE, "subject_token": new_api_key()},
    ):
        answer = token(form)
        assert (answer.status_code, answer.json()["error"]) == (429, "temporarily_unavailable")
        assert int(answer.headers["retry-after"]) >= 1


def test_rates_and_outages_have_the_form_of_the_protocol(
    tenant: Tenant, service: Service, monkeypatch: pytest.MonkeyPatch
):
    tenant.add("a")

    def unavailable(*_: object) -> None:
        raise Unavailable("the database cannot be reached")

    with tenant.client() as client, monkeypatch.context() as patch:
        patch.setattr(LoadedTables, "load", unavailable)
        failure(client.get(f"{TABLES}/a"), 503, "ServiceUnavailableException")
    service.tenants.change(tenant.id, TenantChange(quotas=Quotas(requests_per_second=1)))
    with tenant.client() as client:
        until(lambda: client.get(f"{ROOT}/config").status_code == 429, "the limit of the rate")
        answer = client.get(f"{ROOT}/config")
        failure(answer, 429, "TooManyRequestsException")
        assert int(answer.headers["retry-after"]) >= 1


def test_dataset_shows_how_engines_read_it(client: httpx2.Client, orders: str):
    examples = {each["engine"]: each["code"] for each in client.get(orders).json()["read_with"]}
    assert f"ENDPOINT '{str(client.base_url).rstrip('/')}/iceberg'" in examples["DuckDB"]
    assert 'headwater."orders"' in examples["DuckDB"]


def test_key_that_sees_a_part_is_shown_how_engines_read_it(tenant: Tenant):
    tenant.add("sales")
    for grant in (Grant(datasets="sales"), Grant(datasets="sales", mask=("note",))):
        with tenant.client(grant) as reader:
            assert reader.get("/datasets/sales").json()["read_with"]


def test_table_of_an_unknown_namespace_is_a_missing_table(client: httpx2.Client):
    path = f"{ROOT}/v3/namespaces/headwater%1Forders/tables/files"
    failure(client.get(path), 404, "NoSuchTableException")
