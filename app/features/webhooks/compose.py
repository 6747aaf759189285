"""Composes the use cases of webhooks."""

from __future__ import annotations

from collections.abc import Callable

from app.core.compose import read_snapshots
from app.core.consumers.followers import ConsumerKind, Follower
from app.core.platform import Platform
from app.features.partitions.service.partitions import Partitions
from app.features.webhooks.repository.deliveries import DeliveryStore
from app.features.webhooks.repository.webhooks import WebhookStore
from app.features.webhooks.sender import HttpSender
from app.features.webhooks.service.deliver import DeliverWebhooks, RetryRules
from app.features.webhooks.service.message import Messages
from app.features.webhooks.service.webhooks import Webhooks
from app.features.webhooks.topic_sender import TopicSender
from app.infra.files.slices.table_walk import TableWalk
from app.infra.outbound.addresses import Rules
from app.infra.settings import Settings


def webhooks(platform: Platform) -> Webhooks:
    """Webhooks in the API."""
    return Webhooks(
        catalog=platform.stores.catalog,
        index=WebhookStore(platform.database),
        sender=_sender(platform.settings),
        topics=TopicSender(rules=_rules(platform.settings)),
        wake=platform.wake,
    )


def count(platform: Platform) -> Callable[[str], int]:
    """How many webhooks of a tenant, by its id, count against its quota."""
    return WebhookStore(platform.database).count


def dependencies(platform: Platform) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {"webhooks": webhooks(platform)}


def followers(platform: Platform, partitions: Partitions, walk: TableWalk) -> dict[ConsumerKind, Follower]:
    """The kinds of consumer whose changes, or events of partitions, are delivered. `walk`: over rows of tables."""
    settings = platform.settings
    deliver = DeliverWebhooks(
        catalog=platform.stores.catalog,
        deliveries=DeliveryStore(platform.database, keep_seconds=settings.webhook_keep_seconds),
        messages=Messages(read_feed=read_snapshots(platform, walk), read_events=partitions.events),
        sender=_sender(settings),
        topics=TopicSender(rules=_rules(settings)),
        rules=RetryRules(after_seconds=settings.webhook_retry_seconds, dead_max=settings.webhook_dead_max),
    )
    return {ConsumerKind.WEBHOOK: deliver, ConsumerKind.PARTITION_WEBHOOK: deliver}


def _sender(settings: Settings) -> HttpSender:
    return HttpSender(rules=_rules(settings))


def _rules(settings: Settings) -> Rules:
    return Rules.of(settings.webhook_allow, http=settings.webhook_http)
