"""The client registers webhooks and looks after them."""

from __future__ import annotations

import pytest

from headwater_client import Dataset, Headwater, MaxLag, Problem
from tests.support.receiver import receiving
from tests.support.waiting import until


def test_webhooks_are_created_redelivered_changed_and_deleted(
    headwater: Headwater, orders: Dataset, service
) -> None:
    with receiving() as receiver, service.working():
        webhook = headwater.create_webhook(
            orders,
            receiver.url,
            delivery_format="upsert",
            columns=["id"],
            where="id > 0",
            max_lag=MaxLag(changes=5),
        )
        assert webhook.max_lag.changes == 5
        receiver.answer(500, 500, 500)
        headwater.write_rows(orders, [{"id": 0, "note": "a"}, {"id": 1, "note": "b"}], wait=30)
        until(lambda: headwater.get_webhook(webhook).failures, "the message to be given up")
        [dead] = headwater.deliveries(webhook, state="dead")
        assert (dead.attempts, dead.status) == (3, 500)
        assert headwater.redeliver_dead(webhook) == 1
        until(lambda: list(headwater.deliveries(webhook, state="delivered")), "the message")
        assert receiver.changes[-1]["row"] == {"id": 1}
        assert receiver.messages[-1].signatures_of(webhook.secret) == 1
        assert headwater.redeliver(dead).id == dead.id
        until(lambda: len(receiver.messages) == 5, "the message, again")
        secret = headwater.rotate_webhook_secret(webhook)
        assert headwater.try_webhook(webhook).delivered
        test = headwater.webhook_attempts(webhook)[0]
        assert (test.delivery, test.status, test.error) == (None, 200, None)
        assert receiver.messages[-1].signatures_of(secret) == 1
        assert headwater.get_delivery(webhook, dead.id).webhook_id == webhook.id

        paused = headwater.change_webhook(
            webhook, state="paused", description="until Monday", delivery_format="retract"
        )
        assert (paused.state, paused.description) == ("paused", "until Monday")
        assert (webhook.delivery_format, paused.delivery_format) == ("upsert", "retract")
        with pytest.raises(Problem) as refusal:
            headwater.change_webhook(webhook, state="active")
        assert refusal.value.code == "precondition-failed"
        assert [each.id for each in headwater.webhooks(orders)] == [webhook.id]
        headwater.delete_webhook(webhook)
        assert list(headwater.webhooks()) == []


def test_alerts_of_all_datasets_and_of_one_are_subscribed_to(headwater: Headwater, orders: Dataset) -> None:
    with receiving() as receiver:
        everything = headwater.create_webhook(None, receiver.url, events="alerts")
        one = headwater.create_webhook(orders, receiver.url, events="alerts")
        assert everything.dataset is None
        assert one.dataset is not None
        assert (one.dataset.name, one.events) == (orders.name, "alerts")
        assert {each.id for each in headwater.webhooks()} == {everything.id, one.id}
        assert [each.id for each in headwater.webhooks(orders)] == [one.id]
        assert headwater.try_webhook(everything).delivered
        for webhook in (everything, one):
            headwater.delete_webhook(webhook)
