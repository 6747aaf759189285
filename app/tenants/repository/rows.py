"""Rows of tenants and keys as values."""

from __future__ import annotations

from typing import Any, Final

from app.tenants.quotas import quotas_of
from app.tenants.tables import api_keys, tenants
from app.tenants.values import ApiKey, KeyScope, Tenant, TenantState

TENANT_COLUMNS: Final = (
    tenants.c.tenant_id.label("id"),
    *(tenants.c[name] for name in Tenant.__struct_fields__ if name != "id"),
)
KEY_COLUMNS: Final = tuple(api_keys.c[name] for name in ApiKey.__struct_fields__)


def tenant_of(row: Any) -> Tenant:
    """The tenant in a row of TENANT_COLUMNS."""
    values = row._asdict()
    quotas = quotas_of(values["quotas"])
    return Tenant(**{**values, "state": TenantState(values["state"]), "quotas": quotas})


def key_of(row: Any) -> ApiKey:
    """The key in a row of KEY_COLUMNS."""
    values = row._asdict()
    return ApiKey(**{**values, "scopes": tuple(map(KeyScope, values["scopes"]))})
