"""Every operation of the OpenAPI document under every credential that must not get through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.access.tenants.values import Grant, KeyScope, TenantChange, TenantState, new_api_key
from app.infra.identifiers import new_id
from tests.support.exports import EVERY_MINUTE, ONCE
from tests.support.http import ORDERS, TLS, upsert
from tests.support.service import SCOPES, Service

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi" / "openapi.json").read_text(encoding="utf-8"))
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if operation.get("security") != []
}
ADMINISTRATION = ("/tenants", "/keys", "/usage", "/audit")
OF_DATA = {
    name: each
    for name, each in OPERATIONS.items()
    if "{" in each[1] and not each[1].startswith(ADMINISTRATION)
}
# What belongs to no dataset: keys with grants are refused.
OF_TENANTS = [name for name, each in OPERATIONS.items() if each[1].startswith(ADMINISTRATION)]
# What a suspended tenant may do beside reading.
ENDING = {
    "revoke_key",
    "cancel_job",
    "delete_webhook",
    "delete_source",
    "delete_share",
    "delete_recipient",
}
NOT_SENT = {"instance", "request_id"}


class World:
    """A tenant with one of each resource, and the keys that must not reach them."""

    def __init__(self, service: Service) -> None:
        self.service = service
        tenants = service.tenants
        self.name = f"matrix-{new_id()}"
        self.tenant = tenants.add_tenant(self.name)
        self.key = tenants.make_key(self.tenant, SCOPES).api_key
        self.other_tenant = tenants.add_tenant(f"other-{new_id()}")
        self.foreign = tenants.make_key(self.other_tenant, SCOPES).api_key
        revoked = tenants.make_key(self.tenant, SCOPES)
        tenants.revoke_key(self.tenant, revoked.key_id)
        ended = datetime.now(UTC) - timedelta(seconds=1)
        self.invalid = {
            "none": {},
            "malformed": {"Authorization": "Bearer hw_no"},
            "another scheme": {"Authorization": f"Basic {self.key}"},
            **{
                name: {"Authorization": f"Bearer {key}"}
                for name, key in {
                    "unknown": new_api_key(),
                    "revoked": revoked.api_key,
                    "expired": tenants.make_key(self.tenant, SCOPES, expires_at=ended).api_key,
                }.items()
            },
        }
        self.elsewhere = self.granted("elsewhere_*")
        self.scopeless = {
            scope: self.granted("*", *(each for each in self._of_data if each is not scope))
            for scope in self._of_data
        }
        self.lacking = {
            scopes: tenants.make_key(self.tenant, set(KeyScope) - scopes).api_key
            for scopes in {frozenset(scopes_of(name)) for name in OPERATIONS if scope_of(name)}
        }
        self.values = self._resources()

    _of_data = (KeyScope.READ, KeyScope.WRITE, KeyScope.MANAGE)

    def granted(self, pattern: str, *scopes: KeyScope) -> str:
        """A key with one grant: the scopes of the key, or those named."""
        grants = (Grant(datasets=pattern, scopes=scopes),)
        return self.service.tenants.make_key(self.tenant, self._of_data, grants=grants).api_key

    def _resources(self) -> dict[str, str]:
        """The values of path parameters."""
        with self.service.client(self.key) as client:

            def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
                answer = client.post(path, json=body)
                assert answer.is_success, answer.text
                members: dict[str, Any] = answer.json()
                return members

            dataset = post("/datasets", ORDERS)
            job = post("/datasets/orders/writes", upsert({"id": 1}))
            self.service.work()
            webhook = post("/webhooks", {"dataset": "orders", "url": "http://127.0.0.1:9/"})
            share = post("/shares", {"name": "sales", "datasets": [{"name": "orders"}]})
            recipient = post("/shares/sales/recipients", {"name": "acme"})
            view = post("/views", {"name": "orders_view", "sql": VIEW})
            incoming = self.service.settings.data_dir / "incoming"
            config = {"path": incoming.as_uri(), "format": "ndjson"}
            source = post(
                "/sources", {"name": "orders_in", "dataset": "orders", "kind": "files", "config": config}
            )
            post("/datasets", ORDERS | {"name": "elsewhere_1"})
            [part] = post("/datasets/orders/scans", {})["parts"]
            writes = [
                {"dataset": each, "operation": "upsert", "source": {"kind": "rows", "rows": [{"id": 2}]}}
                for each in ("orders", "elsewhere_1")
            ]
            return {
                "dataset": dataset["id"],
                "job": job["id"],
                "webhook": webhook["id"],
                "share": share["id"],
                "recipient": recipient["id"],
                "view": view["id"],
                "source": source["id"],
                "export": post("/datasets/orders/exports", ONCE)["id"],
                "transaction": post("/transactions", {"writes": writes})["id"],
                "tenant": self.tenant,
                "key": self.service.tenants.keys(self.tenant, page_size=1, page_token=None).items[0].id,
                "name": "name",
                "number": "1",
                "version": "1",
                "part": part["name"],
                "delivery": new_id(),
            }

    def send(self, name: str, headers: dict[str, str], values: dict[str, str]) -> httpx2.Response:
        """A valid request for the operation, with these values in its path."""
        method, path, operation = OPERATIONS[name]
        sent = {"If-Match": '"1"'} if method in ("PATCH", "PUT") else {}
        content = None
        for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
            examples = body.get("examples", {})
            content = json.dumps(_example(examples)) if examples else "x"
            sent["Content-Type"] = media_type
            break
        parameters = [_resolved(each) for each in operation.get("parameters", ())]
        query = {each["name"]: "1" for each in parameters if each["in"] == "query" and each["required"]}
        if name == "change_export":
            content = json.dumps({"state": "paused"})
        url = self.service.url + path.format_map(values)
        request = self.client.build_request(
            method, url, headers={**sent, **headers}, content=content, params=query
        )
        answer = self.client.send(request, stream=True)
        try:
            # Event streams have no end.
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                answer.read()
        finally:
            answer.close()
        return answer

    client: httpx2.Client


VIEW = "SELECT id, note FROM orders"


def _resolved(parameter: dict[str, Any]) -> dict[str, Any]:
    name = parameter.get("$ref", "").rsplit("/", 1)[-1]
    resolved: dict[str, Any] = DOCUMENT["components"]["parameters"][name] if name else parameter
    return resolved


def _example(examples: dict[str, Any]) -> Any:
    [example, *_] = examples.values()
    if "$ref" in example:
        example = DOCUMENT["components"]["examples"][example["$ref"].rsplit("/", 1)[-1]]
    return example["value"]


@pytest.fixture(scope="module")
def world(service: Service) -> Iterator[World]:
    world = World(service)
    with httpx2.Client(trust_env=False, verify=TLS, timeout=30) as world.client:
        yield world


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def body_of(answer: httpx2.Response, values: dict[str, str]) -> Any:
    """The problem without the path and the ids of the request."""
    if not answer.content:
        return None
    text = json.dumps({name: fact for name, fact in answer.json().items() if name not in NOT_SENT})
    for value in sorted(values.values(), key=len, reverse=True):
        if len(value) > len("orders"):
            text = text.replace(value, "…")
    return text


def scopes_of(name: str) -> list[KeyScope]:
    """The scopes of which the operation needs one."""
    return [KeyScope(each["api_key"][0]) for each in OPERATIONS[name][2].get("security", ())]


def scope_of(name: str) -> KeyScope | None:
    return next(iter(scopes_of(name)), None)


def test_every_operation_states_its_scope_and_two_need_none() -> None:
    assert {name for name in OPERATIONS if scope_of(name) is None} == {"create_sign_in_link", "get_identity"}
    for name, (_, _, operation) in OPERATIONS.items():
        if scopes := scopes_of(name):
            stated = " or ".join(f"`{scope.value}`" for scope in scopes)
            assert f"Needs the scope {stated}." in operation["description"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_invalid_credential_gets_401_whatever_is_wrong_with_it(world: World, name: str) -> None:
    for kind, headers in world.invalid.items():
        answer = world.send(name, headers, world.values)
        assert answer.status_code == 401, kind
        if answer.content:
            assert answer.json()["type"] == "/problems/unauthorized"
    bodies = {
        body_of(world.send(name, world.invalid[kind], world.values), {})
        for kind in ("malformed", "unknown", "revoked", "expired")
    }
    assert len(bodies) == 1


@pytest.mark.parametrize("name", [name for name in OPERATIONS if scope_of(name)])
def test_key_without_the_scope_gets_403(world: World, name: str) -> None:
    scope = scope_of(name)
    assert scope is not None
    for values in (world.values, missing(world)):
        answer = world.send(name, bearer(world.lacking[frozenset(scopes_of(name))]), values)
        assert answer.status_code == 403, answer.text
        if answer.content:
            assert answer.json()["required_scope"] == scope.value


def missing(world: World) -> dict[str, str]:
    """Values of the same form that name nothing."""
    return world.values | {name: new_id() for name, value in world.values.items() if len(value) == 36}


@pytest.mark.parametrize("name", [*OF_DATA, "get_key", "revoke_key"])
def test_resource_of_another_tenant_is_as_if_missing(world: World, name: str) -> None:
    absent = missing(world)
    hidden = world.send(name, bearer(world.foreign), world.values)
    answer = world.send(name, bearer(world.foreign), absent)
    assert (hidden.status_code, answer.status_code) == (404, 404), hidden.text
    assert body_of(hidden, world.values) == body_of(answer, absent)


@pytest.mark.parametrize("name", OF_DATA)
def test_dataset_that_is_not_granted_is_as_if_missing(world: World, name: str) -> None:
    absent = missing(world)
    hidden = world.send(name, bearer(world.elsewhere), world.values)
    answer = world.send(name, bearer(world.elsewhere), absent)
    assert (hidden.status_code, answer.status_code) == (404, 404), hidden.text
    assert body_of(hidden, world.values) == body_of(answer, absent)
    if "{dataset}" in OPERATIONS[name][1]:
        by_name = [
            world.send(name, bearer(world.elsewhere), world.values | {"dataset": each})
            for each in ("orders", "absent")
        ]
        assert [each.status_code for each in by_name] == [404, 404]


@pytest.mark.parametrize("name", OF_DATA)
def test_dataset_that_is_granted_without_the_scope_gets_403(world: World, name: str) -> None:
    scope = scope_of(name)
    assert scope is not None
    answer = world.send(name, bearer(world.scopeless[scope]), world.values)
    assert answer.status_code == 403, answer.text
    if answer.content:
        assert answer.json()["required_scope"] == scope.value


@pytest.fixture(scope="module")
def suspended(service: Service) -> Iterator[World]:
    """A suspended tenant with one of each resource."""
    world = World(service)
    service.tenants.change(world.tenant, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    with httpx2.Client(trust_env=False, verify=TLS, timeout=30) as world.client:
        # The process hears of the change within milliseconds.
        assert any(
            is_suspended(world.send("delete_dataset", bearer(world.key), missing(world))) for _ in range(500)
        )
        yield world


def is_suspended(answer: httpx2.Response) -> bool:
    return answer.status_code == 403 and answer.json()["type"] == "/problems/tenant-suspended"


@pytest.mark.parametrize("name", OPERATIONS)
def test_suspended_tenant_reads_and_ends_and_changes_nothing(suspended: World, name: str) -> None:
    method = OPERATIONS[name][0]
    if method in ("GET", "HEAD"):
        # Whatever was not made is missing, for a suspended tenant as for any other, and no key of a row is an id.
        answer = suspended.send(name, bearer(suspended.key), suspended.values)
        # No worker runs: the health of the service is 503.
        permitted = (200, 400, 404, 409, 422, *([503] if name == "get_service_health" else []))
        assert answer.status_code in permitted, answer.text
        return
    answer = suspended.send(name, bearer(suspended.key), missing(suspended))
    permitted = name in ENDING or scope_of(name) in (None, KeyScope.READ, KeyScope.OPERATE)
    assert is_suspended(answer) is not permitted, answer.text


def test_suspended_tenant_revokes_keys_cancels_jobs_and_deletes_webhooks(suspended: World) -> None:
    lost = suspended.service.tenants.make_key(suspended.tenant, SCOPES)
    with suspended.service.client(suspended.key) as client:
        keys = client.get("/keys").json()["items"]
        assert lost.key_id in {each["id"] for each in keys}
        assert client.delete(f"/keys/{lost.key_id}").status_code == 204
        assert client.get("/jobs", params={"state": "queued"}).json()["items"]
        for job in client.get("/jobs", params={"state": "queued"}).json()["items"]:
            assert client.post(f"/jobs/{job['id']}/cancel").json()["state"] == "cancelled"
        assert client.delete(f"/webhooks/{suspended.values['webhook']}").status_code == 204


@pytest.mark.parametrize("name", OF_TENANTS)
def test_key_with_grants_administers_nothing(world: World, name: str) -> None:
    grants = (Grant(datasets="*"),)
    key = world.service.tenants.make_key(world.tenant, KeyScope, grants=grants).api_key
    answer = world.send(name, bearer(key), world.values)
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")


def test_lists_contain_granted_resources_only(world: World) -> None:
    with world.service.client(world.elsewhere) as client:
        for path in ("/webhooks", "/views"):
            assert client.get(path).json() == {"items": [], "next_page_token": None}
        assert [each["name"] for each in client.get("/datasets").json()["items"]] == ["elsewhere_1"]
        [job] = client.get("/jobs").json()["items"]
        # The other write of its transaction is to a dataset that is not granted.
        assert client.get(f"/jobs/{job['id']}").status_code == 200
        assert client.post(f"/jobs/{job['id']}/cancel").status_code == 404
        assert client.get("/jobs", params={"dataset": "orders"}).status_code == 404
        assert client.get("/webhooks", params={"dataset": "orders"}).status_code == 404
    with world.service.client(world.granted("orders_*")) as client:
        assert [each["name"] for each in client.get("/datasets").json()["items"]] == ["orders_view"]
        assert [each["name"] for each in client.get("/views").json()["items"]] == ["orders_view"]
        assert {each["kind"] for each in client.get("/jobs").json()["items"]} == {"refresh"}
        assert client.get("/webhooks").json()["items"] == []
    with world.service.client(world.granted("orders")) as client:
        assert [each["name"] for each in client.get("/datasets").json()["items"]] == ["orders"]
        assert client.get("/views").json()["items"] == []
        assert {each["dataset"]["name"] for each in client.get("/webhooks").json()["items"]} == {"orders"}
        kinds = {each["kind"] for each in client.get("/jobs").json()["items"]}
        # Other tests of this module may have requested rounds of the source.
        assert kinds - {"source_round"} == {"write", "export"}


def test_lists_of_granted_resources_are_paged_without_gaps(world: World) -> None:
    with world.service.client(world.granted("*_*")) as client:
        names, token = [], None
        while True:
            query = {"page_size": 1} | ({} if token is None else {"page_token": token})
            page = client.get("/datasets", params=query).json()
            names += [each["name"] for each in page["items"]]
            token = page["next_page_token"]
            if token is None:
                break
    assert names == ["elsewhere_1", "orders_view"]


def test_datasets_named_in_a_body_have_to_be_granted(world: World) -> None:
    rows = {"operation": "upsert", "source": {"kind": "rows", "rows": [{"id": 3}]}}

    def writes(*names: str) -> dict[str, Any]:
        return {"writes": [{"dataset": name, **rows} for name in names]}

    def post(key: str, path: str, body: dict[str, Any]) -> httpx2.Response:
        return world.client.post(world.service.url + path, json=body, headers=bearer(key))

    hook = {"url": "http://127.0.0.1:9/"}
    for dataset in ("orders", "absent", world.values["dataset"]):
        assert post(world.elsewhere, "/webhooks", {"dataset": dataset, **hook}).status_code == 404
        assert post(world.elsewhere, "/transactions", writes("elsewhere_1", dataset)).status_code == 404
    texts = {
        post(
            world.elsewhere, "/views", {"name": "elsewhere_2", "sql": f"SELECT id FROM {name}"}
        ).text.replace(name, "…")
        for name in ("orders", "absent")
    }
    assert len(texts) == 1
    assert '"/problems/invalid-view"' in texts.pop()
    for path, body in (
        ("/datasets", ORDERS),
        ("/views", {"name": "mine", "sql": "SELECT id FROM elsewhere_1"}),
    ):
        assert post(world.elsewhere, path, body).status_code == 403
    renamed = world.client.patch(
        f"{world.service.url}/datasets/elsewhere_1",
        json={"name": "mine"},
        headers=bearer(world.elsewhere) | {"If-Match": '"0"'},
    )
    assert renamed.status_code == 403, renamed.text
    reader = world.granted("*", KeyScope.READ)
    assert post(reader, "/webhooks", {"dataset": "orders", **hook}).status_code == 403
    assert post(reader, "/transactions", writes("orders", "elsewhere_1")).status_code == 403
    assert post(reader, "/datasets/orders/exports", ONCE).status_code == 202
    assert post(reader, "/datasets/orders/exports", EVERY_MINUTE).status_code == 403
    writer = world.granted("*", KeyScope.WRITE)
    answer = post(writer, "/views", {"name": "unread", "sql": "SELECT id FROM orders"})
    assert (answer.status_code, answer.json()["required_scope"]) == (403, "read")


def test_reply_to_another_key_is_not_repeated_to_a_key_with_grants(world: World) -> None:
    body = {"dataset": "orders", "url": "http://127.0.0.1:9/"}
    answers = [
        world.client.post(
            f"{world.service.url}/webhooks", json=body, headers=bearer(key) | {"Idempotency-Key": "same"}
        )
        for key in (world.key, world.elsewhere)
    ]
    assert [answer.status_code for answer in answers] == [201, 404]
