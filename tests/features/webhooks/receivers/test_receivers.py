"""What distinguishes the kinds of receivers, without a receiver: secrets, redeliveries, and the times of retries."""

from __future__ import annotations

import pytest

from app.features.webhooks.compose import receivers
from app.features.webhooks.errors import InvalidWebhook
from app.features.webhooks.ports import Receiver
from app.features.webhooks.retries import RetryRules
from app.features.webhooks.values import ReceiverKind, Reply, WebhookDefinition
from app.infra.settings import Settings

SETTINGS = Settings(database_url="postgresql://", redis_url="redis://")
NO_ANSWER = Reply(status=None, error="nobody is there", seconds=0.1)


def receiver(kind: ReceiverKind) -> Receiver:
    return receivers(SETTINGS)[kind]


def rules(*after_seconds: float) -> RetryRules:
    return RetryRules(after_seconds=after_seconds, dead_max=3)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://hooks.example.com/kafka://x", ReceiverKind.URL),
        ("kafka://broker.example.com:9092/orders", ReceiverKind.TOPIC),
    ],
)
def test_url_determines_the_kind_of_the_receiver(url: str, kind: ReceiverKind) -> None:
    assert WebhookDefinition(url=url).receiver_kind is kind


def test_each_kind_has_a_receiver() -> None:
    assert receivers(SETTINGS).keys() == set(ReceiverKind)


def test_secret_that_signs_is_generated_by_default_and_has_a_form() -> None:
    url = receiver(ReceiverKind.URL)
    generated = url.secret_of(None)
    assert url.secret_of(generated) == generated != url.new_secret()
    with pytest.raises(InvalidWebhook, match="/secret: expected whsec_"):
        url.secret_of("open sesame")


def test_secret_of_a_topic_is_a_password_that_only_its_brokers_change() -> None:
    topic = receiver(ReceiverKind.TOPIC)
    assert (topic.secret_of("open sesame"), topic.secret_of(None)) == ("open sesame", "")
    with pytest.raises(InvalidWebhook, match="/url: the secret of a topic"):
        topic.new_secret()


def test_single_messages_are_sent_again_to_urls_only() -> None:
    receiver(ReceiverKind.URL).check_redelivery()
    with pytest.raises(InvalidWebhook, match="/url: a topic gets its messages in order"):
        receiver(ReceiverKind.TOPIC).check_redelivery()


def test_message_to_a_url_is_given_up_after_the_last_time() -> None:
    url = receiver(ReceiverKind.URL)
    seconds = [url.retry_seconds(rules(10.0, 1_000.0), attempts, NO_ANSWER) for attempts in range(3)]
    assert seconds[:2] == [pytest.approx(10, rel=0.11), pytest.approx(1_000, rel=0.11)]
    assert seconds[2] is None


def test_message_to_a_topic_is_never_given_up_and_tried_every_minute() -> None:
    topic = receiver(ReceiverKind.TOPIC)
    seconds = [topic.retry_seconds(rules(10.0, 1_000.0), attempts, NO_ANSWER) for attempts in range(4)]
    assert seconds == [pytest.approx(10, rel=0.11), 60.0, 60.0, 60.0]
    assert topic.retry_seconds(rules(), 0, NO_ANSWER) == 60.0
