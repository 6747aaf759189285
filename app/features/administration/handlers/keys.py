"""The API keys of one's own tenant, and, for operators, those of any tenant."""

from __future__ import annotations

from typing import Final

from litestar import delete, get, post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope, Principal
from app.features.administration.schemas import (
    CreatedKey,
    CreateKey,
    KeyId,
    KeyPage,
    KeyResponse,
    ListKeysOptions,
    TenantReference,
    created_key,
    key_response,
    new_key,
)
from app.features.administration.service import Administration
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import Secret

_TAGS: Final = ["keys"]
_BODY_BYTES_MAX: Final = 256 * 1024
_MANAGE: Final = needs(KeyScope.MANAGE, whole_tenant=True)
_OPERATE: Final = needs(KeyScope.OPERATE, whole_tenant=True)
_MAKING: Final = documented(problems=[409, 501])
_OTHER: Final = documented(problems=[501])


@post(
    "/keys",
    operation_id="create_key",
    summary="Make an API key",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=_MANAGE | _MAKING,
)
async def create_key(
    data: JSONBody[CreateKey],
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Secret[CreatedKey]:
    """Makes a key of the own tenant, with no more scopes than the key of the request has.

    A key with grants cannot make keys. The text of the key is in this response only.
    """
    credential = await threads.run(administration.create_key, principal, None, new_key(data, principal))
    return Secret(created_key(credential), path=f"/keys/{credential.key_id}")


@get("/keys", operation_id="list_keys", summary="List API keys", tags=_TAGS, opt=_MANAGE | _OTHER)
async def list_keys(
    options: Provided[ListKeysOptions],
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> KeyPage:
    """Lists the keys of the own tenant, without their texts."""
    return await _page(administration, principal, threads, None, options)


@get("/keys/{key:str}", operation_id="get_key", summary="Get an API key", tags=_TAGS, opt=_MANAGE | _OTHER)
async def get_key(
    key: KeyId,
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> KeyResponse:
    """Returns a key of the own tenant, without its text."""
    return key_response(await threads.run(administration.key, principal, None, key))


@delete(
    "/keys/{key:str}",
    operation_id="revoke_key",
    summary="Revoke an API key",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, whole_tenant=True, only_ends=True) | _OTHER,
)
async def revoke_key(
    key: KeyId,
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Revokes a key of the own tenant, at once and for good."""
    await threads.run(administration.revoke_key, principal, None, key)


@post(
    "/tenants/{tenant:str}/keys",
    operation_id="create_tenant_key",
    summary="Make an API key of a tenant",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=_OPERATE | _MAKING,
)
async def create_tenant_key(
    tenant: TenantReference,
    data: JSONBody[CreateKey],
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Secret[CreatedKey]:
    """Makes a key of a tenant. Its text is in this response only."""
    credential = await threads.run(administration.create_key, principal, tenant, new_key(data, principal))
    return Secret(
        created_key(credential), path=f"/tenants/{credential.key.tenant_id}/keys/{credential.key_id}"
    )


@get(
    "/tenants/{tenant:str}/keys",
    operation_id="list_tenant_keys",
    summary="List the API keys of a tenant",
    tags=_TAGS,
    opt=_OPERATE | _OTHER,
)
async def list_tenant_keys(
    tenant: TenantReference,
    options: Provided[ListKeysOptions],
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> KeyPage:
    """Lists the keys of a tenant, without their texts."""
    return await _page(administration, principal, threads, tenant, options)


@get(
    "/tenants/{tenant:str}/keys/{key:str}",
    operation_id="get_tenant_key",
    summary="Get an API key of a tenant",
    tags=_TAGS,
    opt=_OPERATE | _OTHER,
)
async def get_tenant_key(
    tenant: TenantReference,
    key: KeyId,
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> KeyResponse:
    """Returns a key of a tenant, without its text."""
    return key_response(await threads.run(administration.key, principal, tenant, key))


@delete(
    "/tenants/{tenant:str}/keys/{key:str}",
    operation_id="revoke_tenant_key",
    summary="Revoke an API key of a tenant",
    tags=_TAGS,
    opt=_OPERATE | _OTHER,
)
async def revoke_tenant_key(
    tenant: TenantReference,
    key: KeyId,
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Revokes a key of a tenant, at once and for good."""
    await threads.run(administration.revoke_key, principal, tenant, key)


async def _page(
    administration: Administration,
    principal: Principal,
    threads: Threads,
    tenant: str | None,
    options: ListKeysOptions,
) -> KeyPage:
    page = await threads.run(
        administration.keys, principal, tenant, page_size=options.page_size, page_token=options.page_token
    )
    return KeyPage(items=[key_response(each) for each in page.items], next_page_token=page.next_token)


KEY_HANDLERS: Final = (
    create_key,
    list_keys,
    get_key,
    revoke_key,
    create_tenant_key,
    list_tenant_keys,
    get_tenant_key,
    revoke_tenant_key,
)
