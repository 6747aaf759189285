"""Values of tenants. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class CreatedTenant(msgspec.Struct, frozen=True, kw_only=True):
    """A new tenant with its first key."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    state: str
    """Whether it may write."""
    quotas: dict[str, Any]
    """Its quotas. None are enforced yet."""
    suspended_reason: str | None
    """Why it is suspended; null unless it is."""
    suspended_at: datetime | None
    """When it was suspended; null unless it is."""
    created_at: datetime
    """When it was made."""
    api_key: str
    """Its first key, with the scopes `read`, `write` and `manage`. It is only in this response."""


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    state: str
    """Whether it may write."""
    quotas: dict[str, Any]
    """Its quotas. None are enforced yet."""
    suspended_reason: str | None
    """Why it is suspended; null unless it is."""
    suspended_at: datetime | None
    """When it was suspended; null unless it is."""
    created_at: datetime
    """When it was made."""


class TenantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Tenants by name."""

    items: tuple[Tenant, ...]
    """The tenants of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
