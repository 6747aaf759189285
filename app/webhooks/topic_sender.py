"""Writing webhook messages to topics of Kafka, at brokers that are checked as other receivers are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.format.errors import SourceFailed, SourceUnavailable
from app.kafka.connection import Brokers, Cluster
from app.kafka.offsets import NoTopic
from app.kafka.writer import OutMessage, TopicWriter
from app.outbound.addresses import Rules
from app.webhooks.values import RefusedUrl, Reply, TopicAddress, TopicOptions, Webhook, WebhookDefinition

_TOTAL_SECONDS_MAX: Final = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicSender:
    """Writes to brokers that the rules admit."""

    rules: Rules

    def check(self, definition: WebhookDefinition) -> None:
        """Raises RefusedUrl if nothing may be sent there, as things are now."""
        try:
            self._brokers(definition, "")[0].check()
        except (SourceFailed, SourceUnavailable) as error:
            raise RefusedUrl(error.detail) from None
        except ValueError as error:
            raise RefusedUrl(str(error)) from None

    def test(self, webhook: Webhook, password: str) -> Reply:
        """Whether the topic can be found. It gets no message."""
        return _replied(lambda: self._writer(webhook, password).check())

    def send(
        self, webhook: Webhook, password: str, delivery_id: str, messages: Sequence[OutMessage]
    ) -> Reply:
        """Writes the messages of a delivery in one transaction, unless that was done before.

        A failure of any sort is a reply without success.
        """

        def write() -> None:
            self._writer(webhook, password).write(delivery_id, messages, _TOTAL_SECONDS_MAX)

        return _replied(write)

    def _writer(self, webhook: Webhook, password: str) -> TopicWriter:
        brokers, topic = self._brokers(webhook.definition, password)
        return TopicWriter(brokers, topic, f"headwater-{webhook.id}")

    def _brokers(self, definition: WebhookDefinition, password: str) -> tuple[Brokers, str]:
        """Raises ValueError if the URL is not that of a topic."""
        address = TopicAddress.of(definition.url)
        options = definition.kafka or TopicOptions()
        cluster = Cluster(
            servers=address.servers,
            protocol=options.security_protocol,
            mechanism=options.sasl_mechanism,
            username=options.username,
            password=password,
            authority=options.certificate_authority,
        )
        return Brokers.of(cluster, self.rules), address.topic


def _replied(call: Callable[[], None]) -> Reply:
    started = time.monotonic()
    error, refused = None, False
    try:
        call()
    except (SourceFailed, SourceUnavailable) as fault:
        error, refused = fault.detail, isinstance(fault, SourceFailed | NoTopic)
    return Reply(status=None, error=error, refused=refused, seconds=time.monotonic() - started)
