"""The receiver of a webhook with a topic of Kafka: changes are written to it, each once and in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

import msgspec

from app.access.tenants.values import seen_in_part
from app.core.catalog.values import Dataset
from app.features.webhooks.errors import InvalidWebhook
from app.features.webhooks.receivers.avro_messages import avro_parts
from app.features.webhooks.receivers.topic_messages import topic_messages
from app.features.webhooks.receivers.topic_sender import TopicSender
from app.features.webhooks.retries import RetryRules
from app.features.webhooks.values import (
    ReceiverCredentials,
    RefusedUrl,
    Reply,
    TopicAddress,
    TopicFormat,
    TopicOptions,
    TopicValue,
    Webhook,
    WebhookDefinition,
    WebhookEvents,
    WebhookMessage,
)
from app.kernel.changelog.change_selection import ChangeSelection
from app.kernel.changelog.delivery_forms import ChangeForm, in_form
from app.kernel.codecs.messages.reading import UnsupportedSchema
from app.kernel.format.partition.members import key_fields

# A topic is written to again soon: it is given up for no outage, and a check costs the brokers little.
_RETRY_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicReceiver:
    """See `Receiver`. The secret is the password for the brokers."""

    sender: TopicSender

    def secret_of(self, secret: str | None) -> str:
        """See `Receiver`: without a password, an empty one."""
        return secret or ""

    def new_secret(self) -> NoReturn:
        """See `Receiver`."""
        raise InvalidWebhook.at("/url", "the secret of a topic is a password, which its brokers set")

    def check(
        self, dataset: Dataset | None, definition: WebhookDefinition, selection: ChangeSelection | None
    ) -> None:
        """See `Receiver`: messages have a key and a form that fit, and brokers and registry may be connected to."""
        if dataset is None or definition.events is not WebhookEvents.CHANGES:
            raise InvalidWebhook.at(
                "/events", "a topic gets changes; events and alerts need a URL with https"
            )
        options = definition.kafka or TopicOptions()
        if selection is not None:
            _check_messages(dataset, definition, options, selection)
        _check_options(dataset, definition, options)
        _check_registry(options)
        if options.registry_url is not None:
            try:
                self.sender.check_registry(options)
            except RefusedUrl as error:
                raise InvalidWebhook.at("/kafka/registry_url", str(error)) from None
        try:
            self.sender.check(definition)
        except RefusedUrl as error:
            raise InvalidWebhook.at("/url", str(error)) from None

    def check_redelivery(self) -> NoReturn:
        """See `Receiver`."""
        raise InvalidWebhook.at(
            "/url", "a topic gets its messages in order; PATCH `since` to write changes again"
        )

    def test(self, webhook: Webhook, credentials: ReceiverCredentials) -> Reply:
        """See `Receiver`: looks up the topic, which gets no message."""
        return self.sender.test(webhook, credentials)

    def send(self, webhook: Webhook, credentials: ReceiverCredentials, message: WebhookMessage) -> Reply:
        """See `Receiver`: writes the changes in one transaction, unless that was done before."""
        return self.sender.send(
            webhook,
            credentials,
            message.delivery.id,
            lambda register: topic_messages(webhook, message, register),
        )

    def retry_seconds(self, rules: RetryRules, attempts: int, reply: Reply) -> float:
        """See `Receiver`: never gives up, since later changes of the keys would be wrong."""
        last = len(rules.after_seconds) - 1
        seconds = rules.retry_seconds(min(attempts, last), reply) if last >= 0 else None
        return _RETRY_SECONDS_MAX if seconds is None else min(seconds, _RETRY_SECONDS_MAX)


def _check_messages(
    dataset: Dataset, definition: WebhookDefinition, options: TopicOptions, selection: ChangeSelection
) -> None:
    """Raises InvalidWebhook if Avro cannot represent the changes, or the URL names no topic."""
    if options.format is not TopicFormat.AVRO:
        return
    delivery_format = definition.delivery_format
    events = in_form(selection.changes_schema().empty_table(), delivery_format.form, dataset.definition.name)
    message_format = msgspec.structs.replace(
        delivery_format, vocabulary=delivery_format.vocabulary or dataset.definition.changelog.vocabulary
    )
    try:
        topic = TopicAddress.of(definition.url).topic
    except ValueError as error:
        raise InvalidWebhook.at("/url", str(error)) from None
    try:
        avro_parts(events.table, message_format, dataset.definition.record_key, options.value, topic)
    except UnsupportedSchema as error:
        raise InvalidWebhook.at("/kafka/format", f"Avro cannot represent the changes: {error}") from None


def _check_options(dataset: Dataset, definition: WebhookDefinition, options: TopicOptions) -> None:
    """Raises InvalidWebhook, RestrictedGrant for what messages of a topic cannot have."""
    delivery_format, key = definition.delivery_format, key_fields(dataset.definition)
    if delivery_format.columns is not None and not set(key) <= set(delivery_format.columns):
        raise InvalidWebhook.at(
            "/columns", f"messages of a topic have the record key as key; include {', '.join(key)}"
        )
    if set(key) & set(delivery_format.access.masked):
        raise seen_in_part(dataset.definition.name)
    if options.value is TopicValue.ROW and (delivery_format.form is not ChangeForm.UPSERT or not key):
        raise InvalidWebhook.at(
            "/kafka/value", "rows alone need the form upsert, and a dataset with a record key"
        )
    if options.security_protocol.identifies != (options.username is not None):
        raise InvalidWebhook.at(
            "/kafka/username", "a user name and sasl_plaintext or sasl_ssl need each other"
        )


def _check_registry(options: TopicOptions) -> None:
    """Raises InvalidWebhook if the format and the schema registry do not go together."""
    of_avro = options.format is TopicFormat.AVRO
    if of_avro and options.registry_url is None:
        raise InvalidWebhook.at("/kafka/registry_url", "format avro requires a schema registry")
    if not of_avro and options.registry_url is not None:
        raise InvalidWebhook.at(
            "/kafka/registry_url", "format json has no schemas; leave it out, or send format avro"
        )
    if options.registry_url is None and options.registry_username is not None:
        raise InvalidWebhook.at("/kafka/registry_username", "there is no registry_url; leave it out")
