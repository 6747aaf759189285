"""Webhooks of a tenant: register, change and test them, and list their messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
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
from app.features.webhooks.ports import Receiver
from app.features.webhooks.repository.webhooks import WebhookStore
from app.features.webhooks.values import (
    AlertPage,
    Delivery,
    DeliveryState,
    ReceiverKind,
    Registration,
    Reply,
    Webhook,
    WebhookAttempt,
    WebhookChange,
    WebhookDefinition,
    WebhookEvents,
    WebhookState,
)
from app.infra.identifiers import new_id
from app.kernel.changelog.change_selection import ChangeSelection
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.paging import Page
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess

OVERLAP_SECONDS: Final = 86_400.0
"""How long the secret before signs along after a rotation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhooks:
    """The webhooks of a tenant. `wake` is called after one may have something to send.

    `alerts_after`: a number of alerts at most that a webhook sends from a position on.
    """

    catalog: DatasetLookup
    index: WebhookStore
    receivers: Mapping[ReceiverKind, Receiver]
    alerts_after: Callable[[str, str, int, int], AlertPage]
    wake: Callable[[], None]

    def create(
        self, tenant_id: str, dataset: Dataset | None, new: Registration, access: RowAccess = EVERYTHING
    ) -> tuple[Webhook, str]:
        """The webhook and its secret, which is not returned again. It sends what the access shows, for ever.

        `dataset`: None for the alerts of all datasets of the tenant.

        Raises InvalidWebhook, InvalidRequest, InvalidFilter, NoFeed, NotFound, OffsetAhead, OffsetExpired.
        """
        secret = self._receiver(new.definition).secret_of(new.secret)
        if (new.definition.registry_user is None) != (new.registry_password is None):
            raise InvalidWebhook.at(
                "/registry_password", "kafka.registry_username and a password need each other"
            )
        _check_start(new.definition, new.since)
        delivery_format = msgspec.structs.replace(new.definition.delivery_format, access=access)
        definition = msgspec.structs.replace(new.definition, delivery_format=delivery_format)
        self._check(dataset, definition, new.max_lag)
        webhook = self.index.add(
            tenant_id,
            new_id(),
            None if dataset is None else dataset.id,
            definition,
            secret,
            schema_id=None if dataset is None else dataset.definition.schema.id,
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
        dataset_ids: Collection[str] | None = None,
        state: WebhookState | None = None,
    ) -> Page:
        """Webhook items of granted datasets, the newest first; of one dataset, unless None. Raises NotFound.

        Those of the alerts of all datasets are for principals without grants.

        `dataset_ids`: those of these datasets only; `state`: those in it. Of a dataset that the principal sees in part,
        those that send no more than it sees.
        """
        tenant_id = granted_datasets.principal.tenant_id
        page = self.index.list(
            tenant_id,
            None if reference is None else granted_datasets.seen(tenant_id, reference)[0].id,
            page_size=page_size,
            page_token=page_token,
            patterns=granted_datasets.principal.patterns(granted_datasets.scope),
            dataset_ids=dataset_ids,
            state=state,
        )
        shows = cache(granted_datasets.shows)
        return page.filtered(
            lambda webhook: webhook.dataset_id is None or shows(webhook.dataset_id, webhook.access)
        )

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
        if change.definition.receiver_kind is not before.definition.receiver_kind:
            raise InvalidWebhook.at(
                "/url", "a webhook of a topic and one of a receiver cannot replace each other"
            )
        if change.definition.registry_user != before.definition.registry_user:
            raise InvalidWebhook.at(
                "/kafka/registry_username",
                "another registry or user has another password: register another webhook",
            )
        _check_start(change.definition, change.since)
        schema_id = None
        if change.state is WebhookState.ACTIVE or change.definition != before.definition:
            dataset = None if before.dataset_id is None else self.catalog.get(tenant_id, before.dataset_id)
            schema_id = None if dataset is None else dataset.definition.schema.id
            self._check(dataset, change.definition, change.max_lag)
        webhook = self.index.change(
            tenant_id,
            webhook_id,
            revision=revision,
            definition=change.definition,
            state=change.state,
            max_lag=change.max_lag,
            schema_id=schema_id,
            since=change.since,
        )
        self.wake()
        return webhook

    def rotate(self, tenant_id: str, webhook_id: str) -> str:
        """Another secret; the one before signs along for OVERLAP_SECONDS. Raises NotFound, InvalidWebhook."""
        secret = self._receiver(self.index.get(tenant_id, webhook_id).definition).new_secret()
        self.index.rotate(tenant_id, webhook_id, secret, overlap_seconds=OVERLAP_SECONDS)
        return secret

    def delete(self, tenant_id: str, webhook_id: str, *, revision: int | None) -> None:
        """Raises NotFound, PreconditionFailed."""
        self.index.delete(tenant_id, webhook_id, revision=revision)

    def send_test(self, tenant_id: str, webhook_id: str) -> Reply:
        """The result of a message without changes that is sent now, also by a paused webhook.

        Raises NotFound, and Unavailable if the request cannot be recorded, before it is sent, or the result after it.
        """
        webhook = self.index.get(tenant_id, webhook_id)
        credentials = self.index.credentials(tenant_id, webhook_id)
        self.index.sending()
        reply = self._receiver(webhook.definition).test(webhook, credentials)
        self.index.tested(tenant_id, webhook_id, reply)
        return reply

    def attempts(self, tenant_id: str, webhook_id: str) -> tuple[WebhookAttempt, ...]:
        """The latest attempts with what was answered, the latest first. Raises NotFound."""
        return self.index.attempts(tenant_id, webhook_id)

    def alerts(self, tenant_id: str, webhook_id: str, since: int | None, limit: int) -> tuple[int, AlertPage]:
        """The position, by default that of the webhook, and the alerts from there on that the webhook sends.

        Raises NotFound, OffsetAhead, and InvalidWebhook for one that sends no alerts.
        """
        webhook = self.index.get(tenant_id, webhook_id)
        if webhook.definition.events is not WebhookEvents.ALERTS:
            detail = (
                f"the webhook sends {webhook.definition.events.value}; register one with `events` of `alerts`"
            )
            raise InvalidWebhook(detail)
        start = webhook.place.offset if since is None else since
        return start, self.alerts_after(tenant_id, webhook_id, start, limit)

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
        self._receiver(self.index.get(tenant_id, webhook_id).definition).check_redelivery()
        self.index.redeliver(tenant_id, webhook_id, delivery_id)
        self.wake()
        return self.index.delivery(tenant_id, webhook_id, delivery_id)

    def redeliver_dead(self, tenant_id: str, webhook_id: str) -> int:
        """Has all dead messages sent again; returns how many. Raises NotFound, InvalidWebhook."""
        self._receiver(self.index.get(tenant_id, webhook_id).definition).check_redelivery()
        count = self.index.redeliver(tenant_id, webhook_id, None)
        self.wake()
        return count

    def _check(self, dataset: Dataset | None, definition: WebhookDefinition, max_lag: MaxLag) -> None:
        selection = None
        if definition.events is WebhookEvents.ALERTS:
            _check_plain(definition.delivery_format, max_lag)
            if dataset is not None and definition.delivery_format.access.restricted:
                # Alerts count rows and changes of all.
                raise seen_in_part(dataset.definition.name)
        elif dataset is None:
            raise InvalidWebhook.at(
                "/dataset", "changes, and events of partitions, are of a dataset: name it"
            )
        elif definition.events is WebhookEvents.PARTITIONS:
            _check_partitions(dataset, definition.delivery_format, max_lag)
        else:
            selection = _selection(dataset, definition.delivery_format)
        self._receiver(definition).check(dataset, definition, selection)

    def _receiver(self, definition: WebhookDefinition) -> Receiver:
        return self.receivers[definition.receiver_kind]


def _check_start(definition: WebhookDefinition, since: ReaderStart | None) -> None:
    if definition.events is WebhookEvents.CHANGES:
        return
    if isinstance(since, SnapshotPosition):
        raise InvalidWebhook.at(
            "/since", "events have no rows to start with; send an offset, `earliest` or `now`"
        )
    if isinstance(since, FromVersion | FromTime):
        member = "since_version" if isinstance(since, FromVersion) else "since_time"
        raise InvalidWebhook.at(f"/{member}", "positions of this webhook count events; send `since`")


def _check_partitions(dataset: Dataset, delivery_format: DeliveryFormat, max_lag: MaxLag) -> None:
    if dataset.definition.services.partition_done is None:
        raise InvalidWebhook.at(
            "/events", "the dataset has no services.partition_done, so no partition of it is ever done"
        )
    _check_plain(delivery_format, max_lag)
    if delivery_format.access.restricted:
        # The paths of partitions have values of all rows.
        raise seen_in_part(dataset.definition.name)


def _check_plain(delivery_format: DeliveryFormat, max_lag: MaxLag) -> None:
    """Raises InvalidWebhook for members that are of changes."""
    usual = DeliveryFormat()
    members = ("form", "columns", "where", "partitions")
    extra_members = [name for name in members if getattr(delivery_format, name) != getattr(usual, name)]
    if max_lag != MaxLag():
        extra_members.append("max_lag")
    if extra_members:
        raise InvalidWebhook.at(
            f"/{extra_members[0]}", "this is of changes; leave it out, or let `events` be changes"
        )


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
