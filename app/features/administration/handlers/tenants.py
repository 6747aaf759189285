"""Tenants: make, list, get, suspend, resume and delete."""

from __future__ import annotations

from typing import Final

from litestar import delete, get, patch, post
from litestar.params import JSONBody

from app.access.tenants.usage import TenantUse
from app.access.tenants.values import KeyScope, Principal
from app.features.administration.schemas import (
    CreatedTenant,
    CreateTenant,
    DeleteTenantOptions,
    ListTenantsOptions,
    TenantPage,
    TenantReference,
    TenantResponse,
    TenantWithDeletion,
    UpdateTenant,
    created_tenant,
    tenant_change,
    tenant_response,
    tenant_with_deletion,
    tenant_with_use,
)
from app.features.administration.service import Administration, ReadUsage
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.json_body import require_member
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import Secret

_TAGS: Final = ["tenants"]
_OPERATE: Final = needs(KeyScope.OPERATE, whole_tenant=True)


@post(
    "/tenants",
    operation_id="create_tenant",
    summary="Make a tenant",
    tags=_TAGS,
    opt=_OPERATE | documented(problems=[409, 501]),
)
async def create_tenant(
    data: JSONBody[CreateTenant],
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Secret[CreatedTenant]:
    """Makes a tenant with its first key, which is in this response only."""
    tenant, credential = await threads.run(administration.create_tenant, principal, data.name, data.quotas)
    return Secret(created_tenant(tenant, credential), path=f"/tenants/{tenant.id}")


@get(
    "/tenants",
    operation_id="list_tenants",
    summary="List tenants",
    tags=_TAGS,
    opt=_OPERATE | documented(problems=[501]),
)
async def list_tenants(
    options: Provided[ListTenantsOptions],
    administration: Provided[Administration],
    usage: Provided[ReadUsage],
    threads: Provided[Threads],
) -> TenantPage:
    """Lists the tenants of the installation by name, each with what it uses as of the last samples."""
    page = await threads.run(
        administration.tenants, page_size=options.page_size, page_token=options.page_token
    )
    uses = await threads.run(usage.of_tenants, page.items)
    items = [tenant_with_use(each, uses.get(each.id, TenantUse())) for each in page.items]
    return TenantPage(items=items, next_page_token=page.next_token)


@get(
    "/tenants/{tenant:str}",
    operation_id="get_tenant",
    summary="Get a tenant",
    tags=_TAGS,
    opt=_OPERATE | documented(problems=[501]),
)
async def get_tenant(
    tenant: TenantReference, administration: Provided[Administration], threads: Provided[Threads]
) -> TenantWithDeletion:
    """Returns a tenant by its id or its name; one that was deleted by its id, with the report of its deletion."""
    current = await threads.run(administration.tenant, tenant)
    return tenant_with_deletion(current, await threads.run(administration.deletion, current))


@delete(
    "/tenants/{tenant:str}",
    operation_id="delete_tenant",
    summary="Delete a tenant with all its data",
    tags=_TAGS,
    status_code=202,
    opt=_OPERATE | documented(problems=[409, 412, 501]),
)
async def delete_tenant(
    tenant: TenantReference,
    options: Provided[DeleteTenantOptions],
    administration: Provided[Administration],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> TenantWithDeletion:
    """Revokes all keys of a tenant at once, and has all its data deleted, which cannot be undone.

    Its jobs are cancelled, its webhooks end, and a worker deletes its datasets, files and rows. `get_tenant` reports
    the progress: the tenant is `deleting`, and then `deleted`. Only its id, the report and its audit are left.
    """
    current = await threads.run(administration.delete_tenant, principal, tenant, options.confirm)
    return tenant_with_deletion(current, await threads.run(administration.deletion, current))


@patch(
    "/tenants/{tenant:str}",
    operation_id="change_tenant",
    summary="Change a tenant",
    tags=_TAGS,
    opt=_OPERATE | documented(problems=[409, 501]),
)
async def change_tenant(
    tenant: TenantReference,
    data: JSONBody[UpdateTenant],
    administration: Provided[Administration],
    threads: Provided[Threads],
) -> TenantResponse:
    """Suspends a tenant, so that its requests that write are refused, lets it write again, or changes its quotas.

    All take effect at once. Reading goes on. Jobs that were accepted before run to their end. Of `quotas`, absent
    members keep their value, and null removes a limit.
    """
    require_member(data)
    return tenant_response(await threads.run(administration.change_tenant, tenant, tenant_change(data)))
