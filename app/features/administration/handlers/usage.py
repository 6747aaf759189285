"""What tenants use: their quotas, and their usage by day."""

from __future__ import annotations

from typing import Final

from litestar import get

from app.access.tenants.values import KeyScope, Principal
from app.features.administration.schemas import (
    QuotaUses,
    TenantReference,
    UsageOptions,
    UsagePage,
    quota_uses,
    usage_page,
)
from app.features.administration.service import Administration, ReadUsage
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented

_TAGS: Final = ["usage"]
_OPERATE: Final = needs(KeyScope.OPERATE, whole_tenant=True) | documented(problems=[501])


@get(
    "/usage",
    operation_id="get_usage",
    summary="Get the usage of the tenant",
    tags=_TAGS,
    opt=needs(KeyScope.READ, whole_tenant=True),
)
async def get_usage(
    options: Provided[UsageOptions],
    usage: Provided[ReadUsage],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> UsagePage:
    """Lists what the own tenant has used, day by day."""
    return await _page(usage, threads, principal.tenant_id, options)


@get(
    "/tenants/{tenant:str}/usage",
    operation_id="get_tenant_usage",
    summary="Get the usage of a tenant",
    tags=_TAGS,
    opt=_OPERATE,
)
async def get_tenant_usage(
    tenant: TenantReference,
    options: Provided[UsageOptions],
    administration: Provided[Administration],
    usage: Provided[ReadUsage],
    threads: Provided[Threads],
) -> UsagePage:
    """Lists what a tenant has used, day by day."""
    tenant_id = (await threads.run(administration.tenant, tenant)).id
    return await _page(usage, threads, tenant_id, options)


@get(
    "/tenants/{tenant:str}/quotas",
    operation_id="get_tenant_quotas",
    summary="Get the quotas of a tenant",
    tags=_TAGS,
    opt=_OPERATE,
)
async def get_tenant_quotas(
    tenant: TenantReference,
    administration: Provided[Administration],
    usage: Provided[ReadUsage],
    threads: Provided[Threads],
) -> QuotaUses:
    """Returns the quotas of a tenant, with what it uses now."""
    return quota_uses(await threads.run(usage.quotas, await threads.run(administration.tenant, tenant)))


async def _page(usage: ReadUsage, threads: Threads, tenant_id: str, options: UsageOptions) -> UsagePage:
    page = await threads.run(
        usage.page, tenant_id, options.wanted(), page_size=options.page_size, page_token=options.page_token
    )
    return usage_page(page, options.by)


USAGE_HANDLERS: Final = (get_usage, get_tenant_usage, get_tenant_quotas)
