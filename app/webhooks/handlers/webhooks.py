"""Webhooks: register, find, change, try, end."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from litestar import Response, delete, get, patch, post
from litestar.params import PathParameter, QueryParameter

from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.headers import etag, expected_version, required_version
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import PageSize, PageToken
from app.webhooks.schemas import (
    NewWebhook,
    WebhookPage,
    WebhookPatch,
    WebhookResponse,
    WebhookSecret,
    WebhookTest,
    WebhookWithSecretResponse,
    changed_webhook,
    registration,
    webhook_path,
    webhook_response,
    webhook_test_response,
    webhook_with_secret_response,
)
from app.webhooks.service.webhooks import OVERLAP_SECONDS

_BODY_BYTES_MAX: Final = 256 * 1024
_TAGS: Final = ["webhooks"]
_ETAG: Final = {"ETag": "The webhook's revision, quoted."}

WebhookId: TypeAlias = Annotated[str, PathParameter(description="The id of a webhook.")]


@post(
    "/webhooks",
    operation_id="create_webhook",
    summary="Register a webhook",
    tags=_TAGS,
    opt=documented(
        {
            201: Answer(
                description="Registered.",
                content={JSON: WebhookWithSecretResponse},
                headers={"Location": "Its path.", **_ETAG},
            )
        },
        body={JSON: NewWebhook},
        problems=[400, 404, 409, 410, 413, 415, 422],
    ),
)
async def create_webhook(request: ApiRequest) -> Response[Any]:
    """Registers a URL to which the changes of a dataset are sent as they are committed, in order, at least once.

    The secret with which messages are signed is in this answer only.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    wanted = decode_json(await read_body(request, _BODY_BYTES_MAX), NewWebhook)
    dataset = await services.threads.run(services.datasets.get, tenant_of(request), wanted.dataset)
    made, secret = await services.outbound.run(services.webhooks.create, dataset, registration(wanted))
    headers = {"Location": webhook_path(made.id), "ETag": etag(made.revision)}
    return Response(
        encode(webhook_with_secret_response(made, secret)), status_code=201, media_type=JSON, headers=headers
    )


@get(
    "/webhooks",
    operation_id="list_webhooks",
    summary="List webhooks",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="A page, the newest first.", content={JSON: WebhookPage})},
        problems=[400, 404],
    ),
)
async def list_webhooks(
    request: ApiRequest,
    dataset: Annotated[
        str | None, QueryParameter(description="The id or the name of a dataset: its webhooks only.")
    ] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> Response[Any]:
    """Lists the tenant's webhooks."""
    services = services_of(request)
    page = await services.threads.run(
        services.webhooks.list, tenant_of(request), dataset, page_size=page_size, page_token=page_token
    )
    items = [webhook_response(webhook) for webhook in page.items]
    return Response(encode(WebhookPage(items=items, next_page_token=page.next_token)), media_type=JSON)


@get(
    "/webhooks/{webhook:str}",
    operation_id="get_webhook",
    summary="Get a webhook",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="The webhook.", content={JSON: WebhookResponse}, headers=_ETAG)},
        problems=[404],
    ),
)
async def get_webhook(request: ApiRequest, webhook: WebhookId) -> Response[Any]:
    """A webhook, how far it is, and why it is paused if the service did that. Its secret is not told."""
    services = services_of(request)
    found = await services.threads.run(services.webhooks.get, tenant_of(request), webhook)
    return Response(encode(webhook_response(found)), media_type=JSON, headers={"ETag": etag(found.revision)})


@patch(
    "/webhooks/{webhook:str}",
    operation_id="change_webhook",
    summary="Change, pause or resume a webhook",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="Changed.", content={JSON: WebhookResponse}, headers=_ETAG)},
        body={JSON: WebhookPatch},
        request_headers={"If-Match": "The ETag that the webhook must still have; required."},
        problems=[400, 404, 409, 410, 412, 413, 415, 422, 428],
    ),
)
async def change_webhook(request: ApiRequest, webhook: WebhookId) -> Response[Any]:
    """Changes what is named, and has what waits for its next attempt tried at once.

    A message that was begun is still told as it was before. With `since` the webhook goes on from that position, and
    what waits is given up.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    revision = required_version(request.headers)
    wanted = decode_json(await read_body(request, _BODY_BYTES_MAX), WebhookPatch)
    changed = await services.outbound.run(
        services.webhooks.change,
        tenant_of(request),
        webhook,
        partial(changed_webhook, patch=wanted),
        revision=revision,
    )
    headers = {"ETag": etag(changed.revision)}
    return Response(encode(webhook_response(changed)), media_type=JSON, headers=headers)


@delete(
    "/webhooks/{webhook:str}",
    operation_id="delete_webhook",
    summary="End a webhook",
    tags=_TAGS,
    status_code=204,
    opt=documented(
        {204: Answer(description="Ended.")},
        request_headers={"If-Match": "The ETag that the webhook must still have."},
        problems=[404, 412],
    ),
)
async def delete_webhook(request: ApiRequest, webhook: WebhookId) -> None:
    """Ends a webhook and forgets its messages. One that is being sent may still arrive."""
    services = services_of(request)
    revision = expected_version(request.headers)
    await services.threads.run(services.webhooks.delete, tenant_of(request), webhook, revision=revision)


@post(
    "/webhooks/{webhook:str}/rotate-secret",
    operation_id="rotate_webhook_secret",
    summary="Change the secret of a webhook",
    tags=_TAGS,
    status_code=200,
    opt=documented(
        {200: Answer(description="The new secret.", content={JSON: WebhookSecret})}, problems=[404]
    ),
)
async def rotate_webhook_secret(request: ApiRequest, webhook: WebhookId) -> Response[Any]:
    """Makes a new secret, which is told only now. For a day, messages are signed with the one before as well."""
    services = services_of(request)
    secret = await services.threads.run(services.webhooks.rotate, tenant_of(request), webhook)
    rotated = WebhookSecret(secret=secret, overlap_seconds=int(OVERLAP_SECONDS))
    return Response(encode(rotated), media_type=JSON)


@post(
    "/webhooks/{webhook:str}/test",
    operation_id="try_webhook",
    summary="Send a test message",
    tags=_TAGS,
    status_code=200,
    opt=documented(
        {200: Answer(description="What came of it.", content={JSON: WebhookTest})}, problems=[404]
    ),
)
async def try_webhook(request: ApiRequest, webhook: WebhookId) -> Response[Any]:
    """Sends a message of type `webhook.test` now, once, and tells what the receiver answered."""
    services = services_of(request)
    reply = await services.outbound.run(services.webhooks.send_test, tenant_of(request), webhook)
    return Response(encode(webhook_test_response(reply)), media_type=JSON)
