"""Webhooks: feeds pushed to URLs, and the deliveries of their messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from headwater_client.connection import Connection, decoded
from headwater_client.consumers import MaxLag
from headwater_client.feed import Since, walk_list
from headwater_client.pages import JSON
from headwater_client.values import Dataset, DatasetIdentity

DeliveryFormat = Literal["two_event", "single_event", "retract", "upsert", "debezium", "delta"]
_WIRE_NAMES: Final = {"delivery_format": "form"}
DeliveryState = Literal["pending", "delivered", "dead"]


class Webhook(msgspec.Struct, frozen=True, kw_only=True, rename=_WIRE_NAMES):
    """A webhook. The changes before `position` are processed, and `pending` changes follow.

    `error`: the problem for which the service paused it. `secret`: only in the reply to its registration.
    """

    id: str
    dataset: DatasetIdentity
    url: str
    state: str
    events: str
    delivery_format: str
    columns: tuple[str, ...] | None
    where: str | None
    partitions: tuple[str, ...] | None
    batch_changes_max: int
    description: str | None
    max_lag: MaxLag
    position: int
    pending: int
    failures: int
    error: dict[str, Any] | None
    revision: int
    created_at: datetime
    secret: str | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A message: the changes from `since` to before `next_since`. `status` and `error`: of the last attempt."""

    id: str
    webhook_id: str
    since: int
    next_since: int
    state: str
    attempts: int
    next_attempt_at: datetime | None
    status: int | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


class WebhookTest(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a test message."""

    delivered: bool
    status: int | None
    error: str | None
    seconds: float


class WebhookPage(msgspec.Struct, frozen=True, kw_only=True):
    """Webhooks, the newest first."""

    items: tuple[Webhook, ...]
    next_page_token: str | None


class DeliveryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Messages, the newest first."""

    items: tuple[Delivery, ...]
    next_page_token: str | None


class WebhookCalls(Connection):
    """Registers and manages webhooks."""

    async def create_webhook(
        self,
        dataset: Dataset | str,
        url: str,
        *,
        events: Literal["changes", "partitions"] = "changes",
        delivery_format: DeliveryFormat = "two_event",
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        since: Since | Literal["earliest"] = "now",
        batch_changes_max: int = 100,
        secret: str | None = None,
        description: str | None = None,
        max_lag: MaxLag | None = None,
    ) -> Webhook:
        """Registers a webhook that sends the changes of a dataset to a URL, from now on, or from position `since` on.

        With `events` of `partitions` it sends events of partitions, and positions count these events. Only this reply
        has the `secret` that verifies messages.
        """
        wanted = {
            "dataset": dataset.id if isinstance(dataset, Dataset) else dataset,
            "url": url,
            "events": events,
            "form": delivery_format,
            "columns": columns,
            "where": where,
            "partitions": partitions,
            "since": since,
            "batch_changes_max": batch_changes_max,
            "secret": secret,
            "description": description,
            "max_lag": max_lag,
        }
        return decoded(Webhook, await self._post("/webhooks", wanted))

    async def get_webhook(self, webhook: Webhook | str) -> Webhook:
        """The current state of a webhook."""
        return decoded(Webhook, await self._get(_path(webhook)))

    async def webhooks(self, dataset: Dataset | str | None = None) -> AsyncGenerator[Webhook, None]:
        """The tenant's webhooks, or those of one dataset, the newest first."""
        params: dict[str, Any] = {"page_size": 1_000}
        if dataset is not None:
            params["dataset"] = dataset.id if isinstance(dataset, Dataset) else dataset
        async for page in walk_list(partial(self._get, "/webhooks"), partial(decoded, WebhookPage), params):
            for item in page.items:
                yield item

    async def change_webhook(
        self, webhook: Webhook | str, *, revision: int | None = None, **members: Any
    ) -> Webhook:
        """Changes the specified members.

        These are `url`, `delivery_format`, `columns`, `where`, `partitions`, `batch_changes_max`, `description`,
        `max_lag`, `state` (`active` or `paused`), and `since`, the position to continue from. `revision` is the
        revision for which the change was made; by default that of the value `webhook`, or the current one. Raises
        Problem `precondition-failed` if the webhook is at another revision.
        """
        if revision is None:
            revision = (webhook if isinstance(webhook, Webhook) else await self.get_webhook(webhook)).revision
        answer = await self._send(
            "PATCH",
            _path(webhook),
            body=msgspec.json.encode({_WIRE_NAMES.get(name, name): value for name, value in members.items()}),
            headers={"Content-Type": JSON, "If-Match": f'"{revision}"'},
        )
        return decoded(Webhook, answer)

    async def delete_webhook(self, webhook: Webhook | str) -> None:
        """Deletes a webhook."""
        await self._send("DELETE", _path(webhook))

    async def rotate_webhook_secret(self, webhook: Webhook | str) -> str:
        """Creates a new secret and returns it. For a day, messages are also signed with the previous one."""
        secret: str = decoded(dict[str, Any], await self._post(f"{_path(webhook)}/rotate-secret"))["secret"]
        return secret

    async def try_webhook(self, webhook: Webhook | str) -> WebhookTest:
        """Sends a message of type `webhook.test` now and returns the result."""
        return decoded(WebhookTest, await self._post(f"{_path(webhook)}/tests"))

    async def deliveries(
        self, webhook: Webhook | str, *, state: DeliveryState | None = None
    ) -> AsyncGenerator[Delivery, None]:
        """The messages of a webhook, the newest first."""
        params: dict[str, Any] = {"page_size": 1_000} | ({} if state is None else {"state": state})
        fetch = partial(self._get, f"{_path(webhook)}/deliveries")
        async for page in walk_list(fetch, partial(decoded, DeliveryPage), params):
            for item in page.items:
                yield item

    async def get_delivery(self, webhook: Webhook | str, delivery_id: str) -> Delivery:
        """The current state of a message."""
        return decoded(
            Delivery, await self._get(f"{_path(webhook)}/deliveries/{quote(delivery_id, safe='')}")
        )

    async def redeliver(self, delivery: Delivery) -> Delivery:
        """Sends a message again whose delivery has ended."""
        path = f"{_path(delivery.webhook_id)}/deliveries/{delivery.id}/redeliver"
        return decoded(Delivery, await self._post(path))

    async def redeliver_dead(self, webhook: Webhook | str) -> int:
        """Sends all dropped messages again. Returns their number."""
        count: int = decoded(dict[str, int], await self._post(f"{_path(webhook)}/redeliveries"))["deliveries"]
        return count

    async def _post(self, path: str, body: Any = None) -> Any:
        return await self._send(
            "POST",
            path,
            body=None if body is None else msgspec.json.encode(body),
            headers=None if body is None else {"Content-Type": JSON},
        )


def _path(webhook: Webhook | str) -> str:
    name = webhook.id if isinstance(webhook, Webhook) else webhook
    return f"/webhooks/{quote(name, safe='')}"
