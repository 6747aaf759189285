"""Who requested a job or an instant: the API key of the request, and none for what the service does by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from app.access.tenants.repository.credentials import CredentialStore
from tests.support.derived_views import LONG, long
from tests.support.exports import EVERY_MINUTE, pass_time
from tests.support.http import EVENTS, upsert
from tests.support.service import SCOPES, Service
from tests.support.view_computation import Row

Client = httpx2.Client


@pytest.fixture
def actor(client: Client, orders: str) -> str:
    """The id of the client's key, as the job of a write has it."""
    job = client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "first"})).json()
    assert job["actor"] is not None
    return str(job["actor"])


def test_requested_job_names_the_key_of_its_request(
    client: Client, orders: str, actor: str, service: Service, new_view: Callable[..., Row]
) -> None:
    ndjson = {"content-type": "application/x-ndjson"}
    raw = client.post(f"{orders}/writes", content=b'{"id": 2, "note": "b"}\n', headers=ndjson)
    bad = client.post(f"{orders}/writes?on_error=quarantine", content=b'{"id": "x"}\n', headers=ndjson)
    service.work()
    records = client.get(f"{orders}/quarantine").json()["items"]
    again = [{"id": records[0]["id"], "payload": '{"id": 9, "note": "c"}'}]
    client.post("/datasets", json=EVENTS)
    members = [
        {"dataset": "orders", **upsert({"id": 3, "note": "d"})},
        {"dataset": "events", "operation": "insert", "source": {"kind": "rows", "rows": [{"what": "x"}]}},
    ]
    export = client.post(f"{orders}/exports", json=EVERY_MINUTE)
    service.work()
    view = new_view("long", LONG, long)
    jobs = [
        raw.json(),
        bad.json(),
        client.post(f"{orders}/quarantine/redrives", json={"records": again}).json(),
        *client.post("/transactions", json={"writes": members}).json()["jobs"],
        client.post(f"{orders}/verifications").json(),
        client.post(f"{orders}/compactions").json(),
        client.get(export.json()["runs"][0]["links"]["job"]).json(),
        client.get(client.post(f"{export.headers['location']}/runs").json()["links"]["job"]).json(),
        client.post(view["links"]["refreshes"]).json(),
    ]
    assert [(job["kind"], job["actor"]) for job in jobs] == [(job["kind"], actor) for job in jobs]
    assert {job["kind"] for job in jobs} == {"write", "verify", "compaction", "export", "refresh"}


def test_job_started_by_the_service_has_no_actor(
    client: Client, orders: str, export: str, service: Service, new_view: Callable[..., Row]
) -> None:
    view = new_view("long", LONG, long)
    service.work()
    client.post(f"{orders}/writes", json=upsert({"id": 7, "note": "longer than two"}))
    service.work()
    refreshes: list[dict[str, Any]] = client.get(f"{view['links']['dataset']}/timeline").json()["items"]
    assert (refreshes[0]["actor"], refreshes[0]["actor_name"]) == (None, None)
    assert refreshes[-1]["actor"] is not None
    pass_time(service, export)
    service.work()
    later = client.get(export).json()["runs"][0]
    assert later["number"] == 2
    assert client.get(later["links"]["job"]).json()["actor"] is None


def test_timeline_names_the_actor_of_a_schema_change(
    client: Client, orders: str, actor: str, service: Service
) -> None:
    service.work()
    changes = {"changes": [{"kind": "add", "field": {"name": "more", "type": "string"}}]}
    etag = client.get(orders).headers["etag"]
    assert client.patch(orders, json=changes, headers={"If-Match": etag}).status_code == 200
    [changed, written] = client.get(f"{orders}/timeline").json()["items"]
    assert (changed["action"], changed["actor"], changed["job_id"]) == ("schema", actor, None)
    assert (written["action"], written["actor"]) == ("commit", actor)


def test_each_key_of_a_tenant_is_its_own_actor(
    client: Client, orders: str, actor: str, service: Service
) -> None:
    principal = CredentialStore(service.database).authenticate(client.headers["authorization"].split()[1])
    assert principal is not None
    assert principal.actor == actor
    other = service.tenants.make_key(principal.tenant_id, SCOPES, name="nightly")
    with service.client(other.api_key) as nightly:
        nightly.post(f"{orders}/writes", json=upsert({"id": 2}))
    [latest, first] = client.get(f"{orders}/timeline").json()["items"]
    assert (latest["actor"], latest["actor_name"]) == (other.key_id, "nightly")
    assert (first["actor"], first["actor_name"]) == (actor, "")
