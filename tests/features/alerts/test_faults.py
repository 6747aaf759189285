"""Real faults fire alerts, which operators see and get as events, and which are resolved after the fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import msgspec
import pytest

from app.features.alerts import compose
from app.features.alerts.declared import ALERTS
from app.infra.outbound.signing_secret import new_secret
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http import EVENTS, upsert
from tests.support.postgres import TestServer
from tests.support.receiver import Receiver, receiving
from tests.support.service import Service, running_service, settings_for
from tests.support.waiting import until

SECRET = new_secret()


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey, receiver: Receiver) -> Iterator[Service]:
    """Its API gathers often, and no alert waits for its time."""
    at_once = tuple(msgspec.structs.replace(alert, for_seconds=0, start_seconds=0) for alert in ALERTS)
    with (
        pytest.MonkeyPatch.context() as patch,
        postgres.fresh_database() as name,
        TemporaryDirectory(prefix="headwater-tests-") as directory,
    ):
        patch.setattr(compose, "ALERTS", at_once)
        settings = settings_for(
            postgres.application_url(name),
            postgres.admin_url(name),
            redis.url,
            Path(directory),
            metrics_seconds=0.3,
            alert_url=f"{receiver.url}/alerts",
            alert_secret=SECRET,
        )
        with running_service(settings) as running:
            yield running


def active(client: httpx2.Client) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in client.get("/health/service").json()["alerts"]}


def until_active(client: httpx2.Client, name: str) -> dict[str, Any]:
    return until(lambda: active(client).get(name), f"the alert {name}")


def until_over(client: httpx2.Client, name: str) -> None:
    until(lambda: name not in active(client), f"the end of the alert {name}")


def test_missing_worker_fires_and_its_event_is_signed_and_sent_again_until_it_arrives(
    client: httpx2.Client, receiver: Receiver, service: Service
) -> None:
    alert = until_active(client, "no-worker")
    assert (alert["severity"], alert["detail"]) == ("critical", "0 workers alive")
    assert alert["action"].startswith("Start a worker")
    fired = until(
        lambda: [each for each in receiver.messages if each.data["alert"] == "no-worker"], "its event"
    )
    assert msgspec.json.decode(fired[0].body)["type"] == "alert.fired"
    assert fired[0].signatures_of(SECRET) == 1
    receiver.answer(500, 500)
    insert = "INSERT INTO workers (id, polled_at) VALUES ('alive', clock_timestamp() + interval '1 hour')"
    with service.database.relay() as connection:
        connection.exec_driver_sql(insert)
    until_over(client, "no-worker")
    resolved = until(
        lambda: [
            each for each in receiver.messages if msgspec.json.decode(each.body)["type"] == "alert.resolved"
        ][2:],
        "the third attempt",
    )
    assert resolved[0].data["resolved_at"]
    assert resolved[0].data["alert"] == "no-worker"
    assert resolved[0].data["detail"] == "resolved after less than a minute; it was: 0 workers alive"
    assert resolved[0].data["action"] == ""


def test_missing_storage_fires_and_is_resolved(client: httpx2.Client, service: Service) -> None:
    storage = Path(service.settings.storage_uri.removeprefix("file://"))
    away = storage.with_name("away")
    storage.rename(away)
    try:
        assert until_active(client, "storage-unreachable")["severity"] == "critical"
    finally:
        away.rename(storage)
    until_over(client, "storage-unreachable")
    health = client.get("/health/service").json()
    [resolved] = [each for each in health["resolved_alerts"] if each["name"] == "storage-unreachable"]
    assert resolved["fired_at"] < resolved["resolved_at"]
    assert (resolved["severity"], "Jobs resume" in resolved["action"]) == ("critical", True)
    assert [each["resident_bytes"] > 10**7 for each in health["processes"] if each["kind"] == "api"] == [True]


def test_bad_records_fire_that_the_quarantine_grows(client: httpx2.Client, service: Service) -> None:
    events = client.post("/datasets", json=EVENTS).headers["location"]
    body = b'{"what": "good"}\n{"at": "no time"}\n'
    with service.working():
        answer = client.post(
            f"{events}/writes",
            params={"operation": "insert", "on_error": "quarantine"},
            content=body,
            headers={"Content-Type": "application/x-ndjson", "Prefer": "wait=20"},
        )
    assert answer.status_code == 200, answer.text
    detail = until_active(client, "quarantine-grows")["detail"]
    tenant = client.get("/me").json()["tenant"]["name"]
    assert detail == f"{tenant}/{EVENTS['name']}: 1 record within an hour"


def test_failed_jobs_fire(client: httpx2.Client, service: Service) -> None:
    orders = client.post(
        "/datasets",
        json={
            "name": "failing",
            "schema": {"fields": [{"name": "id", "type": "int64"}]},
            "record_key": ["id"],
        },
    ).headers["location"]
    with service.working():
        client.post(f"{orders}/writes", json=upsert({"id": 1}), headers={"Prefer": "wait=20"})
        for _ in range(21):
            write = {"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1}]}}
            answer = client.post(f"{orders}/writes", json=write, headers={"Prefer": "wait=20"})
            assert answer.status_code == 422, answer.text
        assert until_active(client, "jobs-fail")["severity"] == "warning"
