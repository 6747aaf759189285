"""Webhooks: feeds pushed to URLs, and the deliveries of their messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from headwater_client.models import (
    ChangeForm,
    CreateTopicOptions,
    CreateWebhook,
    Dataset,
    Delivery,
    DeliveryPage,
    DeliveryState,
    MaxLag,
    Redelivered,
    Webhook,
    WebhookAlerts,
    WebhookAttempt,
    WebhookAttempts,
    WebhookEvents,
    WebhookPage,
    WebhookSecret,
    WebhookTest,
    WebhookWithSecret,
)
from headwater_client.transport.connection import Connection, decoded
from headwater_client.transport.walk import Since

_WIRE_NAMES: Final = {"delivery_format": "form"}
AnyWebhook = Webhook | WebhookWithSecret | str
"""A webhook, specified by its value or its id."""


class WebhookCalls(Connection):
    """Registers and manages webhooks."""

    async def create_webhook(
        self,
        dataset: Dataset | str | None,
        url: str,
        *,
        events: WebhookEvents = "changes",
        delivery_format: ChangeForm = "two_event",
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        since: Since | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        batch_changes_max: int = 100,
        secret: str | None = None,
        kafka: CreateTopicOptions | None = None,
        description: str | None = None,
        max_lag: MaxLag | None = None,
        idempotency_key: str | None = None,
    ) -> WebhookWithSecret:
        """Registers a webhook that sends the changes of a dataset to a URL, from now on, or from a position on.

        With a URL `kafka://host:port/topic` it writes them to a topic, as `kafka` specifies; `secret` is the password.

        The position is `since`, or the first change of `since_version` or `since_time` or later. With `events` of
        `partitions` it sends events of partitions, and with `alerts` alerts about the dataset, or about all datasets
        for None; positions count these events. Only this reply has the `secret` that verifies messages.
        """
        new = CreateWebhook(
            dataset=dataset.id if isinstance(dataset, Dataset) else dataset,
            url=url,
            events=events,
            delivery_format=delivery_format,
            columns=None if columns is None else tuple(columns),
            where=where,
            partitions=None if partitions is None else tuple(partitions),
            since=since,
            since_version=since_version,
            since_time=since_time,
            batch_changes_max=batch_changes_max,
            secret=secret,
            kafka=kafka,
            description=description,
            max_lag=max_lag,
        )
        return decoded(WebhookWithSecret, await self._create("/webhooks", new, idempotency_key))

    async def get_webhook(self, webhook: AnyWebhook) -> Webhook:
        """The current state of a webhook."""
        return decoded(Webhook, await self._get(_path(webhook)))

    def webhooks(
        self, dataset: Dataset | str | None = None, *, state: str | None = None
    ) -> AsyncGenerator[Webhook, None]:
        """The tenant's webhooks, or those of one dataset, the newest first; in any state, or in this one."""
        wanted = {"dataset": dataset.id if isinstance(dataset, Dataset) else dataset, "state": state}
        return self._items("/webhooks", WebhookPage, wanted)

    async def change_webhook(
        self, webhook: AnyWebhook, *, revision: int | None = None, **members: Any
    ) -> Webhook:
        """Changes the specified members.

        These are `url`, `kafka`, `delivery_format`, `columns`, `where`, `partitions`, `batch_changes_max`,
        `description`, `max_lag`, `state` (`active` or `paused`), and the position to continue from: `since`,
        `since_version` or `since_time`. `revision` is the
        revision for which the change was made; by default that of the value `webhook`, or the current one. Raises
        Problem `precondition-failed` if the webhook is at another revision.
        """
        if revision is None:
            revision = (await self.get_webhook(webhook) if isinstance(webhook, str) else webhook).revision
        change = {_WIRE_NAMES.get(name, name): value for name, value in members.items()}
        return decoded(Webhook, await self._change(_path(webhook), change, f'"{revision}"'))

    async def delete_webhook(self, webhook: AnyWebhook) -> None:
        """Deletes a webhook."""
        await self._send("DELETE", _path(webhook))

    async def rotate_webhook_secret(self, webhook: AnyWebhook) -> str:
        """Creates a new secret and returns it. For a day, messages are also signed with the previous one."""
        return decoded(WebhookSecret, await self._send("POST", f"{_path(webhook)}/rotate-secret")).secret

    async def try_webhook(self, webhook: AnyWebhook) -> WebhookTest:
        """Sends a message of type `webhook.test` now and returns the result."""
        return decoded(WebhookTest, await self._send("POST", f"{_path(webhook)}/tests"))

    async def webhook_attempts(self, webhook: AnyWebhook) -> tuple[WebhookAttempt, ...]:
        """The latest ten attempts of a webhook, the latest first, with what its receiver answered."""
        return decoded(WebhookAttempts, await self._get(f"{_path(webhook)}/attempts")).items

    async def webhook_alerts(
        self, webhook: AnyWebhook, *, since: int | None = None, limit: int = 100
    ) -> WebhookAlerts:
        """The alerts that a webhook of alerts sends from a position on; by default those that it has not sent."""
        params = {"limit": limit} | ({} if since is None else {"since": since})
        return decoded(WebhookAlerts, await self._get(f"{_path(webhook)}/alerts", params=params))

    def deliveries(
        self, webhook: AnyWebhook, *, state: DeliveryState | None = None
    ) -> AsyncGenerator[Delivery, None]:
        """The messages of a webhook, the newest first."""
        return self._items(f"{_path(webhook)}/deliveries", DeliveryPage, {"state": state})

    async def get_delivery(self, webhook: AnyWebhook, delivery_id: str) -> Delivery:
        """The current state of a message."""
        return decoded(
            Delivery, await self._get(f"{_path(webhook)}/deliveries/{quote(delivery_id, safe='')}")
        )

    async def redeliver(self, delivery: Delivery) -> Delivery:
        """Sends a message again whose delivery has ended."""
        path = f"{_path(delivery.webhook_id)}/deliveries/{delivery.id}/redeliver"
        return decoded(Delivery, await self._send("POST", path))

    async def redeliver_dead(self, webhook: AnyWebhook) -> int:
        """Sends all dropped messages again. Returns their number."""
        return decoded(Redelivered, await self._send("POST", f"{_path(webhook)}/redeliveries")).deliveries


def _path(webhook: AnyWebhook) -> str:
    name = webhook if isinstance(webhook, str) else webhook.id
    return f"/webhooks/{quote(name, safe='')}"
