"""Webhooks: register, find, change, test, delete."""

from __future__ import annotations

from functools import partial
from typing import Final

from litestar import delete, get, patch, post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import GrantedDatasets
from app.core.idempotency.providers import Idempotency
from app.features.webhooks.errors import InvalidWebhook
from app.features.webhooks.schemas import (
    CreateWebhook,
    ListWebhooksOptions,
    UpdateWebhook,
    WebhookId,
    WebhookPage,
    WebhookResponse,
    WebhookSecret,
    WebhookTest,
    WebhookWithSecret,
    attempt_response,
    changed_webhook,
    registration,
    webhook_path,
    webhook_response,
    webhook_with_secret,
)
from app.features.webhooks.service.webhooks import OVERLAP_SECONDS, Webhooks
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.json_body import require_member
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import Created, Tagged
from app.kernel.sql.conditions.row_access import EVERYTHING

_BODY_BYTES_MAX: Final = 256 * 1024
_TAGS: Final = ["webhooks"]


@post(
    "/webhooks",
    operation_id="create_webhook",
    summary="Register a webhook",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[404, 409, 410, 422]),
)
async def create_webhook(
    data: JSONBody[CreateWebhook],
    webhooks: Provided[Webhooks],
    granted_datasets: Provided[GrantedDatasets],
    principal: Provided[Principal],
    idempotency: Provided[Idempotency],
    outbound: Provided[Threads],
) -> Created[WebhookWithSecret]:
    """Registers a URL to which the changes of a dataset are sent as they are committed, in order, at least once.

    Or `events` that are no changes: which partitions are done, and alerts of one or of all datasets. The secret with
    which messages are signed is in this response only.
    """
    new = registration(data)

    def create() -> Created[WebhookWithSecret]:
        dataset, access = None, EVERYTHING
        if data.dataset is not None:
            dataset, access = granted_datasets.seen(principal.tenant_id, data.dataset)
        elif principal.grants is not None:
            raise InvalidWebhook.at("/dataset", "this key has grants of datasets: name one of them")
        webhook, secret = webhooks.create(principal.tenant_id, dataset, new, access)
        return Created(
            webhook_with_secret(webhook, secret), path=webhook_path(webhook.id), revision=webhook.revision
        )

    # The URL is resolved, which may take long.
    return await idempotency.run(create, threads=outbound, secret=True)


@get(
    "/webhooks",
    operation_id="list_webhooks",
    summary="List webhooks",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(problems=[404]),
)
async def list_webhooks(
    options: Provided[ListWebhooksOptions],
    webhooks: Provided[Webhooks],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> WebhookPage:
    """Lists the tenant's webhooks."""
    page = await threads.run(
        webhooks.list,
        granted_datasets,
        options.dataset,
        state=options.state,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return WebhookPage(items=[webhook_response(each) for each in page.items], next_page_token=page.next_token)


@get(
    "/webhooks/{webhook:str}",
    operation_id="get_webhook",
    summary="Get a webhook",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def get_webhook(
    webhook: WebhookId,
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[WebhookResponse]:
    """Returns a webhook with its position, and why it is paused if the service paused it; never its secret."""
    response = webhook_response(await threads.run(webhooks.get, principal.tenant_id, webhook))
    return Tagged(response, revision=response.revision)


@patch(
    "/webhooks/{webhook:str}",
    operation_id="change_webhook",
    summary="Change, pause or resume a webhook",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE, in_part=True) | documented(problems=[409, 410, 422]),
)
async def change_webhook(
    webhook: WebhookId,
    data: JSONBody[UpdateWebhook],
    required_if_match_revision: Provided[int],
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    outbound: Provided[Threads],
) -> Tagged[WebhookResponse]:
    """Changes the members of the request, and sends messages that wait for their next attempt at once.

    A message that was begun is sent as it was. With `since` the webhook continues from that position, and pending
    messages are given up.
    """
    require_member(data)
    response = webhook_response(
        await outbound.run(
            webhooks.change,
            principal.tenant_id,
            webhook,
            partial(changed_webhook, data=data),
            revision=required_if_match_revision,
        )
    )
    return Tagged(response, revision=response.revision)


@delete(
    "/webhooks/{webhook:str}",
    operation_id="delete_webhook",
    summary="Delete a webhook",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, in_part=True, only_ends=True),
)
async def delete_webhook(
    webhook: WebhookId,
    if_match_revision: Provided[int | None],
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Deletes a webhook and its messages. A message that is being sent may still arrive."""
    await threads.run(webhooks.delete, principal.tenant_id, webhook, revision=if_match_revision)


@post(
    "/webhooks/{webhook:str}/rotate-secret",
    operation_id="rotate_webhook_secret",
    summary="Rotate the secret of a webhook",
    tags=_TAGS,
    status_code=200,
    opt=needs(KeyScope.MANAGE, in_part=True) | documented(problems=[422]),
)
async def rotate_webhook_secret(
    webhook: WebhookId,
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> WebhookSecret:
    """Makes a new secret. For a day, messages are signed with the previous one as well."""
    secret = await threads.run(webhooks.rotate, principal.tenant_id, webhook)
    return WebhookSecret(secret=secret, overlap_seconds=int(OVERLAP_SECONDS))


@post(
    "/webhooks/{webhook:str}/tests",
    operation_id="try_webhook",
    summary="Send a test message",
    tags=_TAGS,
    status_code=200,
    opt=needs(KeyScope.MANAGE, in_part=True),
)
async def try_webhook(
    webhook: WebhookId,
    webhooks: Provided[Webhooks],
    principal: Provided[Principal],
    outbound: Provided[Threads],
) -> WebhookTest:
    """Sends a message of type `webhook.test` now, once, and returns the response of the receiver."""
    return attempt_response(await outbound.run(webhooks.send_test, principal.tenant_id, webhook))
