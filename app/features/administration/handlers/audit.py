"""The audit: that of the own tenant, and, for operators, that of all tenants."""

from __future__ import annotations

from litestar import get

from app.access.tenants.values import KeyScope, Principal
from app.features.administration.schemas import AuditPage, ReadAuditOptions, audit_entry
from app.features.administration.service import AuditReader
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented


@get(
    "/audit",
    operation_id="read_audit",
    summary="Read the audit",
    tags=["audit"],
    opt=needs(KeyScope.MANAGE, whole_tenant=True, alternative=KeyScope.OPERATE)
    | documented(problems=[404, 501]),
)
async def read_audit(
    options: Provided[ReadAuditOptions],
    audit_reader: Provided[AuditReader],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> AuditPage:
    """Lists who requested what, the newest first: administrative requests one by one, all others as numbers.

    A key with the scope `operate` reads the entries of all tenants, another one those of its tenant.
    """
    page = await threads.run(
        audit_reader.read,
        principal,
        options.wanted(),
        tenant=options.tenant,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return AuditPage(items=[audit_entry(each) for each in page.items], next_page_token=page.next_token)
