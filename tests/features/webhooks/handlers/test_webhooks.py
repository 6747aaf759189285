"""Webhooks as resources: registered, listed, changed, tried, ended, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.infra.identifiers import new_id
from tests.support.http import ORDERS, problem
from tests.support.receiver import Receiver
from tests.support.service import Service
from tests.support.webhooks import Client, Register, deliveries, patch, state_of, tenant_of, write


def test_two_secrets_sign_for_a_day_after_a_rotation(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register(secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert webhook["secret"] == "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    rotated = client.post(f"/webhooks/{webhook['id']}/rotate-secret").json()
    assert rotated["overlap_seconds"] == 86_400
    write(client, service, {"id": 1, "note": "a"})
    [message] = receiver.messages
    assert message.signatures_of(rotated["secret"]) == message.signatures_of(webhook["secret"]) == 1
    with service.database.tenant(tenant_of(client, service)) as connection:
        connection.exec_driver_sql("UPDATE webhooks SET old_secret_until = clock_timestamp()")
    write(client, service, {"id": 2, "note": "b"})
    assert receiver.messages[1].signatures_of(rotated["secret"]) == 1
    assert receiver.messages[1].signatures_of(webhook["secret"]) == 0


@pytest.mark.parametrize(
    ("since", "position"), [(1, 1), ("1", 1), ("0", 0), ("earliest", 0), ("now", 2)], ids=str
)
def test_a_webhook_starts_at_an_offset_or_a_named_position(
    client: Client, service: Service, register: Register, since: int | str, position: int
) -> None:
    write(client, service, {"id": 1, "note": "a"}, {"id": 2, "note": "b"})
    assert register(since=since)["position"] == position


@pytest.mark.parametrize("since", ["-1", "latest", "1.0", "9" * 20, "", True, 1.5])
def test_a_position_of_another_form_is_refused(
    client: Client, orders: str, receiver: Receiver, since: Any
) -> None:
    wanted = {"dataset": "orders", "url": receiver.url, "since": since}
    refused = problem(client.post("/webhooks", json=wanted), 400, "invalid-request")
    assert refused["errors"][0]["pointer"] == "/since"


def test_a_webhook_names_its_dataset_by_id_and_name(client: Client, register: Register, orders: str) -> None:
    dataset = client.get(orders).json()
    assert register()["dataset"] == {"id": dataset["id"], "name": "orders"}


def test_a_patch_changes_only_the_members_that_it_names(client: Client, register: Register) -> None:
    webhook = register(columns=["id"], where="id > 1", description="before", max_lag={"changes": 5})
    changed = patch(client, webhook, where=None, description="after")
    differing = {name for name in changed if changed[name] != webhook.get(name)}
    assert differing == {"where", "description", "name", "revision"}
    assert (changed["where"], changed["description"], changed["columns"]) == (None, "after", ["id"])


def test_a_misspelt_member_or_parameter_is_answered_with_the_closest(client: Client, orders: str) -> None:
    refused = problem(
        client.post("/webhooks", json={"datset": "orders", "url": "http://x/"}), 400, "invalid-request"
    )
    assert refused["errors"] == [{"pointer": "/datset", "detail": "unknown member; did you mean 'dataset'?"}]
    refused = problem(client.get("/webhooks", params={"page_siz": 5}), 400, "invalid-request")
    assert refused["errors"][0]["pointer"] == "/page_siz"
    assert "did you mean 'page_size'?" in refused["errors"][0]["detail"]


def test_each_query_option_that_does_not_fit_is_named(client: Client) -> None:
    refused = problem(
        client.get("/webhooks/x/deliveries", params={"page_size": 0, "state": "lost"}), 400, "invalid-request"
    )
    assert [error["pointer"] for error in refused["errors"]] == ["/page_size", "/state"]
    assert "expected one of" in refused["errors"][1]["detail"]


def test_secret_is_returned_once(client: Client, register: Register) -> None:
    webhook = register()
    for answer in (client.get(f"/webhooks/{webhook['id']}"), client.get("/webhooks")):
        assert webhook["secret"] not in answer.text
        assert "secret" not in answer.text


def test_webhook_trial_returns_the_response_of_the_receiver(
    client: Client, register: Register, receiver: Receiver
) -> None:
    webhook = register()
    receiver.answer(202)
    receiver.answer(418, body=b"short and stout")
    response = client.post(f"/webhooks/{webhook['id']}/tests").json()
    assert (response["delivered"], response["status"], response["error"]) == (True, 202, None)
    response = client.post(f"/webhooks/{webhook['id']}/tests").json()
    assert (response["delivered"], response["status"], response["error"]) == (False, 418, "short and stout")
    assert {message.signatures_of(webhook["secret"]) for message in receiver.messages} == {1}
    assert b'"type":"webhook.test"' in receiver.messages[0].body
    patch(client, webhook, url="http://127.0.0.1:9/")
    response = client.post(f"/webhooks/{webhook['id']}/tests").json()
    assert (response["delivered"], response["status"]) == (False, None)
    assert "refused" in response["error"]


@pytest.mark.parametrize(
    ("members", "status", "code", "pointer"),
    [
        ({"url": "http://10.0.0.1/"}, 422, "invalid-webhook", "/url"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, 422, "invalid-webhook", "/url"),
        ({"url": "ftp://hooks.example/"}, 422, "invalid-webhook", "/url"),
        ({"url": "http://me:secret@127.0.0.1/"}, 422, "invalid-webhook", "/url"),
        ({"url": "http://nowhere.invalid/"}, 422, "invalid-webhook", "/url"),
        ({"secret": "whsec_short"}, 422, "invalid-webhook", "/secret"),
        ({"columns": ["no"]}, 400, "invalid-request", "/columns"),
        ({"partitions": ["day=1"]}, 400, "invalid-request", "/partitions"),
        ({"batch_changes_max": 1001}, 400, "invalid-request", "/batch_changes_max"),
        ({"since": -1}, 400, "invalid-request", "/since"),
        ({"form": "xml"}, 400, "invalid-request", "/form"),
        ({"retries": 3}, 400, "invalid-request", "/retries"),
        ({"where": "no = 1"}, 400, "invalid-filter", None),
        ({"since": 7}, 409, "offset-ahead", None),
        ({"dataset": "nowhere"}, 404, "not-found", None),
    ],
)
def test_invalid_webhook_is_refused_with_its_pointer(
    client: Client,
    orders: str,
    receiver: Receiver,
    members: dict[str, Any],
    status: int,
    code: str,
    pointer: str | None,
) -> None:
    answer = client.post("/webhooks", json={"dataset": "orders", "url": receiver.url, **members})
    response = problem(answer, status, code)
    if pointer is not None:
        assert response["errors"][0]["pointer"] == pointer
    assert client.get("/webhooks").json()["items"] == []


def test_dataset_without_a_feed_has_no_webhooks(client: Client, receiver: Receiver) -> None:
    silent = {**ORDERS, "name": "silent", "changelog": {"producer": "none"}}
    assert client.post("/datasets", json=silent).status_code == 201
    problem(client.post("/webhooks", json={"dataset": "silent", "url": receiver.url}), 422, "no-feed")


def test_webhooks_are_listed_by_dataset_in_pages(client: Client, register: Register) -> None:
    made = [register(description=str(number))["id"] for number in range(3)]
    client.post("/datasets", json={**ORDERS, "name": "others"})
    first = client.get("/webhooks", params={"page_size": 2, "dataset": "orders"}).json()
    then = client.get(
        "/webhooks", params={"page_size": 2, "dataset": "orders", "page_token": first["next_page_token"]}
    ).json()
    assert [item["id"] for item in first["items"] + then["items"]] == made[::-1]
    assert then["next_page_token"] is None
    assert client.get("/webhooks", params={"dataset": "others"}).json()["items"] == []
    problem(client.get("/webhooks", params={"page_token": "bm8"}), 400, "invalid-request")


def test_change_requires_the_current_revision(client: Client, register: Register) -> None:
    webhook = register()
    path = f"/webhooks/{webhook['id']}"
    problem(client.patch(path, json={"state": "paused"}), 428, "precondition-required")
    empty = problem(client.patch(path, json={}, headers={"If-Match": '"1"'}), 400, "invalid-request")
    assert empty["errors"][0]["detail"].startswith("expected at least one of url, ")
    patch(client, webhook, max_lag={"changes": 10})
    assert state_of(client, webhook)["max_lag"] == {"changes": 10, "seconds": None}
    problem(
        client.patch(path, json={"state": "paused"}, headers={"If-Match": '"1"'}), 412, "precondition-failed"
    )
    problem(client.delete(path, headers={"If-Match": '"1"'}), 412, "precondition-failed")
    refused = client.patch(path, json={"url": "http://10.0.0.1/"}, headers={"If-Match": '"2"'})
    assert problem(refused, 422, "invalid-webhook")["errors"][0]["pointer"] == "/url"
    assert client.delete(path, headers={"If-Match": '"2"'}).status_code == 204
    problem(client.get(path), 404, "not-found")


def test_webhook_of_another_tenant_is_not_found(
    client: Client, service: Service, register: Register, new_client: Callable[..., Client]
) -> None:
    webhook = register()
    write(client, service, {"id": 1, "note": "a"})
    [delivery] = deliveries(client, webhook)
    other = new_client()
    path = f"/webhooks/{webhook['id']}"
    for method, rest in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/deliveries"),
        ("GET", f"/deliveries/{delivery['id']}"),
        ("POST", f"/deliveries/{delivery['id']}/redeliver"),
        ("POST", "/redeliveries"),
        ("POST", "/rotate-secret"),
        ("POST", "/tests"),
    ):
        problem(other.request(method, path + rest), 404, "not-found")
    changed = other.patch(path, json={"state": "paused"}, headers={"If-Match": '"1"'})
    problem(changed, 404, "not-found")
    assert other.get("/webhooks").json()["items"] == []
    problem(client.get(f"{path}/deliveries/{new_id()}"), 404, "not-found")
    problem(client.get("/webhooks/no-id"), 404, "not-found")


def test_a_webhook_is_registered_once_for_a_key(client, orders, receiver):
    body = {"dataset": "orders", "url": receiver.url}
    headers = {"Idempotency-Key": "once"}
    first, second = (client.post("/webhooks", json=body, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201), second.text
    assert second.headers["idempotency-replayed"] == "true"
    # The secret, too: a client that lost the first response has it from the second one.
    assert second.json() == first.json()
    assert len(client.get("/webhooks").json()["items"]) == 1
    client.delete(first.headers["location"])


def test_a_webhook_starts_and_continues_at_a_version_or_a_time(client, feed, register):
    times = {change["version"]: change["system_time"] for change in client.get(feed).json()["changes"]}
    assert register(since_version=2)["position"] == register(since_time=times[2])["position"] == 2
    webhook = register(since_version=3)
    assert webhook["position"] == 4
    path, headers = webhook["links"]["self"], {"If-Match": '"1"'}
    back = client.patch(path, json={"since_version": 1}, headers=headers)
    assert (back.status_code, back.json()["position"]) == (200, 0)
    both = client.patch(path, json={"since": 1, "since_time": times[1]}, headers={"If-Match": '"2"'})
    assert problem(both, 400, "invalid-request")["errors"][0]["pointer"] == "/since_time"
    problem(client.patch(path, json={"since_version": 9}, headers={"If-Match": '"2"'}), 409, "offset-ahead")
