"""Values of tenants. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime

import msgspec


class CreatedTenant(msgspec.Struct, frozen=True, kw_only=True):
    """A new tenant with its first key."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    state: str
    """Whether it may write."""
    quotas: Quotas
    """Its limits."""
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


class QuotaShare(msgspec.Struct, frozen=True, kw_only=True):
    """Which share of a quota is used."""

    quota: str
    """Its name."""
    share: float
    """The used share: 1 is all of it."""


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a tenant. One that is absent does not exist. In a change, null removes a limit."""

    datasets: int | None = None
    """The datasets that exist, the tables of views included."""
    views: int | None = None
    """The views that exist."""
    consumers: int | None = None
    """The consumers that exist, without those of webhooks, exports and views."""
    webhooks: int | None = None
    """The webhooks that exist."""
    exports: int | None = None
    """The exports that have not ended."""
    sources: int | None = None
    """The sources that exist."""
    shares: int | None = None
    """The shares that exist."""
    recipients: int | None = None
    """The recipients of all shares."""
    queued_jobs: int | None = None
    """The requested jobs that wait for a worker. Jobs that the service starts itself are neither counted nor refused.
    """
    running_jobs: int | None = None
    """The jobs that run at a time; writes that share a commit count once. Further jobs wait."""
    storage_bytes: int | None = None
    """The bytes of all files, measured every minute. Once they reach it, only deletions are accepted as writes."""
    rows_per_day: int | None = None
    """The rows that writes change in a day, in UTC. Once they reach it, no write is accepted until the next day."""
    bytes_per_day: int | None = None
    """The bytes of the files that writes add in a day, in UTC. Once they reach it, no write is accepted until the next
    day.
    """
    streams: int | None = None
    """The requests that wait at a time: event streams and long polls."""
    requests_per_second: int | None = None
    """The requests per second. As many may come at once after a pause of a second."""
    object_requests_per_second: int | None = None
    """The requests per second for files of tables in S3's protocol, which `requests_per_second` does not count."""
    sharing_requests_per_second: int | None = None
    """The requests per second of all recipients together for Delta Sharing, which `requests_per_second` does not count.
    """
    weight: float | None = None
    """The share of the workers, relative to those of other tenants; 1 by default."""
    job_seconds: float | None = None
    """The time that an attempt at a write, a read or the computation of a view may run."""


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    state: str
    """Whether it may write."""
    quotas: Quotas
    """Its limits."""
    suspended_reason: str | None
    """Why it is suspended; null unless it is."""
    suspended_at: datetime | None
    """When it was suspended; null unless it is."""
    created_at: datetime
    """When it was made."""


class TenantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Tenants by name."""

    items: tuple[TenantWithUse, ...]
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
    quotas: Quotas
    """Its limits."""
    suspended_reason: str | None
    """Why it is suspended; null unless it is."""
    suspended_at: datetime | None
    """When it was suspended; null unless it is."""
    created_at: datetime
    """When it was made."""
    deletion: Deletion | None
    """Its deletion; null unless one was requested."""


class TenantWithUse(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant with what it uses, as of the last samples."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    state: str
    """Whether it may write."""
    quotas: Quotas
    """Its limits."""
    suspended_reason: str | None
    """Why it is suspended; null unless it is."""
    suspended_at: datetime | None
    """When it was suspended; null unless it is."""
    created_at: datetime
    """When it was made."""
    stored_bytes: int
    """The bytes of all files of its datasets."""
    rows_today: int
    """The rows that it has written on this day, in UTC."""
    quota_shares: tuple[QuotaShare, ...]
    """The shares of its quotas `storage_bytes`, `rows_per_day` and `bytes_per_day` that are used, the largest first.
    Quotas that are not set are absent, and so are all of a tenant that is not active.
    """
