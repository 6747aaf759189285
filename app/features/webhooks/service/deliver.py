"""Pushing feeds to webhooks: one message after another, each until it has arrived or is given up."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.consumers.followers import Consumer
from app.features.webhooks.ports import Receiver
from app.features.webhooks.repository.deliveries import DeliveryStore
from app.features.webhooks.retries import RetryRules
from app.features.webhooks.service.message import Messages
from app.features.webhooks.values import (
    GONE,
    DeliveryWork,
    FormattedDelivery,
    MessageContent,
    ReceiverKind,
    Reply,
    WebhookMessage,
    WebhookState,
    given_up,
)
from app.infra.errors import Unavailable
from app.infra.files.errors import without_path
from app.infra.identifiers import new_id
from app.kernel.format.errors import Fault, HeadwaterError

_log = logging.getLogger(__name__)
# While an earlier message waits to be sent again, new changes are looked for so often: commits wake only a follower
# that waits for nothing else.
_NEW_CHANGES_POLL_SECONDS: Final = 5.0
# How long one webhook is served at a time. With the last attempts that is well within the time that it is held.
_SERVE_SECONDS: Final = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliverWebhooks:
    """The follower of kinds `webhook` and `partition_webhook`, and of webhooks that send alerts.

    A message is made durable before it is sent, and the position moves once it has ended. A worker that dies in between
    leaves it to the next, which sends the same message with the same id.
    """

    catalog: DatasetLookup
    deliveries: DeliveryStore
    messages: Messages
    receivers: Mapping[ReceiverKind, Receiver]
    rules: RetryRules

    def follow(self, tenant_id: str, consumer: Consumer) -> float | None:
        """Sends what is due, for a few seconds. See `Follower`."""
        webhook_id = consumer.name.partition(":")[2]
        ends = time.monotonic() + _SERVE_SECONDS
        may_send = True
        while True:
            work = self.deliveries.work(tenant_id, webhook_id)
            if work is None or work.webhook.state is WebhookState.PAUSED:
                return math.inf
            wait = _wait(work)
            if wait != 0 or not may_send or time.monotonic() >= ends:
                return wait
            try:
                dataset_id = work.webhook.dataset_id
                dataset = None if dataset_id is None else self.catalog.get(tenant_id, dataset_id)
                may_send = self._send_due(tenant_id, dataset, consumer, work)
            except Unavailable:
                raise
            except HeadwaterError as error:
                # It would fail again and again: a filter that names a column which was dropped, a feed cut past it.
                self.deliveries.pause(tenant_id, webhook_id, Fault.of(_shown(work, error)))

    def _send_due(
        self, tenant_id: str, dataset: Dataset | None, consumer: Consumer, work: DeliveryWork
    ) -> bool:
        """One attempt at the next message, and one at an earlier message that is to be sent again.

        False if an attempt failed, so that the receiver gets no other request at once, or the claim was lost.
        """
        if not self._next(tenant_id, dataset, consumer, work):
            return False
        if work.redelivery is None or work.redelivery_seconds:
            return True
        return self._redeliver(tenant_id, dataset, work, work.redelivery)

    def _next(self, tenant_id: str, dataset: Dataset | None, consumer: Consumer, work: DeliveryWork) -> bool:
        if work.next is not None:
            if work.next_seconds:
                return True
            content = self.messages.content_of(tenant_id, dataset, work.webhook.definition, work.next)
            return self._attempt(tenant_id, dataset, work, work.next, content)
        place = work.webhook.place
        batch = self.messages.next_batch(tenant_id, dataset, work.webhook)
        if batch.content is not None:
            delivery = self.deliveries.begin(
                tenant_id, consumer, place, batch.until, new_id(), batch.delivery_format
            )
            return delivery is not None and self._attempt(tenant_id, dataset, work, delivery, batch.content)
        if batch.until != place:
            return self.deliveries.skip(tenant_id, consumer, place, batch.until)
        return not work.webhook.behind

    def _redeliver(
        self, tenant_id: str, dataset: Dataset | None, work: DeliveryWork, delivery: FormattedDelivery
    ) -> bool:
        try:
            content = self.messages.content_of(tenant_id, dataset, work.webhook.definition, delivery)
        except Unavailable:
            raise
        except HeadwaterError as error:
            # Its changes have expired; those at the position may be available.
            reply = Reply(status=None, error=_shown(work, error).detail, seconds=0.0)
            self._failed(tenant_id, delivery, reply, None)
            return True
        return self._attempt(tenant_id, dataset, work, delivery, content)

    def _attempt(
        self,
        tenant_id: str,
        dataset: Dataset | None,
        work: DeliveryWork,
        delivery: FormattedDelivery,
        content: MessageContent,
    ) -> bool:
        """Whether the message arrived."""
        webhook = work.webhook
        receiver = self.receivers[webhook.definition.receiver_kind]
        record_key = () if dataset is None else dataset.definition.record_key
        message = WebhookMessage(delivery, content, record_key)
        reply = receiver.send(webhook, work.credentials, message)
        if reply.delivered:
            self.deliveries.delivered(tenant_id, delivery, reply)
        elif reply.status == GONE or (reply.permanent and delivery.attempts + 1 >= self.rules.dead_max):
            self._failed(tenant_id, delivery, reply, 0.0)
            self.deliveries.pause(tenant_id, webhook.id, Fault.of(given_up(0, reply)))
        else:
            seconds = receiver.retry_seconds(self.rules, delivery.attempts, reply)
            self._failed(tenant_id, delivery, reply, seconds)
        return reply.delivered

    def _failed(
        self, tenant_id: str, delivery: FormattedDelivery, reply: Reply, retry_seconds: float | None
    ) -> None:
        _log.info(
            "webhook %s, message %s, attempt %d: %s",
            delivery.webhook_id,
            delivery.id,
            delivery.attempts + 1,
            # What others say may look like lines of a log.
            reply.status or repr(reply.error),
        )
        self.deliveries.failed(
            tenant_id, delivery, reply, retry_seconds=retry_seconds, dead_max=self.rules.dead_max
        )


def _shown(work: DeliveryWork, error: HeadwaterError) -> HeadwaterError:
    """The error as those that see the webhook may see it."""
    if not work.webhook.access.restricted:
        return error
    _log.warning("webhook %s: %s", work.webhook.id, error.detail)
    return without_path(error)


def _wait(work: DeliveryWork) -> float | None:
    """When the webhook is due again: see `Follower.follow`."""
    delays = [seconds for seconds in (work.next_seconds, work.redelivery_seconds) if seconds is not None]
    if work.next is None and work.webhook.behind:
        delays.append(0.0)
    elif work.next is None and delays:
        delays.append(_NEW_CHANGES_POLL_SECONDS)
    return min(delays, default=None)
