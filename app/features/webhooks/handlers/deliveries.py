"""The messages of a webhook: find them, and send them again."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from litestar import get, post
from litestar.params import PathParameter

from app.access.tenants.values import KeyScope, Principal
from app.features.webhooks.schemas import (
    DeliveryPage,
    DeliveryResponse,
    ListDeliveriesOptions,
    ListWebhookAlertsOptions,
    Redelivered,
    WebhookAlerts,
    WebhookAttempts,
    WebhookId,
    alerts_response,
    attempts_response,
    delivery_response,
)
from app.features.webhooks.service.webhooks import Webhooks
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented

_TAGS: Final = ["webhooks"]

DeliveryId: TypeAlias = Annotated[str, PathParameter(description="The id of a message.")]


@get(
    "/webhooks/{webhook:str}/deliveries",
    operation_id="list_webhook_deliveries",
    summary="List the messages of a webhook",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def list_webhook_deliveries(
    webhook: WebhookId,
    options: Provided[ListDeliveriesOptions],
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> DeliveryPage:
    """Lists the messages that wait, arrived or were given up; those that ended long ago are purged."""
    page = await threads.run(
        webhooks.deliveries,
        principal.tenant_id,
        webhook,
        options.state,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return DeliveryPage(
        items=[delivery_response(each) for each in page.items], next_page_token=page.next_token
    )


@get(
    "/webhooks/{webhook:str}/deliveries/{delivery:str}",
    operation_id="get_webhook_delivery",
    summary="Get a message of a webhook",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def get_webhook_delivery(
    webhook: WebhookId,
    delivery: DeliveryId,
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> DeliveryResponse:
    """Returns a message with the result of its last attempt."""
    return delivery_response(await threads.run(webhooks.delivery, principal.tenant_id, webhook, delivery))


@get(
    "/webhooks/{webhook:str}/alerts",
    operation_id="list_webhook_alerts",
    summary="List the alerts that a webhook sends",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True) | documented(problems=[409, 422]),
)
async def list_webhook_alerts(
    webhook: WebhookId,
    options: Provided[ListWebhookAlertsOptions],
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> WebhookAlerts:
    """Returns the alerts from a position on, with the members that messages have. It moves no position."""
    since, page = await threads.run(
        webhooks.alerts, principal.tenant_id, webhook, options.since, options.limit
    )
    return alerts_response(webhook, since, page)


@get(
    "/webhooks/{webhook:str}/attempts",
    operation_id="list_webhook_attempts",
    summary="List the latest attempts of a webhook",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, in_part=True),
)
async def list_webhook_attempts(
    webhook: WebhookId,
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> WebhookAttempts:
    """Returns the latest ten attempts, test messages included, with the time that each took and what was answered.

    An answer is a text of the receiver, so it needs the right to change the webhook. Headers are not stored.
    """
    return attempts_response(await threads.run(webhooks.attempts, principal.tenant_id, webhook))


@post(
    "/webhooks/{webhook:str}/deliveries/{delivery:str}/redeliver",
    operation_id="redeliver_webhook_delivery",
    summary="Send a message again",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.MANAGE, in_part=True) | documented(problems=[422]),
)
async def redeliver_webhook_delivery(
    webhook: WebhookId,
    delivery: DeliveryId,
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> DeliveryResponse:
    """Sends a message that arrived or was given up again, with the same id and body, beside new messages."""
    return delivery_response(await threads.run(webhooks.redeliver, principal.tenant_id, webhook, delivery))


@post(
    "/webhooks/{webhook:str}/redeliveries",
    operation_id="redeliver_dead_webhook_deliveries",
    summary="Send all dead messages again",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.MANAGE, in_part=True) | documented(problems=[422]),
)
async def redeliver_dead_webhook_deliveries(
    webhook: WebhookId,
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Redelivered:
    """Sends all messages that were given up again, beside new messages."""
    count = await threads.run(webhooks.redeliver_dead, principal.tenant_id, webhook)
    return Redelivered(deliveries=count)
