"""Composes the use cases of tenants, keys, quotas and usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.access.audit.repository.audit import AuditStore
from app.access.audit.service import ReadAudit
from app.access.tenants.repository.administration import AdministrationStore
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.repository.quotas import QuotaStore
from app.access.tenants.repository.usage import UsageStore
from app.core.platform import Platform
from app.features.administration.service import Administration, AuditReader, Identities, ReadUsage
from app.infra.db.session import Database


def dependencies(
    keys: CredentialStore,
    administration: Database | None,
    audit: AuditStore,
    platform: Platform,
    counts: Mapping[str, Callable[[str], int]],
    changed: Callable[[str], None],
) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use.

    `administration`: with the administration's login; None if the deployment has none. `counts`: what a tenant has,
    by the name of its quota. `changed`: called with the id of a tenant whose credentials have changed.
    """
    store = None if administration is None else AdministrationStore(administration)
    use_cases = Administration(store=store, changed=changed)
    usage = ReadUsage(
        usage=UsageStore(platform.database), metered=QuotaStore(platform.database).metered, counts=counts
    )
    return {
        "administration": use_cases,
        "identities": Identities(keys=keys),
        "audit_reader": AuditReader(audit=ReadAudit(store=audit), administration=use_cases),
        "usage": usage,
    }
