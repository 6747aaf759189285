"""Requests that a key, its signature or its owner does not permit, and clients that request too much."""

from __future__ import annotations

import os
import socket
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

import httpx2
import msgspec
import pytest

from app.access.errors import Forbidden
from app.access.tenants.quotas import Quotas
from app.access.tenants.values import ActorKind, Grant, KeyScope, TenantChange, TenantState
from app.features.objects.compose import table_keys
from app.features.objects.errors import TableKeyRefused
from app.features.objects.handlers import streams
from app.features.objects.ports import ServedTable
from app.features.objects.repository.secrets import TableKeySecretStore
from app.features.objects.service.keys import TableKey, table_key
from app.features.objects.service.objects import TableObjects
from app.features.objects.values import BUCKET, SHARE, VARIANTS
from app.infra.identifiers import new_id
from app.kernel.format.errors import RestrictedGrant
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess, access_digest
from tests.features.objects.conftest import PUBLIC_HOST, World
from tests.support.http import ORDERS, TLS, upsert
from tests.support.tables_in_s3 import NAMESPACE, KnownContent, TableClient, error_code, principal_of
from tests.support.waiting import until

OBJECT = "notes/m.json"


@pytest.fixture
def table(world: World) -> TableClient:
    world.tree.contents["m.json"] = KnownContent(b"content")
    return world.table()


def refused(answer: httpx2.Response, code: str, status: int = 403) -> bool:
    """Whether the request got this error, and nothing of the object."""
    assert b"content<" not in answer.content
    return (answer.status_code, error_code(answer)) == (status, code)


def eventually_refused(table: TableClient, code: str) -> None:
    """Requests with the key are refused within the time in which every process knows of a change."""
    until(lambda: table.get(OBJECT).status_code == 403, "the refusal of the key")
    assert refused(table.get(OBJECT), code)


def with_key(table: TableClient, **changes: object) -> TableClient:
    """The client with another access key id, and the secret that it had."""
    other = msgspec.structs.replace(table_key(table.key.access_key_id), **changes)
    key = msgspec.structs.replace(table.key, access_key_id=other.access_key_id)
    return TableClient(url=table.url, key=msgspec.structs.replace(key, session_token=None), base=table.base)


def test_request_needs_a_signature(table: TableClient, world: World) -> None:
    url = f"{table.url}/{BUCKET}/{table.base}{OBJECT}"
    for headers in (
        {},
        {"Authorization": f"Bearer {world.api_key}"},
        {"Authorization": "AWS4-HMAC-SHA256 Credential=x"},
        {"Authorization": f"AWS {table.key.access_key_id}:{table.key.secret_access_key}"},
    ):
        with httpx2.Client(trust_env=False, verify=TLS) as client:
            assert refused(client.get(url, headers=headers), "AccessDenied")


def test_vended_key_is_no_bearer_credential(table: TableClient) -> None:
    for text in (table.key.access_key_id, table.key.secret_access_key, str(table.key.session_token)):
        answer = httpx2.get(
            f"{table.url}/datasets", headers={"Authorization": f"Bearer {text}"}, trust_env=False
        )
        assert answer.status_code == 401


def test_wrong_secret_and_changed_keys_are_refused(table: TableClient) -> None:
    assert table.get(OBJECT).status_code == 200
    assert table.get(OBJECT, link=True).status_code == 200
    assert refused(table.get(OBJECT, secret="x" * 43), "SignatureDoesNotMatch")
    later = table_key(table.key.access_key_id).expires_at + 3600
    assert refused(with_key(table, expires_at=later).get(OBJECT), "SignatureDoesNotMatch")
    assert refused(with_key(table, actor_id=new_id()).get(OBJECT), "SignatureDoesNotMatch")
    assert refused(with_key(table, variant="v2").get(OBJECT), "SignatureDoesNotMatch")
    assert refused(with_key(table, generation=77).get(OBJECT), "InvalidAccessKeyId")
    other = msgspec.structs.replace(table.key, access_key_id="AKIAIOSFODNN7EXAMPLE")
    foreign = TableClient(url=table.url, key=other, base=table.base)
    assert refused(foreign.get(OBJECT), "InvalidAccessKeyId")


def test_session_token_is_that_of_the_key(table: TableClient) -> None:
    other = msgspec.structs.replace(table.key, session_token="other")
    assert refused(TableClient(url=table.url, key=other, base=table.base).get(OBJECT), "InvalidToken")
    none = msgspec.structs.replace(table.key, session_token=None)
    assert TableClient(url=table.url, key=none, base=table.base).get(OBJECT).status_code == 200


def test_signature_covers_method_path_query_and_headers(table: TableClient, world: World) -> None:
    world.tree.contents["other"] = KnownContent(b"content")
    signed = table.signed("GET", f"/{table.base}{OBJECT}", {"Range": "bytes=0-1"})
    with httpx2.Client(trust_env=False, verify=TLS) as client:
        for method, url, headers in (
            ("HEAD", signed.url, {}),
            ("GET", signed.url.replace(OBJECT, "notes/other"), {}),
            ("GET", signed.url + "?x-id=1", {}),
            ("GET", signed.url, {"Range": "bytes=0-3"}),
            ("GET", signed.url, {"x-amz-date": "20200101T000000Z"}),
            ("GET", signed.url, {"x-amz-extra": "1"}),
            ("GET", signed.url, {"Host": "elsewhere:1"}),
        ):
            answer = client.request(method, url, headers={**dict(signed.headers.items()), **headers})
            assert answer.status_code == 403, (method, url, headers)


@pytest.mark.parametrize(
    ("host", "status"), [(PUBLIC_HOST, 200), (f"{PUBLIC_HOST}:443", 403), ("elsewhere.example.com", 403)]
)
def test_client_may_have_signed_the_public_host(table: TableClient, host: str, status: int) -> None:
    signed = table.signed("GET", f"/{table.base}{OBJECT}", host=host)
    # A proxy sends the name of this service instead.
    headers = {**dict(signed.headers.items()), "Host": urlsplit(table.url).netloc}
    with httpx2.Client(trust_env=False, verify=TLS) as client:
        assert client.get(signed.url, headers=headers).status_code == status


@pytest.mark.parametrize("minutes", [-16, 16])
def test_clock_of_the_client_may_be_off_by_fifteen_minutes(table: TableClient, minutes: int) -> None:
    now = datetime.now(UTC)
    assert refused(table.get(OBJECT, at=now + timedelta(minutes=minutes)), "RequestTimeTooSkewed")
    near = now + timedelta(minutes=minutes - (1 if minutes > 0 else -2))
    assert table.get(OBJECT, at=near).status_code == 200


def test_link_ends(table: TableClient) -> None:
    assert table.get(OBJECT, link=True, at=datetime.now(UTC) - timedelta(minutes=50)).status_code == 200
    assert refused(table.get(OBJECT, link=True, at=datetime.now(UTC) - timedelta(minutes=61)), "AccessDenied")


def test_unsigned_bodies_are_accepted_and_signed_pieces_are_not(table: TableClient) -> None:
    assert table.get(OBJECT, body_hash="UNSIGNED-PAYLOAD").status_code == 200
    for text in ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "0" * 64):
        assert refused(table.get(OBJECT, body_hash=text), "InvalidArgument", 400)


def test_expired_key_is_refused_so_that_clients_get_another(table: TableClient, world: World) -> None:
    principal = principal_of(world.service, world.api_key)
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "orders")
    past = datetime.now(UTC) - timedelta(hours=1, seconds=1)
    key = table_keys(world.service.platform).issue(principal, dataset, "v3", past)
    assert refused(TableClient(url=table.url, key=key, base=table.base).get(OBJECT), "ExpiredToken")


def test_key_ends_with_the_api_key_that_it_was_made_with(world: World) -> None:
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=3)
    assert world.table(world.key(expires_at=ends)).key.expires_at == ends


def test_key_reaches_no_other_table(table: TableClient, world: World) -> None:
    assert world.client.post("/datasets", json={**ORDERS, "name": "others"}).status_code == 201
    other = world.table(dataset="others")
    for base in (other.base, table.base.replace("v3", "v2"), f"{new_id()}/v3/"):
        answer = TableClient(url=table.url, key=table.key, base=base).get(OBJECT)
        assert refused(answer, "AccessDenied")
    for prefix in ("", "a", other.base, table.base[:20]):
        answer = table.send("GET", f"?list-type=2&prefix={prefix.replace('/', '%2F')}")
        assert refused(answer, "AccessDenied")


def test_key_of_a_dataset_that_was_deleted_finds_nothing(table: TableClient, world: World) -> None:
    tag = world.client.get("/datasets/orders").headers["etag"]
    assert world.client.delete("/datasets/orders", headers={"If-Match": tag}).status_code == 204
    assert refused(table.get(OBJECT), "NoSuchKey", 404)


def test_revoked_key_ends_keys_that_were_made_with_it(world: World, table: TableClient) -> None:
    made = world.service.tenants.make_key(world.tenant_id, [KeyScope.READ.value])
    mine = world.table(made.api_key)
    assert mine.get(OBJECT).status_code == 200
    assert world.client.delete(f"/keys/{made.key_id}").status_code == 204
    eventually_refused(mine, "AccessDenied")
    assert table.get(OBJECT).status_code == 200


def test_grant_is_checked_with_each_request(world: World, table: TableClient) -> None:
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "orders")
    principal = principal_of(world.service, world.api_key)
    objects, key = TableObjects(trees={}), table_key(table.key.access_key_id)
    assert objects.check_key(key, principal, dataset) == ServedTable(
        dataset=dataset, variant="v3", access=EVERYTHING
    )
    for grants in (
        (),
        (Grant(datasets="others"),),
        (Grant(datasets="orders", scopes=(KeyScope.WRITE,)),),
    ):
        with pytest.raises(Forbidden):
            objects.check_key(key, msgspec.structs.replace(principal, grants=grants), dataset)


PARTS = [Grant(datasets="orders", where="id > 1"), Grant(datasets="orders", mask=("note",))]


@pytest.mark.parametrize("grant", PARTS)
def test_stored_file_is_hidden_from_a_key_that_sees_a_part(world: World, grant: Grant) -> None:
    world.client.post("/datasets/orders/writes", json=upsert({"id": 1, "note": "a"}))
    world.service.work()
    whole, part = world.table(), world.table(world.key(grants=(grant,)))
    [entry] = ET.fromstring(listing(whole).content).findall(f"{NAMESPACE}Contents")
    path = str(entry.findtext(f"{NAMESPACE}Key")).removeprefix(whole.base)
    assert whole.get(path).status_code == 200
    assert refused(part.get(path), "NoSuchKey", 404)
    assert part.get(OBJECT).status_code == 404
    assert b"Contents" not in listing(part).content


def listing(table: TableClient) -> httpx2.Response:
    """The listing of the data files."""
    answer = table.send("GET", f"?list-type=2&prefix={quote(table.base + 'data/', safe='')}")
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("before", [None, *PARTS])
@pytest.mark.parametrize("after", [Grant(datasets="orders"), *PARTS])
def test_key_ends_when_what_its_owner_sees_changes(world: World, before: Grant | None, after: Grant) -> None:
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "orders")
    principal = principal_of(world.service, world.api_key)
    owner = msgspec.structs.replace(principal, grants=None if before is None else (before,))
    vended = table_keys(world.service.platform).issue(owner, dataset, "v3", datetime.now(UTC))
    key = table_key(vended.access_key_id)
    objects = TableObjects(trees={})
    assert objects.check_key(key, owner, dataset).access == owner.access("orders")
    changed = msgspec.structs.replace(principal, grants=(after,))
    if owner.access("orders") == changed.access("orders"):
        assert objects.check_key(key, changed, dataset).access == changed.access("orders")
    else:
        with pytest.raises(TableKeyRefused):
            objects.check_key(key, changed, dataset)


def test_token_that_sees_a_part_gets_no_key(world: World) -> None:
    dataset = world.service.platform.stores.catalog.get(world.tenant_id, "orders")
    owner = msgspec.structs.replace(principal_of(world.service, world.api_key), kind=ActorKind.TOKEN)
    keys = table_keys(world.service.platform)
    assert table_key(keys.issue(owner, dataset, "v3", datetime.now(UTC)).access_key_id).actor.token_ends
    for grant in PARTS:
        part = msgspec.structs.replace(owner, grants=(grant,))
        with pytest.raises(RestrictedGrant):
            keys.issue(part, dataset, "v3", datetime.now(UTC))


# A session is no actor: its principal is that of its key or token.
@pytest.mark.parametrize("kind", [kind for kind in ActorKind if kind is not ActorKind.SESSION])
@pytest.mark.parametrize("variant", [*VARIANTS, SHARE])
def test_id_of_a_key_states_what_it_is_for(kind: ActorKind, variant: str) -> None:
    key = TableKey(
        generation=2**32 - 1,
        variant=variant,
        expires_at=1_800_000_000,
        tenant_id=new_id(),
        dataset_id=new_id(),
        actor_id=new_id(),
        kind=kind,
        name_digest=b"digest-1",
        access=access_digest(RowAccess(where=("id > 1",))),
    )
    assert len(key.access_key_id) <= 128
    assert "/" not in key.access_key_id
    assert table_key(key.access_key_id) == key
    assert key.actor.kind is kind


def test_keys_of_other_versions_are_refused(table: TableClient) -> None:
    packed = urlsafe_b64decode(table.key.access_key_id.removeprefix("HW"))
    # Those of version 1 were shorter by 8 bytes.
    for other in (b"\1" + packed[1:-8], b"\1" + packed[1:], b"\3" + packed[1:], b"\2\7" + packed[2:]):
        text = "HW" + urlsafe_b64encode(other).decode().rstrip("=")
        foreign = msgspec.structs.replace(table.key, access_key_id=text, session_token=None)
        client = TableClient(url=table.url, key=foreign, base=table.base)
        assert refused(client.get(OBJECT), "InvalidAccessKeyId")


def test_suspended_tenant_reads(world: World, table: TableClient) -> None:
    suspension = TenantChange(state=TenantState.SUSPENDED, reason="unpaid")
    world.service.tenants.change(world.tenant_id, suspension)
    time.sleep(1)
    assert table.get(OBJECT).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "notes/../../x",
        "notes/%2e%2e/%2e%2e/x",
        "notes//m.json",
        "notes%2Fm.json",
        "notes/m.json%00",
        "notes/%FF",
        "notes/./m.json",
        "notes/m.json/",
        "notes/" + "x" * 5_000,
        "notes/..%2f..%2f..%2fetc%2fpasswd",
        "unknown/m.json",
        "notes",
    ],
)
def test_hostile_paths_reach_nothing(table: TableClient, path: str) -> None:
    parts = urlsplit(table.url)
    target = f"/{BUCKET}/{table.base}{path}"
    signed = table.signed("GET", f"/{table.base}{path}")
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in signed.headers.items())]
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split(b" ", 2)[1] in {b"403", b"404"}
    assert b"\r\n\r\ncontent" not in answer


def test_requests_beyond_the_rate_are_slowed_down(world: World, table: TableClient) -> None:
    quotas = Quotas(requests_per_second=1, object_requests_per_second=3)
    world.service.tenants.change(world.tenant_id, TenantChange(quotas=quotas))
    answers = list[httpx2.Response]()
    deadline = time.monotonic() + 30
    while not (answers and answers[-1].status_code == 503) and time.monotonic() < deadline:
        answers.append(table.get(OBJECT))
    assert refused(answers[-1], "SlowDown", 503)
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert {answer.status_code for answer in answers} == {200, 503}


def test_tenant_that_does_not_read_slows_only_itself(
    world: World, table: TableClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_FIRST_SECONDS_MAX", 0.5)
    world.tree.contents["large"] = KnownContent(os.urandom(8 * 1024 * 1024))
    world.tree.contents["small"] = KnownContent(b"content")
    unread = world.service.api.dependencies["object_streams"].unread
    parts, connections = urlsplit(table.url), []
    try:
        for _ in range(80):
            connection = socket.create_connection((parts.hostname, parts.port), timeout=20)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connections.append(connection)
            signed = table.signed("GET", f"/{table.base}notes/large")
            lines = [f"GET /{BUCKET}/{table.base}notes/large HTTP/1.1"]
            lines += [f"{name}: {value}" for name, value in signed.headers.items()]
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
        until(lambda: unread.of(world.tenant_id) >= streams.OBJECT_UNREAD_BYTES_MAX, "unread bytes")
        assert unread.of(world.tenant_id) <= streams.OBJECT_UNREAD_BYTES_MAX + streams.PIECE_BYTES
        other_id = world.service.tenants.add_tenant(f"tenant-{new_id()[-12:]}-x")
        api_key = world.service.tenants.make_key(other_id, [each.value for each in KeyScope]).api_key
        with world.service.client(api_key) as client:
            assert client.post("/datasets", json=ORDERS).status_code == 201
        assert world.table(api_key).get("notes/small").content == b"content"
        # Other requests of the tenant are not slowed down, either.
        assert world.client.get("/datasets").status_code == 200
    finally:
        for connection in connections:
            connection.close()
    until(lambda: not unread.of(world.tenant_id), "the end of all streams")


def test_key_of_the_secret_before_is_accepted_and_an_older_one_is_not(
    world: World, table: TableClient
) -> None:
    store = TableKeySecretStore(world.service.database)
    latest = store.rotate()
    assert sorted(store.read()) == [latest - 1, latest]
    assert table.get(OBJECT).status_code == 200
    assert world.table().get(OBJECT).status_code == 200
