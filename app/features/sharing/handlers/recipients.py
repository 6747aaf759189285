"""Recipients of shares: make, find, change, delete, and other tokens."""

from __future__ import annotations

from typing import Final

from litestar import delete, get, patch, post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope, Principal
from app.core.idempotency.providers import Idempotency
from app.features.sharing.schemas import (
    CreateRecipient,
    ListRecipientsOptions,
    RecipientPage,
    RecipientReference,
    RecipientResponse,
    RecipientWithProfile,
    RotateToken,
    ShareReference,
    UpdateRecipient,
    issued_response,
    new_recipient,
    recipient_change,
    recipient_response,
    share_path,
)
from app.features.sharing.service.recipients import Recipients
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.json_body import require_member
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import Secret, Tagged

_TAGS: Final = ["shares"]
_BODY_BYTES_MAX: Final = 1024 * 1024
_ROTATION: Final = RotateToken()
_PATH: Final = "/shares/{share:str}/recipients"


@post(
    _PATH,
    operation_id="create_recipient",
    summary="Make a recipient of a share",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[409, 422]),
)
async def create_recipient(
    share: ShareReference,
    data: JSONBody[CreateRecipient],
    recipients: Provided[Recipients],
    principal: Provided[Principal],
    public_url: Provided[str],
    idempotency: Provided[Idempotency],
) -> Secret[RecipientWithProfile]:
    """Makes a recipient with a token. The profile file, which has the token, is in this response only.

    Conditions and masks must fit the present schemas of the datasets. A key with grants must state those of the
    recipient.
    """
    request = new_recipient(data)

    def create() -> Secret[RecipientWithProfile]:
        its_share, issued = recipients.create(principal, share, request)
        response = issued_response(its_share, issued, public_url)
        return Secret(response, path=f"{share_path(its_share)}/recipients/{response.id}")

    return await idempotency.run(create, secret=True)


@get(
    _PATH,
    operation_id="list_recipients",
    summary="List the recipients of a share",
    tags=_TAGS,
    opt=needs(KeyScope.READ),
)
async def list_recipients(
    share: ShareReference,
    options: Provided[ListRecipientsOptions],
    recipients: Provided[Recipients],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> RecipientPage:
    """Lists the recipients of a share by name, without their tokens."""
    its_share, page = await threads.run(
        recipients.list,
        principal.tenant_id,
        share,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    items = [recipient_response(its_share, each) for each in page.items]
    return RecipientPage(items=items, next_page_token=page.next_token)


@get(
    _PATH + "/{recipient:str}",
    operation_id="get_recipient",
    summary="Get a recipient of a share",
    tags=_TAGS,
    opt=needs(KeyScope.READ),
)
async def get_recipient(
    share: ShareReference,
    recipient: RecipientReference,
    recipients: Provided[Recipients],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[RecipientResponse]:
    """Returns a recipient of a share, without its tokens."""
    pair = await threads.run(recipients.get, principal.tenant_id, share, recipient)
    return Tagged(recipient_response(*pair), revision=pair[1].revision)


@patch(
    _PATH + "/{recipient:str}",
    operation_id="change_recipient",
    summary="Change a recipient of a share",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[409, 422]),
)
async def change_recipient(
    share: ShareReference,
    recipient: RecipientReference,
    data: JSONBody[UpdateRecipient],
    required_if_match_revision: Provided[int],
    recipients: Provided[Recipients],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[RecipientResponse]:
    """Changes the members of the request, at once, also for links that the recipient has."""
    require_member(data)
    pair = await threads.run(
        recipients.change,
        principal,
        share,
        recipient,
        recipient_change(data),
        revision=required_if_match_revision,
    )
    return Tagged(recipient_response(*pair), revision=pair[1].revision)


@delete(
    _PATH + "/{recipient:str}",
    operation_id="delete_recipient",
    summary="Delete a recipient of a share",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, only_ends=True),
)
async def delete_recipient(
    share: ShareReference,
    recipient: RecipientReference,
    if_match_revision: Provided[int | None],
    recipients: Provided[Recipients],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Deletes a recipient, whose tokens and links end at once."""
    await threads.run(recipients.delete, principal.tenant_id, share, recipient, revision=if_match_revision)


@post(
    _PATH + "/{recipient:str}/rotate-token",
    operation_id="rotate_recipient_token",
    summary="Rotate the token of a recipient",
    tags=_TAGS,
    status_code=200,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[409]),
)
async def rotate_recipient_token(
    share: ShareReference,
    recipient: RecipientReference,
    recipients: Provided[Recipients],
    principal: Provided[Principal],
    public_url: Provided[str],
    threads: Provided[Threads],
    data: JSONBody[RotateToken] = _ROTATION,
) -> RecipientWithProfile:
    """Makes another token, with a new profile file. The token before stays valid for the overlap, and no others do."""
    pair = await threads.run(
        recipients.rotate,
        principal,
        share,
        recipient,
        overlap_seconds=data.overlap_seconds,
    )
    return issued_response(*pair, public_url)


RECIPIENT_HANDLERS: Final = (
    create_recipient,
    list_recipients,
    get_recipient,
    change_recipient,
    delete_recipient,
    rotate_recipient_token,
)
