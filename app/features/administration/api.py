"""What the administration of tenants, keys, quotas and usage serves."""

from __future__ import annotations

from typing import Final

from app.access.audit.repository import AuditStore
from app.access.audit.service import ReadAudit
from app.access.tenants.repository.administration import AdministrationStore
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.repository.quotas import QuotaStore
from app.access.tenants.repository.tenant_use import TenantUseStore
from app.access.tenants.repository.usage import UsageStore
from app.core.feature.api import ApiProcess, FeatureApi
from app.features.administration.handlers.audit import read_audit
from app.features.administration.handlers.identity import get_identity
from app.features.administration.handlers.keys import KEY_HANDLERS
from app.features.administration.handlers.tenants import (
    change_tenant,
    create_tenant,
    delete_tenant,
    get_tenant,
    list_tenants,
)
from app.features.administration.handlers.usage import USAGE_HANDLERS
from app.features.administration.service import Administration, AuditReader, Identities, ReadUsage


def _dependencies(process: ApiProcess) -> dict[str, object]:
    database, administrators = process.platform.database, process.administration
    store = None if administrators is None else AdministrationStore(administrators)
    administration = Administration(store=store, on_change=process.on_credential_change)
    audit = ReadAudit(store=AuditStore(database, administrators))
    return {
        "administration": administration,
        "identities": Identities(keys=CredentialStore(database)),
        "audit_reader": AuditReader(audit=audit, administration=administration),
        "usage": ReadUsage(
            usage=UsageStore(database),
            tenant_use=TenantUseStore(database),
            dataset_names=process.platform.stores.catalog.names_by_id,
            meter=QuotaStore(database).metered,
            counts=process.quota_use,
        ),
    }


API: Final = FeatureApi(
    name="administration",
    routes=(
        get_identity,
        *KEY_HANDLERS,
        *USAGE_HANDLERS,
        create_tenant,
        list_tenants,
        get_tenant,
        change_tenant,
        delete_tenant,
        read_audit,
    ),
    dependencies=_dependencies,
)
