"""Writing webhook messages to topics of Kafka, at brokers that are checked as other receivers are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.features.webhooks.values import (
    ReceiverCredentials,
    RefusedUrl,
    Register,
    Reply,
    TopicAddress,
    TopicOptions,
    Webhook,
    WebhookDefinition,
)
from app.infra.kafka.connection import Brokers, Cluster
from app.infra.kafka.errors import NoTopic, SourceFailed, SourceUnavailable
from app.infra.kafka.registry import RegistryAddress, registry_of
from app.infra.kafka.writer import OutMessage, TopicWriter
from app.infra.outbound.addresses import AddressRefused, Rules
from app.infra.outbound.connector import CONNECT_SECONDS_MAX, Connector

_TOTAL_SECONDS_MAX: Final = 20.0
# For each of two schemas.
_REGISTRY_SECONDS_MAX: Final = 10.0


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

    def check_registry(self, options: TopicOptions) -> None:
        """Raises RefusedUrl if a schema registry may not be connected to, as things are now."""
        try:
            target = self.rules.target(options.registry_url or "")
            Connector(rules=self.rules).addresses(target, CONNECT_SECONDS_MAX)
        except (AddressRefused, OSError) as error:
            raise RefusedUrl(str(error)) from None

    def test(self, webhook: Webhook, credentials: ReceiverCredentials) -> Reply:
        """Whether the topic can be found. It gets no message."""
        return _replied(lambda: self._writer(webhook, credentials).check())

    def send(
        self,
        webhook: Webhook,
        credentials: ReceiverCredentials,
        delivery_id: str,
        make: Callable[[Register], Sequence[OutMessage]],
    ) -> Reply:
        """Writes the messages of a delivery in one transaction, unless that was done before.

        `make`: the messages; it gets a function that registers their schemas. A failure of any sort is a reply without
        success.
        """

        def write() -> None:
            messages = make(self._register(webhook, credentials))
            self._writer(webhook, credentials).write(delivery_id, messages, _TOTAL_SECONDS_MAX)

        return _replied(write)

    def _register(self, webhook: Webhook, credentials: ReceiverCredentials) -> Register:
        options = webhook.definition.kafka or TopicOptions()
        address = RegistryAddress(
            url=options.registry_url or "",
            username=options.registry_username,
            password=credentials.registry_password,
        )

        def register(subject: str, schema: str) -> int:
            return registry_of(address, self.rules).register(subject, schema, _REGISTRY_SECONDS_MAX)

        return register

    def _writer(self, webhook: Webhook, credentials: ReceiverCredentials) -> TopicWriter:
        brokers, topic = self._brokers(webhook.definition, credentials.secrets[0])
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
    start = time.monotonic()
    error, permanent = None, False
    try:
        call()
    except (SourceFailed, SourceUnavailable) as fault:
        error, permanent = fault.detail, isinstance(fault, SourceFailed | NoTopic)
    return Reply(status=None, error=error, permanent=permanent, seconds=time.monotonic() - start)
