"""Alerts about the datasets of a tenant reach its webhooks: each once when it is fired and once when it is resolved."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
import pytest
from sqlalchemy import text

from app.access.tenants.quotas import Quotas
from app.access.tenants.values import Grant, KeyScope, TenantChange
from app.features.alerts import compose
from app.features.alerts.declared import ALERTS, Subject
from app.features.alerts.service import watch_tenants
from app.features.monitoring.repository import dataset_faults
from app.features.monitoring.repository.dataset_faults import STATEMENTS
from app.kernel.format.errors import InvalidRequest
from headwater_client import verify_webhook
from tests.support.http import EVENTS, ORDERS, problem, upsert
from tests.support.receiver import Receiver
from tests.support.service import Service
from tests.support.webhooks import deliveries, make_due, state_of, tenant_of, work_until

Client = httpx2.Client
Watch = Callable[[], None]
BEGIN = datetime(2026, 11, 29, 8, tzinfo=UTC)
OF_TENANTS = [alert for alert in ALERTS if alert.about is not Subject.SERVICE]
BY_NAME = {alert.name: alert for alert in OF_TENANTS}
BAD = b'{"what": "good"}\n{"at": "no time"}\n'


@pytest.fixture
def watch(service: Service, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """One round of the alerts of tenants. No alert waits for its time, or is held."""
    at_once = tuple(
        msgspec.structs.replace(
            alert, for_seconds=0, threshold=alert.threshold if alert.about is Subject.TENANT else 0
        )
        for alert in ALERTS
    )
    monkeypatch.setattr(compose, "ALERTS", at_once)
    monkeypatch.setattr(compose, "HELD_SECONDS", 0.0)
    monkeypatch.setattr(compose, "leads", lambda *_, **__: lambda: True)
    return compose.watch_tenants(service.platform).run


@pytest.fixture
def subscribe(client: Client, receiver: Receiver) -> Iterator[Callable[..., dict[str, Any]]]:
    """Registers a webhook for alerts, which the client deletes at the end."""
    made: list[str] = []

    def register(by: Client = client, **members: Any) -> dict[str, Any]:
        answer = by.post("/webhooks", json={"url": receiver.url, "events": "alerts", **members})
        assert answer.status_code == 201, answer.text
        webhook: dict[str, Any] = answer.json()
        made.append(webhook["id"])
        return webhook

    yield register
    for webhook_id in made:
        client.delete(f"/webhooks/{webhook_id}")


def alerts_of(receiver: Receiver) -> list[tuple[str, str, str]]:
    """The alerts that have arrived: name, state and dataset."""
    return [
        (each.data["alert"], each.data["state"], each.data["labels"].get("dataset", ""))
        for each in receiver.messages
    ]


def sql(client: Client, service: Service, statement: str, **values: Any) -> None:
    with service.database.tenant(tenant_of(client, service)) as connection:
        connection.execute(text(statement), values)


def quarantined(client: Client, service: Service) -> Callable[[], None]:
    """Makes a dataset with a bad record. Returns what discards it."""
    path = client.post("/datasets", json=EVENTS).headers["location"]
    answer = client.post(
        f"{path}/writes",
        params={"operation": "insert", "on_error": "quarantine"},
        content=BAD,
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert answer.status_code == 202, answer.text
    service.work()
    job = {"job": answer.json()["id"]}
    return lambda: client.delete("/datasets/events/quarantine", params=job).raise_for_status() and None


def test_every_alert_about_datasets_has_a_statement() -> None:
    assert {alert.metric for alert in OF_TENANTS} == set(STATEMENTS)


def test_alert_is_sent_once_when_it_is_fired_and_once_when_it_is_resolved(
    client: Client,
    service: Service,
    receiver: Receiver,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
) -> None:
    webhook = subscribe(description="pager")
    assert (webhook["dataset"], webhook["links"]["dataset"], webhook["events"]) == (None, None, "alerts")
    assert webhook["form"] is None
    discard = quarantined(client, service)
    receiver.answer(500)
    for _ in range(3):
        watch()
        work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    first, again = receiver.messages
    assert (first.id, first.body) == (again.id, again.body)
    message = verify_webhook(webhook["secret"], again.headers, again.body)
    dataset = client.get("/datasets/events").json()
    tenant = client.get("/me").json()["tenant"]
    assert message["type"] == "alert.fired"
    fired = message["data"]
    assert fired["labels"] == {
        "tenant": tenant["name"] if isinstance(tenant, dict) else tenant,
        "dataset": "events",
        "dataset_id": dataset["id"],
    }
    assert {
        name: fired[name] for name in ("webhook_id", "alert", "severity", "state", "detail", "resolved_at")
    } == {
        "webhook_id": webhook["id"],
        "alert": "quarantine-grows",
        "severity": "warning",
        "state": "firing",
        "detail": "1 record within an hour",
        "resolved_at": None,
    }
    assert fired["summary"] == BY_NAME["quarantine-grows"].summary
    assert fired["action"].startswith("List them")
    assert fired["runbook"] == "docs/monitoring.md#alerts"
    discard()
    for _ in range(2):
        watch()
        service.work()
    assert alerts_of(receiver)[2:] == [("quarantine-grows", "resolved", "events")]
    resolved = receiver.messages[-1]
    assert json.loads(resolved.body)["type"] == "alert.resolved"
    assert resolved.data["fired_at"] == fired["fired_at"] <= resolved.data["resolved_at"]
    assert resolved.data["id"] != fired["id"]
    assert [each["state"] for each in deliveries(client, webhook)] == ["delivered", "delivered"]


def late(client: Client, service: Service, orders: str) -> Callable[[], None]:
    tag = client.get(orders).headers["etag"]
    changed = client.patch(orders, json={"expected_every_seconds": 3600}, headers={"If-Match": tag})
    assert changed.status_code == 200, changed.text
    back = "UPDATE heads SET committed_at = committed_at - interval '2 hours' WHERE dataset_id = :id"
    sql(client, service, back, id=client.get(orders).json()["id"])
    return lambda: write(client, service, orders, 3)


def lagging(client: Client, service: Service, orders: str) -> Callable[[], None]:
    consumer = f"{orders}/consumers/app"
    made = client.put(consumer, json={"offset": "earliest"}, headers={"If-None-Match": "*"})
    assert made.status_code == 201, made.text

    def commit() -> None:
        client.put(consumer, json={"offset": "now"}, headers={"If-Match": '"1"'}).raise_for_status()

    return commit


def view(client: Client, service: Service) -> None:
    service.derivation.queries["copy"] = lambda rows: rows
    made = client.post("/views", json={"name": "copy", "sql": "SELECT id, note FROM orders WHERE id > 0"})
    assert made.status_code == 201, made.text
    service.work()


def view_behind(client: Client, service: Service, orders: str) -> Callable[[], None]:
    view(client, service)
    assert client.post(f"{orders}/writes", json=upsert({"id": 3, "note": "x"})).status_code == 202
    # The write alone: nothing refreshes the view.
    for each in service.jobs.runnable(10):
        service.run_writes.run(each.tenant_id, each.dataset_id)
    return service.work


def view_failed(client: Client, service: Service, orders: str) -> Callable[[], None]:
    view(client, service)

    def fails(_: Any) -> Any:
        raise InvalidRequest("a value cannot be cast")

    service.derivation.queries["copy"] = fails
    write(client, service, orders, 3)

    def repaired() -> None:
        service.derivation.queries["copy"] = lambda rows: rows
        client.post("/views/copy/refreshes", json={})
        service.work()

    return repaired


def source_failing(client: Client, service: Service, orders: str) -> Callable[[], None]:
    folder = service.settings.data_dir / "incoming" / "alerts"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "rows.ndjson"
    file.write_bytes(b'{"id": "no number"}\n')
    config = {"path": folder.as_uri(), "format": "ndjson"}
    made = client.post(
        "/sources", json={"name": "in", "dataset": "orders", "kind": "files", "config": config}
    )
    assert made.status_code == 201, made.text
    service.work()

    def ended() -> None:
        client.delete(made.headers["location"]).raise_for_status()

    return ended


def webhook_paused(client: Client, service: Service, orders: str) -> Callable[[], None]:
    # Nothing listens there.
    made = client.post(
        "/webhooks", json={"dataset": "orders", "url": "http://127.0.0.1:9/", "batch_changes_max": 1}
    )
    assert made.status_code == 201, made.text
    webhook = made.json()
    write(client, service, orders, 3, 4, 5)

    def paused() -> bool:
        make_due(client, service)
        return bool(state_of(client, webhook)["state"] == "paused")

    work_until(service, paused)
    return lambda: client.delete(f"/webhooks/{webhook['id']}").raise_for_status() and None


def write(client: Client, service: Service, orders: str, *ids: int) -> None:
    rows = [{"id": each, "note": "x"} for each in ids]
    assert client.post(f"{orders}/writes", json=upsert(*rows)).status_code == 202
    service.work()


def webhook_failing(client: Client, service: Service, orders: str) -> Callable[[], None]:
    # Nothing listens there.
    made = client.post("/webhooks", json={"dataset": "orders", "url": "http://127.0.0.1:9/"})
    assert made.status_code == 201, made.text
    path = f"/webhooks/{made.json()['id']}"
    write(client, service, orders, 3)
    assert client.get(path).json()["state"] == "active"

    def repaired() -> None:
        client.delete(path).raise_for_status()

    return repaired


def over_max_lag(client: Client, service: Service, orders: str) -> Callable[[], None]:
    consumer = f"{orders}/consumers/app"
    body = {"offset": "earliest", "max_lag": {"changes": 1}}
    made = client.put(consumer, json=body, headers={"If-None-Match": "*"})
    assert made.status_code == 201, made.text

    def commit() -> None:
        client.put(consumer, json={"offset": "now"}, headers={"If-Match": '"1"'}).raise_for_status()

    return commit


def quota(client: Client, service: Service, orders: str) -> Callable[[], None]:
    def limit(rows: int) -> None:
        tenant_id = tenant_of(client, service)
        service.tenants.change(tenant_id, TenantChange(quotas=Quotas(rows_per_day=rows)))

    limit(2)
    return lambda: limit(1_000)


FAULTS: Mapping[str, Callable[[Client, Service, str], Callable[[], None]]] = {
    "dataset-late": late,
    "consumer-behind": lagging,
    "view-behind": view_behind,
    "view-failed": view_failed,
    "source-failing": source_failing,
    "webhook-paused": webhook_paused,
    "webhook-failing": webhook_failing,
    "consumer-over-max-lag": over_max_lag,
    "quota-nearly-used": quota,
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_each_kind_is_fired_and_resolved(
    client: Client,
    service: Service,
    orders: str,
    receiver: Receiver,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
    name: str,
) -> None:
    assert {*FAULTS, "quarantine-grows"} == BY_NAME.keys()
    write(client, service, orders, 1, 2)
    subscribe()
    resolve = FAULTS[name](client, service, orders)
    watch()
    for tenant_id, webhook_id in service.alerts.due(10):
        while service.follow_alerts.run(tenant_id, webhook_id):
            pass
    dataset = "copy" if name.startswith("view") else "" if BY_NAME[name].about is Subject.TENANT else "orders"
    assert (name, "firing", dataset) in alerts_of(receiver)
    resolve()
    watch()
    work_until(service, lambda: (name, "resolved", dataset) in alerts_of(receiver))
    assert alerts_of(receiver).count((name, "firing", dataset)) == 1


def test_webhook_of_a_dataset_gets_its_alerts_only(
    client: Client,
    service: Service,
    orders: str,
    receiver: Receiver,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
) -> None:
    mine = subscribe(dataset="orders")
    quarantined(client, service)
    write(client, service, orders, 1, 2)
    lagging(client, service, orders)
    watch()
    service.work()
    assert alerts_of(receiver) == [("consumer-behind", "firing", "orders")]
    assert (state_of(client, mine)["position"], state_of(client, mine)["pending"]) == (1, 0)
    # Another one begins where it says.
    receiver.messages.clear()
    everything = subscribe(since="earliest")
    assert everything["pending"] == 2
    alerts = f"/webhooks/{everything['id']}/alerts"
    unsent = client.get(alerts).json()
    assert [(each["since"], each["next_since"]) for each in unsent["items"]] == [(0, 1), (1, 2)]
    assert client.get(alerts, params={"limit": 1}).json() == {"items": unsent["items"][:1], "next_since": 1}
    assert client.get(alerts, params={"since": 1}).json() == {"items": unsent["items"][1:], "next_since": 2}
    of_orders = client.get(f"/webhooks/{mine['id']}/alerts", params={"since": 0}).json()
    assert [each["labels"]["dataset"] for each in of_orders["items"]] == ["orders"]
    assert client.get(f"/webhooks/{mine['id']}/alerts").json()["items"] == []
    problem(client.get(alerts, params={"since": 3}), 409, "offset-ahead")
    service.work()
    assert sorted(each for each, *_ in alerts_of(receiver)) == ["consumer-behind", "quarantine-grows"]
    assert [each.data for each in receiver.messages] == unsent["items"]
    patched = client.patch(f"/webhooks/{everything['id']}", json={"since": 1}, headers={"If-Match": '"1"'})
    assert patched.status_code == 200, patched.text
    service.work()
    assert len(receiver.messages) == 3
    problem(
        client.patch(f"/webhooks/{everything['id']}", json={"since": 9}, headers={"If-Match": '"2"'}),
        409,
        "offset-ahead",
    )


def test_webhook_begins_with_the_alerts_that_are_active(
    client: Client,
    service: Service,
    orders: str,
    receiver: Receiver,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
) -> None:
    first = subscribe()
    discard = quarantined(client, service)
    write(client, service, orders, 1, 2)
    resolve = lagging(client, service, orders)
    watch()
    discard()
    watch()
    service.work()
    watch()
    service.work()
    assert state_of(client, first)["position"] == 3
    receiver.messages.clear()
    later, elsewhere = subscribe(), subscribe(dataset="events")
    assert (later["pending"], elsewhere["pending"], elsewhere["position"]) == (1, 0, 3)
    service.work()
    resolve()
    watch()
    watch()
    work_until(service, lambda: state_of(client, later)["position"] == 4)
    by_webhook = [each for each in receiver.messages if each.data["webhook_id"] == later["id"]]
    assert [(each.data["alert"], each.data["state"]) for each in by_webhook] == [
        ("consumer-behind", "firing"),
        ("consumer-behind", "resolved"),
    ]
    assert by_webhook[0].data["fired_at"] == by_webhook[1].data["fired_at"]
    assert {each.data["webhook_id"] for each in receiver.messages} == {first["id"], later["id"]}
    again = client.post(f"/webhooks/{later['id']}/deliveries/{deliveries(client, later)[-1]['id']}/redeliver")
    assert again.status_code == 202, again.text
    service.work()
    assert (receiver.messages[-1].id, receiver.messages[-1].body) == (by_webhook[0].id, by_webhook[0].body)


def test_webhook_that_goes_on_now_begins_with_the_alerts_that_are_active(
    client: Client,
    service: Service,
    orders: str,
    receiver: Receiver,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
) -> None:
    webhook = subscribe()
    path = f"/webhooks/{webhook['id']}"
    client.patch(path, json={"state": "paused"}, headers={"If-Match": '"1"'}).raise_for_status()
    discard = quarantined(client, service)
    write(client, service, orders, 1, 2)
    lagging(client, service, orders)
    watch()
    discard()
    watch()
    watch()
    assert state_of(client, webhook)["pending"] == 3
    resumed = client.patch(path, json={"state": "active", "since": "now"}, headers={"If-Match": '"2"'})
    assert resumed.status_code == 200, resumed.text
    assert resumed.json()["pending"] == 1
    service.work()
    assert alerts_of(receiver) == [("consumer-behind", "firing", "orders")]


def test_paused_webhook_gets_what_it_has_missed(
    client: Client,
    service: Service,
    receiver: Receiver,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
) -> None:
    webhook = subscribe()
    path = f"/webhooks/{webhook['id']}"
    receiver.answer(410)
    discard = quarantined(client, service)
    watch()
    service.work()
    paused = state_of(client, webhook)
    assert (paused["state"], paused["error"]["type"]) == ("paused", "/problems/webhook-given-up")
    discard()
    watch()
    service.work()
    assert len(receiver.messages) == 1
    resumed = client.patch(path, json={"state": "active"}, headers={"If-Match": f'"{paused["revision"]}"'})
    assert resumed.status_code == 200, resumed.text
    service.work()
    # It also hears that it was paused itself.
    arrived = alerts_of(receiver)
    assert ("webhook-paused", "firing", "") in arrived
    about_records = [state for alert, state, _ in arrived if alert == "quarantine-grows"]
    assert about_records == ["firing", "firing", "resolved"]
    again = client.post(f"{path}/deliveries/{deliveries(client, webhook)[0]['id']}/redeliver")
    assert again.status_code == 202, again.text
    service.work()
    first, last = receiver.messages[-2:]
    assert (first.id, first.body) == (last.id, last.body)


def test_tenants_hear_of_their_own_datasets_only(
    client: Client,
    new_client: Callable[..., Client],
    service: Service,
    receiver: Receiver,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
) -> None:
    other = new_client()
    subscribe()
    elsewhere = subscribe(other)
    quarantined(client, service)
    watch()
    service.work()
    assert [each.data["webhook_id"] == elsewhere["id"] for each in receiver.messages] == [False]
    assert other.get(f"/webhooks/{elsewhere['id']}").json()["pending"] == 0
    other.delete(f"/webhooks/{elsewhere['id']}")


def test_grants_decide_which_alerts_a_key_may_subscribe_to(
    client: Client,
    service: Service,
    orders: str,
    receiver: Receiver,
    subscribe: Callable[..., dict[str, Any]],
) -> None:
    tenant = tenant_of(client, service)
    scopes = (KeyScope.READ, KeyScope.MANAGE)
    all_of_it = subscribe()

    def key(grant: Grant) -> Client:
        return service.client(service.tenants.make_key(tenant, scopes, grants=(grant,)).api_key)

    body = {"url": receiver.url, "events": "alerts"}
    with key(Grant(datasets="orders")) as granted:
        refusal = problem(granted.post("/webhooks", json=body), 422, "invalid-webhook")
        assert refusal["errors"][0]["pointer"] == "/dataset"
        made = granted.post("/webhooks", json={**body, "dataset": "orders"})
        assert made.status_code == 201, made.text
        problem(granted.get(f"/webhooks/{all_of_it['id']}"), 404, "not-found")
        problem(granted.delete(f"/webhooks/{all_of_it['id']}"), 404, "not-found")
        assert [each["id"] for each in granted.get("/webhooks").json()["items"]] == [made.json()["id"]]
        granted.delete(f"/webhooks/{made.json()['id']}").raise_for_status()
    with key(Grant(datasets="orders", where="id > 1")) as in_part:
        problem(in_part.post("/webhooks", json={**body, "dataset": "orders"}), 403, "restricted-grant")
    with service.client(service.tenants.make_key(tenant, (KeyScope.READ,)).api_key) as reader:
        problem(reader.post("/webhooks", json=body), 403, "forbidden")
        assert reader.get(f"/webhooks/{all_of_it['id']}").status_code == 200


def test_members_of_changes_are_refused(client: Client, orders: str, receiver: Receiver) -> None:
    body = {"url": receiver.url, "events": "alerts"}
    for more, pointer in (
        ({"columns": ["id"]}, "/columns"),
        ({"max_lag": {"changes": 1}}, "/max_lag"),
        ({"since": "snapshot"}, "/since"),
        ({"since_version": 1}, "/since_version"),
        ({"url": "kafka://127.0.0.1:9/topic"}, "/events"),
    ):
        refusal = problem(client.post("/webhooks", json={**body, **more}), 422, "invalid-webhook")
        assert [error["pointer"] for error in refusal["errors"]] == [pointer], more
    for events in ("changes", "partitions"):
        refusal = problem(client.post("/webhooks", json={**body, "events": events}), 422, "invalid-webhook")
        assert refusal["errors"][0]["pointer"] == "/dataset"


def test_each_tenant_has_its_turn(
    client: Client,
    new_client: Callable[..., Client],
    service: Service,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_tenants, "TENANTS_MAX", 1)
    others = [new_client(), new_client()]
    webhooks = {tenant: subscribe(tenant) for tenant in (client, *others)}
    for tenant in webhooks:
        quarantined(tenant, service)
    with service.database.relay() as connection:
        tenants = connection.execute(
            text("SELECT count(DISTINCT tenant_id) FROM alert_followers")
        ).scalar_one()
    for _ in range(tenants + 1):
        watch()
    assert [state_of(tenant, webhook)["pending"] for tenant, webhook in webhooks.items()] == [1, 1, 1]
    for tenant in others:
        tenant.delete(f"/webhooks/{webhooks[tenant]['id']}").raise_for_status()


def test_fired_alert_is_resolved_by_its_end_and_not_by_greater_values(
    client: Client,
    service: Service,
    orders: str,
    receiver: Receiver,
    watch: Watch,
    subscribe: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_most_one = {
        metric: statement._replace(
            query=text(str(statement.query).replace(f"LIMIT {dataset_faults.FAULTS_MAX}", "LIMIT 1"))
        )
        for metric, statement in STATEMENTS.items()
    }
    monkeypatch.setattr(dataset_faults, "STATEMENTS", at_most_one)
    subscribe()
    write(client, service, orders, 1)
    resolve = lagging(client, service, orders)
    other = client.post("/datasets", json={**ORDERS, "name": "others"}).headers["location"]
    lagging(client, service, other)
    watch()
    write(client, service, other, 1, 2, 3)
    watch()
    service.work()
    assert alerts_of(receiver) == [("consumer-behind", "firing", "orders")]
    resolve()
    watch()
    watch()
    service.work()
    assert sorted(alerts_of(receiver)[1:]) == [
        ("consumer-behind", "firing", "others"),
        ("consumer-behind", "resolved", "orders"),
    ]
