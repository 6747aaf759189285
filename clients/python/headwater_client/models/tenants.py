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


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """The deletion of a tenant: what was deleted, and what was left."""

    name: str
    """The name that the tenant had, which is free once it is deleted."""
    requested_at: datetime
    """When it was requested."""
    requested_by: str | None
    """The id of the key that requested it."""
    rows_deleted: dict[str, int]
    """The rows deleted so far, by table."""
    files_deleted: int
    """The files deleted so far."""
    bytes_deleted: int
    """Their size."""
    rows_left: dict[str, int] | None
    """The rows that were left, counted at `cleared_at`, by table: zero each. Null before."""
    files_left: int | None
    """The files that were left, counted at `cleared_at`: zero. Null before."""
    cleared_at: datetime | None
    """When nothing was left of its data; null before."""
    finished_at: datetime | None
    """When its keys were deleted and its name was free; null before."""


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


class TenantWithDeletion(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant with its deletion."""

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
    deletion: Deletion | None
    """Its deletion; null unless one was requested."""
