"""Shares: make, find, change, delete."""

from __future__ import annotations

from typing import Final

from litestar import delete, get, patch, post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import GrantedDatasets
from app.core.idempotency.providers import Idempotency
from app.features.sharing.schemas import (
    CreateShare,
    ListSharesOptions,
    SharePage,
    ShareReference,
    ShareResponse,
    UpdateShare,
    new_share,
    share_change,
    share_path,
    share_response,
)
from app.features.sharing.service.shares import Shares
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.json_body import require_member
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import Created, Tagged

_TAGS: Final = ["shares"]
_BODY_BYTES_MAX: Final = 1024 * 1024


@post(
    "/shares",
    operation_id="create_share",
    summary="Make a share",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[404, 409, 422]),
)
async def create_share(
    data: JSONBody[CreateShare],
    shares: Provided[Shares],
    granted_datasets: Provided[GrantedDatasets],
    idempotency: Provided[Idempotency],
) -> Created[ShareResponse]:
    """Makes a share of datasets, which recipients outside of the tenant read by Delta Sharing.

    The key must manage and read every dataset whole.
    """
    request = new_share(data)

    def create() -> Created[ShareResponse]:
        share = shares.create(granted_datasets, request)
        return Created(share_response(share), path=share_path(share), revision=share.revision)

    return await idempotency.run(create)


@get(
    "/shares",
    operation_id="list_shares",
    summary="List shares",
    tags=_TAGS,
    opt=needs(KeyScope.READ),
)
async def list_shares(
    options: Provided[ListSharesOptions],
    shares: Provided[Shares],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> SharePage:
    """Lists the tenant's shares by name: those of which the key reads every dataset whole."""
    page = await threads.run(
        shares.list, granted_datasets, page_size=options.page_size, page_token=options.page_token
    )
    return SharePage(items=[share_response(each) for each in page.items], next_page_token=page.next_token)


@get(
    "/shares/{share:str}",
    operation_id="get_share",
    summary="Get a share",
    tags=_TAGS,
    opt=needs(KeyScope.READ),
)
async def get_share(
    share: ShareReference,
    shares: Provided[Shares],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[ShareResponse]:
    """Returns a share with its datasets."""
    response = share_response(await threads.run(shares.get, principal.tenant_id, share))
    return Tagged(response, revision=response.revision)


@patch(
    "/shares/{share:str}",
    operation_id="change_share",
    summary="Change a share",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.MANAGE) | documented(problems=[409, 422]),
)
async def change_share(
    share: ShareReference,
    data: JSONBody[UpdateShare],
    required_if_match_revision: Provided[int],
    shares: Provided[Shares],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> Tagged[ShareResponse]:
    """Changes the members of the request. Recipients read what they may see after the change, at once."""
    require_member(data)
    response = share_response(
        await threads.run(
            shares.change,
            granted_datasets,
            share,
            share_change(data),
            revision=required_if_match_revision,
        )
    )
    return Tagged(response, revision=response.revision)


@delete(
    "/shares/{share:str}",
    operation_id="delete_share",
    summary="Delete a share",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, only_ends=True),
)
async def delete_share(
    share: ShareReference,
    if_match_revision: Provided[int | None],
    shares: Provided[Shares],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Deletes a share and its recipients, whose tokens and links end at once."""
    await threads.run(shares.delete, principal.tenant_id, share, revision=if_match_revision)


SHARE_HANDLERS: Final = (create_share, list_shares, get_share, change_share, delete_share)
