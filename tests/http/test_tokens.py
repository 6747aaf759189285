"""Tokens of an OpenID Connect issuer over HTTP, beside API keys."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import msgspec
import pytest

from app.access.tenants.values import TenantChange, TenantState
from app.features.objects.service.keys import table_key
from app.features.objects.values import VendedKey
from app.infra.identifiers import new_id
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http import ORDERS, problem, upsert
from tests.support.issuer import LocalIssuer, private_key, running_issuer, signed
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for
from tests.support.tables_in_s3 import TableClient, error_code

CHALLENGE = 'Bearer realm="headwater", error="invalid_token"'


class World:
    """A service that accepts tokens of issuers: one whose tokens name the tenant, and one that is slow."""

    def __init__(self, service: Service, issuer: LocalIssuer, slow: LocalIssuer) -> None:
        self.service = service
        self.issuer = issuer
        self.slow = slow
        self.tenant = f"acme-{new_id()[-12:]}-x"
        self.tenant_id = service.tenants.add_tenant(self.tenant)

    def token(self, **claims: Any) -> str:
        return self.issuer.token(**{"tenant": self.tenant, "scope": "read write manage", **claims})


@pytest.fixture(scope="module")
def serving(
    postgres: TestServer, redis: EmbeddedValkey
) -> Iterator[tuple[Service, LocalIssuer, LocalIssuer]]:
    with ExitStack() as stack:
        issuer, slow = (stack.enter_context(running_issuer()) for _ in range(2))
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="headwater-tests-")))
        file = directory / "issuers.json"
        file.write_text(json.dumps([issuer.entry(), slow.entry(grants_claim="datasets", operate=True)]))
        name = stack.enter_context(postgres.fresh_database())
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        settings = settings_for(*urls, directory, oidc_issuers=str(file))
        yield stack.enter_context(running_service(settings)), issuer, slow


@pytest.fixture
def world(serving: tuple[Service, LocalIssuer, LocalIssuer]) -> World:
    return World(*serving)


@pytest.fixture
def client(world: World) -> Iterator[Callable[[str], httpx2.Client]]:
    """Makes clients with a credential."""
    with ExitStack() as stack:
        yield lambda credential: stack.enter_context(world.service.client(credential))


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_token_writes_and_the_timeline_shows_its_subject(
    world: World, client: Callable[[str], httpx2.Client]
) -> None:
    ada = client(world.token(sub="ada@acme.example"))
    identity = ada.get("/me").json()
    expires_at = identity.pop("expires_at")
    assert expires_at.endswith("Z")
    assert identity == {
        "tenant": {"id": world.tenant_id, "name": world.tenant},
        "key": None,
        "subject": "ada@acme.example",
        "issuer": world.issuer.url,
        "scopes": ["manage", "read", "write"],
        "grants": None,
    }
    orders = ada.post("/datasets", json=ORDERS).headers["location"]
    job = ada.post(f"{orders}/writes", json=upsert({"id": 1})).json()
    [written] = ada.get(f"{orders}/timeline").json()["items"]
    assert (written["actor"], written["actor_name"]) == (job["actor"], "ada@acme.example")
    made = ada.post("/keys", json={"name": "loader", "scopes": ["read"]}).json()
    assert made["created_by"] == job["actor"]
    key = client(made["api_key"])
    identity = key.get("/me").json()
    assert (identity["key"]["name"], identity["subject"], identity["issuer"]) == ("loader", None, None)
    assert key.get(orders).status_code == 200


def test_scopes_and_grants_of_a_token_are_enforced(
    world: World, client: Callable[[str], httpx2.Client]
) -> None:
    reader, admin = client(world.token(scope="read profile")), client(world.token())
    assert admin.post("/datasets", json=ORDERS).status_code == 201
    assert reader.get("/datasets/orders").status_code == 200
    problem(reader.post("/datasets/orders/writes", json=upsert({"id": 1})), 403, "forbidden")
    problem(client(world.token(scope="read operate")).get("/tenants"), 403, "forbidden")
    stated = {"tenant": world.tenant, "scope": "read operate"}
    granted = client(world.slow.token(**stated, datasets=["raw_*"]))
    problem(granted.get("/datasets/orders"), 404, "not-found")
    assert granted.get("/datasets").json()["items"] == []
    problem(granted.get("/tenants"), 403, "forbidden")


def test_token_reaches_only_the_tenant_that_it_states(
    world: World, client: Callable[[str], httpx2.Client]
) -> None:
    assert client(world.token()).post("/datasets", json=ORDERS).status_code == 201
    other = f"other-{new_id()[-12:]}-x"
    world.service.tenants.add_tenant(other)
    problem(client(world.token(tenant=other)).get("/datasets/orders"), 404, "not-found")
    for missing in (new_id(), "no-such-tenant"):
        refused = client(world.token(tenant=missing)).get("/me")
        assert problem(refused, 401, "unauthorized")["reason"] == "tenant"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [({"exp": 1_000}, "expired"), ({"aud": "other"}, "audience"), ({"iss": "https://x.example"}, "issuer")],
    ids=str,
)
def test_refused_token_gets_the_check_and_a_challenge(
    world: World, client: Callable[[str], httpx2.Client], claims: dict[str, Any], reason: str
) -> None:
    refused = client(world.token(**claims)).get("/me")
    assert problem(refused, 401, "unauthorized")["reason"] == reason
    assert refused.headers["www-authenticate"] == CHALLENGE
    assert world.issuer.url not in refused.text


def test_oversized_and_malformed_credentials_are_refused(
    world: World, client: Callable[[str], httpx2.Client]
) -> None:
    for credential in ("a.b.c", "..", "x" * 100, "a.b.c.d.e", world.token(padding="x" * 8_192)):
        problem(client(credential).get("/me"), 401, "unauthorized")


def test_token_expires_and_its_tenant_is_suspended_at_once(
    world: World, client: Callable[[str], httpx2.Client]
) -> None:
    token = client(world.token())
    orders = token.post("/datasets", json=ORDERS).headers["location"]
    write = upsert({"id": 1})
    assert token.post(f"{orders}/writes", json=write).status_code == 202
    world.service.tenants.change(world.tenant_id, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    until(lambda: token.post(f"{orders}/writes", json=write).status_code == 403)
    problem(token.post(f"{orders}/writes", json=write), 403, "tenant-suspended")
    world.service.tenants.change(world.tenant_id, TenantChange(state=TenantState.ACTIVE))
    until(lambda: token.post(f"{orders}/writes", json=write).status_code == 202)
    # The leeway is 30 seconds.
    brief = client(world.token(exp=int(time.time()) - 26))
    assert brief.get("/me").status_code == 200
    until(lambda: brief.get("/me").status_code == 401)
    assert problem(brief.get("/me"), 401, "unauthorized")["reason"] == "expired"


def test_stream_of_a_token_ends_when_the_token_expires(
    world: World, client: Callable[[str], httpx2.Client]
) -> None:
    orders = client(world.token()).post("/datasets", json=ORDERS).headers["location"]
    # The leeway is 30 seconds.
    brief = client(world.token(exp=int(time.time()) - 27))
    with brief.stream("GET", f"{orders}/changes/events", params={"since": "now"}) as stream:
        received = "".join(stream.iter_text())
    position, last, rest = received.split("\n\n")
    assert (position, last.startswith("event: error\ndata: "), rest) == ("id: 0", True, "")
    members = json.loads(last.split("data: ", 1)[1])
    assert (members["type"], members["reason"]) == ("/problems/unauthorized", "expired")


def test_issuer_that_does_not_answer_delays_no_other_credential(
    world: World, client: Callable[[str], httpx2.Client]
) -> None:
    key = world.service.tenants.make_key(world.tenant_id, ["read"]).api_key
    any_client = client(key)

    def status(credential: str) -> int:
        return any_client.get("/me", headers={"Authorization": f"Bearer {credential}"}).status_code

    # Tokens of a key that is not known have the keys read.
    unknown = [
        signed(world.slow.claims(sub=f"subject {number}"), private_key("RS256", 1), kid="unknown")
        for number in range(60)
    ]
    assert status(world.slow.token(tenant=world.tenant, datasets=["*"])) == 200
    world.slow.answering.clear()
    world.slow.gets.clear()
    with ThreadPoolExecutor(len(unknown)) as pool:
        waiting = [pool.submit(status, token) for token in unknown]
        until(lambda: bool(world.slow.gets))
        assert [status(each) for each in (key, world.token(), world.token(sub="new"))] == [200] * 3
        assert not any(each.done() for each in waiting)
        world.slow.answering.set()
        assert {each.result() for each in waiting} == {401}
    assert world.slow.gets.count("/keys") == 1


def test_key_for_a_table_ends_with_the_token_that_it_was_made_with(
    world: World, client: Callable[[str], httpx2.Client]
) -> None:
    ends = int(time.time()) + 120
    ada = client(world.token(sub="ada@acme.example", exp=ends))
    dataset = ada.post("/datasets", json=ORDERS).json()
    ada.post("/datasets/orders/writes", json=upsert({"id": 1}))
    world.service.work()
    loaded = ada.get("/iceberg/v1/v3/namespaces/headwater/tables/orders")
    assert loaded.status_code == 200, loaded.text
    config = loaded.json()["config"]
    assert int(config["s3.session-token-expires-at-ms"]) == ends * 1_000
    key = VendedKey(
        access_key_id=config["s3.access-key-id"],
        secret_access_key=config["s3.secret-access-key"],
        session_token=config["s3.session-token"],
        expires_at=datetime.fromtimestamp(ends, UTC),
    )
    base = f"{dataset['id']}/v3/"
    table = TableClient(url=world.service.url, key=key, base=base)
    path = loaded.json()["metadata-location"].partition(base)[2]
    assert table.get(path).json()["current-snapshot-id"] == 1
    # Another end is another key, whose secret the client does not know.
    later = msgspec.structs.replace(table_key(key.access_key_id), expires_at=ends + 1).access_key_id
    changed = msgspec.structs.replace(key, access_key_id=later, session_token=f"{later}.t")
    answer = TableClient(url=world.service.url, key=changed, base=base).get(path)
    assert error_code(answer) == "SignatureDoesNotMatch"
