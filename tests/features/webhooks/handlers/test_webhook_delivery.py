"""What arrives at a real receiver, in which order, and what happens to what does not."""

from __future__ import annotations

import time

from sqlalchemy import update

from app.core.catalog.tables import heads
from tests.support.http import problem, upsert
from tests.support.receiver import Receiver, receiving
from tests.support.service import Service
from tests.support.webhooks import (
    Client,
    Register,
    deliveries,
    feed,
    make_due,
    patch,
    state_of,
    tenant_of,
    work_until,
    write,
)


def test_webhook_delivers_the_changes_of_the_feed(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    write(client, service, {"id": 1, "note": "before"})
    webhook = register()
    assert webhook["position"] == 1
    write(client, service, {"id": 1, "note": "ä"}, {"id": 2, "note": None})
    [message] = receiver.messages
    response = client.get("/datasets/orders/changes", params={"since": 1})
    # To the byte as the feed has them.
    changes = response.text.removeprefix('{"changes":').partition(',"next_since":')[0]
    assert f'"changes":{changes}' in message.body.decode()
    assert message.headers["content-type"] == "application/json"
    assert message.data == {
        "webhook_id": webhook["id"],
        "dataset_id": webhook["dataset"]["id"],
        "dataset": "orders",
        "form": "two_event",
        "since": 1,
        "next_since": 4,
        "schema_id": 1,
        "changes": response.json()["changes"],
    }
    assert message.signatures_of(webhook["secret"]) == 1
    assert abs(int(message.headers["webhook-timestamp"]) - time.time()) < 60
    found = state_of(client, webhook)
    assert (found["position"], found["pending"], found["failures"]) == (4, 0, 0)
    [delivery] = deliveries(client, webhook)
    assert delivery["id"] == message.id
    assert (delivery["state"], delivery["attempts"], delivery["status"]) == ("delivered", 1, 200)
    assert client.get(f"/webhooks/{webhook['id']}/deliveries/{message.id}").json() == delivery


def test_webhook_delivers_only_committed_changes(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    register()
    client.post("/datasets/orders/writes", json=upsert({"id": 1, "note": "a"}))
    while service.run_followers():
        pass
    assert not receiver.messages
    bad = {**upsert({"id": 1, "note": "a"}), "operation": "insert"}
    service.work()
    client.post("/datasets/orders/writes", json=bad)
    service.work()
    assert [change["row"]["id"] for change in receiver.changes] == [1]


def test_webhook_delivers_the_whole_feed_in_order_to_a_failing_receiver(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register(since="earliest", batch_changes_max=3)
    failing = [500, 200, 503, 429, 200, 200, 404]
    receiver.answer(*failing)
    for number in range(6):
        client.post(
            "/datasets/orders/writes",
            json=upsert(*({"id": i % 4, "note": f"{number}.{i}"} for i in range(number, number + 3))),
        )
        service.work()
    expected = feed(client)
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    taken = [
        message
        for message, status in zip(receiver.messages, failing + [200] * len(receiver.messages), strict=False)
        if status == 200
    ]
    assert [change for message in taken for change in message.data["changes"]] == expected
    assert [message.data["since"] for message in taken[1:]] == [
        message.data["next_since"] for message in taken[:-1]
    ]
    # Each message keeps its id and its bytes; its time is that of the attempt.
    bodies: dict[str, set[bytes]] = {}
    for message in receiver.messages:
        bodies.setdefault(message.id, set()).add(message.body)
    assert {len(each) for each in bodies.values()} == {1}
    assert len(receiver.messages) > len(bodies)
    assert all(message.signatures_of(webhook["secret"]) == 1 for message in receiver.messages)
    assert {delivery["state"] for delivery in deliveries(client, webhook, page_size=2)} == {"delivered"}


def test_webhook_delivers_only_matching_changes(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register(form="upsert", columns=["note"], where="id >= 10")
    write(client, service, {"id": 1, "note": "a"}, {"id": 2, "note": "b"})
    assert not receiver.messages
    assert state_of(client, webhook)["pending"] == 0
    assert deliveries(client, webhook) == []
    write(client, service, {"id": 10, "note": "c"}, {"id": 3, "note": "d"})
    [change] = receiver.changes
    assert (change["op"], change["row"]) == ("+A", {"note": "c"})
    assert receiver.messages[0].data["form"] == "upsert"
    assert state_of(client, webhook)["pending"] == 0


def test_dead_message_does_not_block_later_ones_and_is_redelivered_on_request(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register()
    receiver.answer(500, 500, body=b"first")
    receiver.answer(500, body=b"the last word")
    write(client, service, {"id": 1, "note": "a"})
    work_until(service, lambda: state_of(client, webhook)["position"] == 1)
    [dead] = deliveries(client, webhook, state="dead")
    assert (dead["attempts"], dead["status"], dead["error"]) == (3, 500, "the last word")
    found = state_of(client, webhook)
    assert (found["state"], found["failures"]) == ("active", 1)
    assert found["error"]["detail"] == "1 message was given up; of the last one, it answered 500"
    write(client, service, {"id": 2, "note": "b"})
    assert receiver.offsets()[-1] == (1, 2)
    found = state_of(client, webhook)
    assert (found["failures"], found["error"]) == (0, None)

    answer = client.post(f"/webhooks/{webhook['id']}/redeliveries")
    assert (answer.status_code, answer.json()) == (202, {"deliveries": 1})
    service.work()
    assert receiver.offsets()[-1] == (0, 1)
    assert receiver.messages[-1].body == receiver.messages[0].body
    assert receiver.messages[-1].id == dead["id"]
    assert state_of(client, webhook)["position"] == 2
    assert client.post(f"/webhooks/{webhook['id']}/redeliveries").json() == {"deliveries": 0}

    again = client.post(f"/webhooks/{webhook['id']}/deliveries/{dead['id']}/redeliver")
    assert again.status_code == 202
    assert again.json()["state"] == "pending"
    service.work()
    assert receiver.offsets()[-1] == (0, 1)
    assert client.get(f"/webhooks/{webhook['id']}/deliveries/{dead['id']}").json()["state"] == "delivered"


def test_redelivery_does_not_delay_new_messages(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register()
    write(client, service, {"id": 1, "note": "a"})
    [delivery] = deliveries(client, webhook)
    receiver.answer(500)
    client.post(f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}/redeliver")
    service.work()
    write(client, service, {"id": 2, "note": "b"})
    work_until(service, lambda: not deliveries(client, webhook, state="pending"))
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    assert sorted(receiver.offsets()) == [(0, 1), (0, 1), (0, 1), (1, 2)]


def test_webhook_is_paused_after_consecutive_dead_messages_until_resumed(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register(batch_changes_max=1)
    receiver.answer(*[500] * 9)
    write(client, service, *({"id": number, "note": "x"} for number in range(5)))
    work_until(service, lambda: state_of(client, webhook)["state"] == "paused")
    found = state_of(client, webhook)
    assert (found["position"], found["failures"], found["pending"]) == (3, 3, 2)
    assert found["error"]["type"] == "/problems/webhook-given-up"
    assert found["error"]["failures"] == 3
    time.sleep(0.2)
    service.work()
    assert len(receiver.messages) == 9

    assert patch(client, webhook, description="see ticket 7")["error"] == found["error"]
    resumed = patch(client, webhook, state="active")
    assert (resumed["state"], resumed["error"], resumed["failures"]) == ("active", None, 0)
    service.work()
    assert receiver.offsets()[9:] == [(3, 4), (4, 5)]


def test_webhook_continues_at_a_requested_position(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register(batch_changes_max=2)
    receiver.answer(410)
    write(client, service, *({"id": number, "note": "a"} for number in range(4)))
    assert state_of(client, webhook)["position"] == 0
    changed = patch(client, webhook, state="active", since=3)
    assert (changed["position"], changed["pending"]) == (3, 1)
    service.work()
    assert receiver.offsets() == [(0, 2), (3, 4)]
    assert [each["state"] for each in deliveries(client, webhook)] == ["delivered", "dead"]
    patch(client, webhook, since="earliest")
    service.work()
    assert receiver.offsets()[2:] == [(0, 2), (2, 4)]
    assert len({message.id for message in receiver.messages}) == 4
    assert patch(client, webhook, since="now")["pending"] == 0
    refused = client.patch(
        f"/webhooks/{webhook['id']}",
        json={"since": 5},
        headers={"If-Match": f'"{state_of(client, webhook)["revision"]}"'},
    )
    problem(refused, 409, "offset-ahead")


def test_status_410_pauses_the_webhook_and_loses_nothing(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register()
    receiver.answer(410)
    write(client, service, {"id": 1, "note": "a"})
    found = state_of(client, webhook)
    assert (found["state"], found["position"]) == ("paused", 0)
    assert found["error"]["status"] == 502
    assert "410" in found["error"]["detail"]
    assert found["paused_at"] > found["created_at"]
    # A time of the next attempt would be one of the past.
    assert (found["retry"]["status"], found["retry"]["next_attempt_at"]) == (410, None)
    assert [each["next_attempt_at"] for each in deliveries(client, webhook)] == [None]
    assert client.get("/webhooks").json()["items"] == [found]
    write(client, service, {"id": 2, "note": "b"})
    assert len(receiver.messages) == 1
    assert patch(client, webhook, description="gone")["paused_at"] == found["paused_at"]
    assert patch(client, webhook, state="active")["paused_at"] is None
    service.work()
    assert receiver.offsets() == [(0, 1), (0, 1), (1, 2)]
    assert receiver.messages[1].id == receiver.messages[0].id


def test_paused_webhook_queues_changes_and_a_new_url_is_tried_immediately(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register()
    paused = patch(client, webhook, state="paused")
    assert (paused["error"], paused["paused_at"] is None) == (None, False)
    write(client, service, {"id": 1, "note": "a"})
    assert not receiver.messages
    with receiving() as other:
        patch(client, webhook, state="active", url=other.url, description="moved", form="upsert")
        service.work()
        assert [message.data["form"] for message in other.messages] == ["upsert"]
    assert not receiver.messages


def test_started_message_keeps_its_body_when_schema_or_format_changes(
    client: Client, service: Service, register: Register, receiver: Receiver, orders: str
) -> None:
    webhook = register()
    receiver.answer(500)
    write(client, service, {"id": 1, "note": "a"})
    version = client.get(orders).headers["etag"]
    added = {"changes": [{"kind": "add", "field": {"name": "more", "type": "int64"}}]}
    client.patch(orders, json=added, headers={"If-Match": version})
    patch(client, webhook, form="debezium")
    service.work()
    write(client, service, {"id": 2, "note": "b", "more": 3})
    assert receiver.messages[1].body == receiver.messages[0].body
    assert receiver.messages[2].data["form"] == "debezium"
    assert receiver.messages[2].data["schema_id"] == 2


def test_filter_that_no_longer_matches_the_schema_pauses_the_webhook(
    client: Client, service: Service, register: Register, receiver: Receiver, orders: str
) -> None:
    webhook = register(where="note = 'a'")
    dropped = {"changes": [{"kind": "drop", "name": "note"}]}
    changed = client.patch(
        orders,
        json=dropped,
        headers={"If-Match": client.get(orders).headers["etag"]},
        params={"cascade": "pause"},
    )
    assert changed.status_code == 200, changed.text
    write(client, service, {"id": 1})
    found = state_of(client, webhook)
    assert (found["state"], found["error"]["type"]) == ("paused", "/problems/schema-in-use")
    refused = client.patch(
        f"/webhooks/{webhook['id']}", json={"state": "active"}, headers={"If-Match": f'"{found["revision"]}"'}
    )
    problem(refused, 400, "invalid-filter")
    patch(client, webhook, state="active", where=None)
    service.work()
    assert receiver.offsets() == [(0, 1)]


def test_expired_changes_pause_the_webhook_and_resume_at_the_earliest(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register()
    receiver.answer(410)
    write(client, service, {"id": 1, "note": "a"}, {"id": 2, "note": "b"})
    with service.database.tenant(tenant_of(client, service)) as connection:
        connection.execute(update(heads).values(earliest_offset=1))
    patch(client, webhook, state="active")
    service.work()
    found = state_of(client, webhook)
    assert (found["state"], found["error"]["type"]) == ("paused", "/problems/offset-expired")
    assert found["error"]["earliest"] == 1
    patch(client, webhook, state="active", since="earliest")
    service.work()
    assert receiver.offsets() == [(0, 2), (1, 2)]
    # What is gone cannot be sent again, and holds up nothing.
    client.post(f"/webhooks/{webhook['id']}/redeliveries")
    write(client, service, {"id": 3, "note": "c"})
    assert receiver.offsets()[2:] == [(2, 3)]
    [dead] = deliveries(client, webhook, state="dead")
    assert "kept" in dead["error"]


def test_webhook_of_a_deleted_dataset_is_paused(
    client: Client, service: Service, register: Register, receiver: Receiver, orders: str
) -> None:
    webhook = register()
    receiver.answer(503, headers={"Retry-After": "3600"})
    write(client, service, {"id": 1, "note": "a"})
    assert client.delete(orders).status_code == 204
    make_due(client, service)
    service.work()
    assert state_of(client, webhook)["state"] == "paused"
    assert state_of(client, webhook)["error"]["type"] == "/problems/not-found"
    assert len(receiver.messages) == 1
