"""Webhooks of a tenant: register, change and test them, and list their messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Final

import msgspec

from app.access.errors import PreconditionFailed
from app.access.tenants.values import seen_in_part
from app.core.catalog.ports import DatasetLookup
from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.changes.errors import NoFeed
from app.core.changes.positions import FromTime, FromVersion, ReaderStart, SnapshotPosition
from app.core.changes.values import DeliveryFormat
from app.core.consumers.values import MaxLag
from app.features.webhooks.errors import InvalidWebhook
from app.features.webhooks.repository.webhooks import WebhookStore
from app.features.webhooks.sender import HttpSender
from app.features.webhooks.service.avro_messages import avro_parts
from app.features.webhooks.service.message import test_body
from app.features.webhooks.service.signing import key_of, message_headers, new_secret
from app.features.webhooks.topic_sender import TopicSender
from app.features.webhooks.values import (
    TOPIC_SCHEME,
    Delivery,
    DeliveryState,
    RefusedUrl,
    Registration,
    Reply,
    TopicAddress,
    TopicFormat,
    TopicOptions,
    TopicValue,
    Webhook,
    WebhookChange,
    WebhookDefinition,
    WebhookEvents,
    WebhookState,
)
from app.infra.identifiers import new_id
from app.kernel.changelog.change_selection import ChangeSelection
from app.kernel.changelog.forms import ChangeForm, in_form
from app.kernel.codecs.messages.reading import UnsupportedSchema
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import FieldError
from app.kernel.format.partition.members import key_fields
from app.kernel.paging import Page
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess

_IN_ORDER: Final = "a topic gets its messages in order; PATCH `since` to write changes again"
OVERLAP_SECONDS: Final = 86_400.0
"""How long the secret before signs along after a rotation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhooks:
    """The webhooks of a tenant. `wake` is called after one may have something to send."""

    catalog: DatasetLookup
    index: WebhookStore
    sender: HttpSender
    topics: TopicSender
    wake: Callable[[], None]

    def create(
        self, dataset: Dataset, new: Registration, access: RowAccess = EVERYTHING
    ) -> tuple[Webhook, str]:
        """The webhook and its secret, which is not returned again. It sends what the access shows, for ever.

        Raises InvalidWebhook, InvalidRequest, InvalidFilter, NoFeed, NotFound, OffsetAhead, OffsetExpired.
        """
        secret = _secret_of(new)
        if (_registry_user(new.definition) is None) != (new.registry_password is None):
            raise _invalid("/registry_password", "kafka.registry_username and a password need each other")
        _check_start(new.definition, new.since)
        delivery_format = msgspec.structs.replace(new.definition.delivery_format, access=access)
        definition = msgspec.structs.replace(new.definition, delivery_format=delivery_format)
        self._check(dataset, definition, new.max_lag)
        webhook = self.index.add(
            dataset.tenant_id,
            new_id(),
            dataset.id,
            definition,
            secret,
            since=new.since,
            max_lag=new.max_lag,
            registry_password=new.registry_password,
        )
        self.wake()
        return webhook, secret

    def get(self, tenant_id: str, webhook_id: str) -> Webhook:
        """Raises NotFound."""
        return self.index.get(tenant_id, webhook_id)

    def list(
        self,
        granted_datasets: GrantedDatasets,
        reference: str | None,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """Webhook items of granted datasets, the newest first; of one dataset, unless None. Raises NotFound.

        Of a dataset that the principal sees in part, those that send no more than it sees.
        """
        tenant_id = granted_datasets.principal.tenant_id
        page = self.index.list(
            tenant_id,
            None if reference is None else granted_datasets.seen(tenant_id, reference)[0].id,
            page_size=page_size,
            page_token=page_token,
            patterns=granted_datasets.principal.patterns(granted_datasets.scope),
        )
        shows = cache(granted_datasets.shows)
        return page.filtered(lambda webhook: shows(webhook.dataset_id, webhook.access))

    def change(
        self,
        tenant_id: str,
        webhook_id: str,
        apply: Callable[[Webhook], WebhookChange],
        *,
        revision: int,
    ) -> Webhook:
        """Changes a webhook that must be at `revision` still. One that is or was paused starts without failures.

        Raises NotFound, PreconditionFailed, InvalidWebhook, InvalidRequest, InvalidFilter, NoFeed, OffsetAhead,
        OffsetExpired.
        """
        before = self.index.get(tenant_id, webhook_id)
        if before.revision != revision:
            raise PreconditionFailed(
                f"The webhook is at revision {before.revision}, not {revision}", revision=before.revision
            )
        change = apply(before)
        if change.definition.of_topic != before.definition.of_topic:
            raise _invalid("/url", "a webhook of a topic and one of a receiver cannot replace each other")
        if _registry_user(change.definition) != _registry_user(before.definition):
            raise _invalid(
                "/kafka/registry_username",
                "another registry or user has another password: register another webhook",
            )
        _check_start(change.definition, change.since)
        if change.state is WebhookState.ACTIVE or change.definition != before.definition:
            dataset = self.catalog.get(tenant_id, before.dataset_id)
            self._check(dataset, change.definition, change.max_lag)
        webhook = self.index.change(
            tenant_id,
            webhook_id,
            revision=revision,
            definition=change.definition,
            state=change.state,
            max_lag=change.max_lag,
            since=change.since,
        )
        self.wake()
        return webhook

    def rotate(self, tenant_id: str, webhook_id: str) -> str:
        """Another secret; the one before signs along for OVERLAP_SECONDS. Raises NotFound, InvalidWebhook."""
        self._refuse_topic(
            tenant_id, webhook_id, "the secret of a topic is a password, which its brokers set"
        )
        secret = new_secret()
        self.index.rotate(tenant_id, webhook_id, secret, overlap_seconds=OVERLAP_SECONDS)
        return secret

    def delete(self, tenant_id: str, webhook_id: str, *, revision: int | None) -> None:
        """Raises NotFound, PreconditionFailed."""
        self.index.delete(tenant_id, webhook_id, revision=revision)

    def send_test(self, tenant_id: str, webhook_id: str) -> Reply:
        """The result of a message without changes that is sent now, also by a paused webhook.

        Raises NotFound, and Unavailable if the request cannot be recorded; then nothing is sent.
        """
        webhook = self.index.get(tenant_id, webhook_id)
        if webhook.definition.of_topic:
            credentials = self.index.credentials(tenant_id, webhook_id)
            self.index.sending()
            return self.topics.test(webhook, credentials)
        keys = [key_of(secret) for secret in self.index.credentials(tenant_id, webhook_id).secrets]
        body = test_body(webhook, datetime.now(UTC))
        self.index.sending()
        return self.sender.send(webhook.definition.url, message_headers(keys, new_id(), body), body)

    def deliveries(
        self,
        tenant_id: str,
        webhook_id: str,
        state: DeliveryState | None,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """Delivery items, the newest first. Raises NotFound."""
        return self.index.deliveries(tenant_id, webhook_id, state, page_size=page_size, page_token=page_token)

    def delivery(self, tenant_id: str, webhook_id: str, delivery_id: str) -> Delivery:
        """Raises NotFound."""
        return self.index.delivery(tenant_id, webhook_id, delivery_id)

    def redeliver(self, tenant_id: str, webhook_id: str, delivery_id: str) -> Delivery:
        """Has a message that has ended sent again, beside those that come. Raises NotFound, InvalidWebhook."""
        self._refuse_topic(tenant_id, webhook_id, _IN_ORDER)
        self.index.redeliver(tenant_id, webhook_id, delivery_id)
        self.wake()
        return self.index.delivery(tenant_id, webhook_id, delivery_id)

    def redeliver_dead(self, tenant_id: str, webhook_id: str) -> int:
        """Has all dead messages sent again; returns how many. Raises NotFound, InvalidWebhook."""
        self._refuse_topic(tenant_id, webhook_id, _IN_ORDER)
        count = self.index.redeliver(tenant_id, webhook_id, None)
        self.wake()
        return count

    def _check(self, dataset: Dataset, definition: WebhookDefinition, max_lag: MaxLag) -> None:
        if definition.events is WebhookEvents.PARTITIONS:
            _check_partitions(dataset, definition.delivery_format, max_lag)
        else:
            selection = _selection(dataset, definition.delivery_format)
            if definition.of_topic:
                _check_messages(dataset, definition, selection)
        if definition.of_topic:
            self._check_topic(dataset, definition)
        elif definition.kafka is not None:
            raise _invalid("/kafka", f"this is of topics; leave it out, or send a url with {TOPIC_SCHEME}")
        try:
            if definition.of_topic:
                self.topics.check(definition)
            else:
                self.sender.check(definition.url)
        except RefusedUrl as error:
            raise _invalid("/url", str(error)) from None

    def _check_topic(self, dataset: Dataset, definition: WebhookDefinition) -> None:
        _check_topic(dataset, definition)
        options = definition.kafka or TopicOptions()
        if options.registry_url is not None:
            try:
                self.topics.check_registry(options)
            except RefusedUrl as error:
                raise _invalid("/kafka/registry_url", str(error)) from None

    def _refuse_topic(self, tenant_id: str, webhook_id: str, reason: str) -> None:
        if self.index.get(tenant_id, webhook_id).definition.of_topic:
            raise _invalid("/url", reason)


def _secret_of(new: Registration) -> str:
    """What signs messages, or the password for a topic. Raises InvalidWebhook."""
    if new.definition.of_topic:
        return new.secret or ""
    secret = new.secret or new_secret()
    try:
        key_of(secret)
    except ValueError as error:
        raise _invalid("/secret", str(error)) from None
    return secret


def _check_topic(dataset: Dataset, definition: WebhookDefinition) -> None:
    """Raises InvalidWebhook for what messages of a topic cannot have."""
    if definition.events is not WebhookEvents.CHANGES:
        raise _invalid("/events", "a topic gets changes; events of partitions need a URL with https")
    delivery_format, options = definition.delivery_format, definition.kafka or TopicOptions()
    key = key_fields(dataset.definition)
    if delivery_format.columns is not None and not set(key) <= set(delivery_format.columns):
        raise _invalid(
            "/columns", f"messages of a topic have the record key as key; include {', '.join(key)}"
        )
    if set(key) & set(delivery_format.access.masked):
        raise seen_in_part(dataset.definition.name)
    if options.value is TopicValue.ROW and (delivery_format.form is not ChangeForm.UPSERT or not key):
        raise _invalid("/kafka/value", "rows alone need the form upsert, and a dataset with a record key")
    if options.security_protocol.identifies != (options.username is not None):
        raise _invalid("/kafka/username", "a user name and sasl_plaintext or sasl_ssl need each other")

    _check_registry(options)


def _check_registry(options: TopicOptions) -> None:
    of_avro = options.format is TopicFormat.AVRO
    if of_avro and options.registry_url is None:
        raise _invalid("/kafka/registry_url", "format avro requires a schema registry")
    if not of_avro and options.registry_url is not None:
        raise _invalid("/kafka/registry_url", "format json has no schemas; leave it out, or send format avro")
    if options.registry_url is None and options.registry_username is not None:
        raise _invalid("/kafka/registry_username", "there is no registry_url; leave it out")


def _registry_user(definition: WebhookDefinition) -> tuple[str | None, str | None] | None:
    """The registry and the user there; None without a user."""
    options = definition.kafka or TopicOptions()
    return None if options.registry_username is None else (options.registry_url, options.registry_username)


def _check_messages(dataset: Dataset, definition: WebhookDefinition, selection: ChangeSelection) -> None:
    """Raises InvalidWebhook if Avro cannot represent the changes."""
    options, delivery_format = definition.kafka or TopicOptions(), definition.delivery_format
    if options.format is not TopicFormat.AVRO:
        return
    events = in_form(selection.changes_schema().empty_table(), delivery_format.form, dataset.definition.name)
    message_format = msgspec.structs.replace(
        delivery_format, vocabulary=delivery_format.vocabulary or dataset.definition.changelog.vocabulary
    )
    topic = TopicAddress.of(definition.url).topic
    try:
        avro_parts(events.table, message_format, dataset.definition.record_key, options.value, topic)
    except UnsupportedSchema as error:
        raise _invalid("/kafka/format", f"Avro cannot represent the changes: {error}") from None


def _check_start(definition: WebhookDefinition, since: ReaderStart | None) -> None:
    if definition.events is not WebhookEvents.PARTITIONS:
        return
    if isinstance(since, SnapshotPosition):
        raise _invalid("/since", "partitions have no rows to start with; send an offset, `earliest` or `now`")
    if isinstance(since, FromVersion | FromTime):
        member = "since_version" if isinstance(since, FromVersion) else "since_time"
        raise _invalid(f"/{member}", "positions of this webhook count events of partitions; send `since`")


def _check_partitions(dataset: Dataset, delivery_format: DeliveryFormat, max_lag: MaxLag) -> None:
    if dataset.definition.services.partition_done is None:
        raise _invalid(
            "/events", "the dataset has no services.partition_done, so no partition of it is ever done"
        )
    usual = DeliveryFormat()
    members = ("form", "columns", "where", "partitions")
    extra_members = [name for name in members if getattr(delivery_format, name) != getattr(usual, name)]
    if max_lag != MaxLag():
        extra_members.append("max_lag")
    if extra_members:
        raise _invalid(f"/{extra_members[0]}", "this is of changes; leave it out, or let `events` be changes")
    if delivery_format.access.restricted:
        # The paths of partitions have values of all rows.
        raise seen_in_part(dataset.definition.name)


def _selection(dataset: Dataset, delivery_format: DeliveryFormat) -> ChangeSelection:
    """Raises NoFeed, InvalidRequest, InvalidFilter, MaskedColumn, GrantNotApplicable, RestrictedGrant."""
    if dataset.definition.changelog.producer is ChangelogProducer.NONE:
        raise NoFeed("a webhook of changes needs a feed, and changelog.producer of the dataset is 'none'")
    return ChangeSelection.of(
        dataset.definition,
        dataset.definition.schema,
        columns=delivery_format.columns,
        where=delivery_format.where,
        partitions=delivery_format.partitions,
        access=delivery_format.access,
    )


def _invalid(pointer: str, detail: str) -> InvalidWebhook:
    return InvalidWebhook(f"{pointer}: {detail}", [FieldError(pointer=pointer, detail=detail)])
