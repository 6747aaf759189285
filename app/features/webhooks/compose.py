"""Composes the use cases of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.compose import read_memory, read_snapshots, table_walk
from app.core.consumers.followers import ConsumerKind, Follower
from app.core.feature.feature import Feature, Participants, Worker
from app.core.platform import Platform
from app.features.partitions.compose import partitions
from app.features.webhooks.ports import Receiver
from app.features.webhooks.receivers.http_sender import HttpSender
from app.features.webhooks.receivers.topic import TopicReceiver
from app.features.webhooks.receivers.topic_sender import TopicSender
from app.features.webhooks.receivers.url import UrlReceiver
from app.features.webhooks.repository.alert_feed import AlertFeedStore
from app.features.webhooks.repository.alert_followers import AlertFollowerStore
from app.features.webhooks.repository.deliveries import DeliveryStore
from app.features.webhooks.repository.readers import WebhookReaders
from app.features.webhooks.retries import RetryRules
from app.features.webhooks.service.deliver import DeliverWebhooks
from app.features.webhooks.service.message import Messages
from app.features.webhooks.values import ReceiverKind
from app.infra.outbound.addresses import Rules
from app.infra.settings import Settings

# Messages given up in a row after which a webhook is paused.
_DEAD_MAX: Final = 3


def _followers(worker: Worker[object]) -> dict[ConsumerKind, Follower]:
    deliver = deliver_webhooks(worker.platform)
    return {ConsumerKind.WEBHOOK: deliver, ConsumerKind.PARTITION_WEBHOOK: deliver}


def alert_followers(platform: Platform) -> AlertFollowerStore:
    """The followers of alerts. Those of changes and of partitions are consumers of datasets."""
    return AlertFollowerStore(platform.database)


def alert_feed(platform: Platform) -> AlertFeedStore:
    """The alerts of tenants."""
    return AlertFeedStore(platform.database)


def deliver_webhooks(platform: Platform) -> DeliverWebhooks:
    """The follower of all webhooks."""
    settings = platform.settings
    feed = read_snapshots(platform, table_walk(platform, read_memory(platform)))
    alerts = alert_feed(platform)
    return DeliverWebhooks(
        catalog=platform.stores.catalog,
        deliveries=DeliveryStore(platform.database, keep_seconds=settings.webhook_keep_seconds),
        messages=Messages(
            read_feed=feed,
            read_events=partitions(platform).events,
            alerts_after=alerts.after,
            alert=alerts.event,
        ),
        receivers=receivers(settings),
        rules=RetryRules(after_seconds=settings.webhook_retry_seconds, dead_max=_DEAD_MAX),
    )


def receivers(settings: Settings) -> Mapping[ReceiverKind, Receiver]:
    """All kinds of receivers, which connect to what the settings admit."""
    rules = Rules.of(settings.webhook_allow, http=settings.webhook_http, setting="HEADWATER_WEBHOOK")
    return {
        ReceiverKind.URL: UrlReceiver(sender=HttpSender(rules=rules)),
        ReceiverKind.TOPIC: TopicReceiver(sender=TopicSender(rules=rules)),
    }


FEATURE: Final[Feature[object]] = Feature(
    name="webhooks", participants=Participants(readers=WebhookReaders()), followers=_followers
)
