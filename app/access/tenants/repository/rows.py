"""Rows of tenants and keys as values."""

from __future__ import annotations

from typing import Any, Final

from app.access.tenants.quotas import quotas_of
from app.access.tenants.tables import api_keys, tenant_deletions, tenants
from app.access.tenants.values import ApiKey, KeyScope, Tenant, TenantDeletion, TenantState

TENANT_COLUMNS: Final = (
    tenants.c.tenant_id.label("id"),
    *(tenants.c[name] for name in Tenant.__struct_fields__ if name != "id"),
)
DELETION_COLUMNS: Final = tuple(tenant_deletions.c[name] for name in TenantDeletion.__struct_fields__)
KEY_COLUMNS: Final = tuple(api_keys.c[name] for name in ApiKey.__struct_fields__)


def tenant_of(row: Any) -> Tenant:
    """The tenant in a row of TENANT_COLUMNS."""
    values = row._asdict()
    quotas = quotas_of(values["quotas"])
    return Tenant(**{**values, "state": TenantState(values["state"]), "quotas": quotas})


def deletion_of(row: Any) -> TenantDeletion:
    """The deletion in a row of DELETION_COLUMNS."""
    return TenantDeletion(**row._asdict())


def key_of(row: Any) -> ApiKey:
    """The key in a row of KEY_COLUMNS."""
    values = row._asdict()
    return ApiKey(**{**values, "scopes": tuple(map(KeyScope, values["scopes"]))})
