"""What became of the messages of a webhook, and sending them again."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from litestar import Response, get, post
from litestar.params import PathParameter, QueryParameter

from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import PageSize, PageToken
from app.webhooks.handlers.webhooks import WebhookId
from app.webhooks.schemas import DeliveryPage, DeliveryResponse, Redelivered, delivery_response
from app.webhooks.values import DeliveryState

_TAGS: Final = ["webhooks"]

DeliveryId: TypeAlias = Annotated[str, PathParameter(description="The id of a message.")]


@get(
    "/webhooks/{webhook:str}/deliveries",
    operation_id="list_webhook_deliveries",
    summary="List the messages of a webhook",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="A page, the newest first.", content={JSON: DeliveryPage})},
        problems=[400, 404],
    ),
)
async def list_webhook_deliveries(
    request: ApiRequest,
    webhook: WebhookId,
    in_state: Annotated[
        DeliveryState | None, QueryParameter(name="state", description="Those in this state only.")
    ] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> Response[Any]:
    """Messages that wait, arrived or were given up; those that ended long ago are forgotten."""
    services = services_of(request)
    page = await services.threads.run(
        services.webhooks.deliveries,
        tenant_of(request),
        webhook,
        in_state,
        page_size=page_size,
        page_token=page_token,
    )
    items = [delivery_response(delivery) for delivery in page.items]
    return Response(encode(DeliveryPage(items=items, next_page_token=page.next_token)), media_type=JSON)


@get(
    "/webhooks/{webhook:str}/deliveries/{delivery:str}",
    operation_id="get_webhook_delivery",
    summary="Get a message of a webhook",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="The message.", content={JSON: DeliveryResponse})}, problems=[404]
    ),
)
async def get_webhook_delivery(
    request: ApiRequest, webhook: WebhookId, delivery: DeliveryId
) -> Response[Any]:
    """A message, with what came of its last attempt."""
    services = services_of(request)
    found = await services.threads.run(services.webhooks.delivery, tenant_of(request), webhook, delivery)
    return Response(encode(delivery_response(found)), media_type=JSON)


@post(
    "/webhooks/{webhook:str}/deliveries/{delivery:str}/redeliver",
    operation_id="redeliver_webhook_delivery",
    summary="Send a message again",
    tags=_TAGS,
    status_code=202,
    opt=documented(
        {202: Answer(description="It is sent again.", content={JSON: DeliveryResponse})}, problems=[404]
    ),
)
async def redeliver_webhook_delivery(
    request: ApiRequest, webhook: WebhookId, delivery: DeliveryId
) -> Response[Any]:
    """Has a message that arrived or was given up sent again, with the same id and body, beside those that come."""
    services = services_of(request)
    found = await services.threads.run(services.webhooks.redeliver, tenant_of(request), webhook, delivery)
    return Response(encode(delivery_response(found)), status_code=202, media_type=JSON)


@post(
    "/webhooks/{webhook:str}/redeliver-dead",
    operation_id="redeliver_dead_webhook_deliveries",
    summary="Send all dead messages again",
    tags=_TAGS,
    status_code=202,
    opt=documented(
        {202: Answer(description="They are sent again.", content={JSON: Redelivered})}, problems=[404]
    ),
)
async def redeliver_dead_webhook_deliveries(request: ApiRequest, webhook: WebhookId) -> Response[Any]:
    """Has all messages that were given up sent again, beside those that come."""
    services = services_of(request)
    count = await services.threads.run(services.webhooks.redeliver_dead, tenant_of(request), webhook)
    return Response(encode(Redelivered(deliveries=count)), status_code=202, media_type=JSON)
