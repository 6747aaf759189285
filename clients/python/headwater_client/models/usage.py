"""Values of usage. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime

import msgspec


class QuotaUse(msgspec.Struct, frozen=True, kw_only=True):
    """A quota of a tenant."""

    quota: str
    """Its name."""
    limit: int | float | None
    """The limit; null for none."""
    used: int | None
    """What is used now; null for a quota of which nothing is counted."""


class QuotaUses(msgspec.Struct, frozen=True, kw_only=True):
    """The quotas of a tenant, with what it uses now."""

    items: tuple[QuotaUse, ...]
    """All quotas, those without a limit included."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What was used on a day, in UTC. A dataset has no requests, and a key has nothing but them: null."""

    day: str
    """The day."""
    dataset_id: str | None
    """The id of the dataset, where usage is listed by dataset."""
    dataset: str | None
    """Its name. Null for a dataset that was deleted so long ago that only its usage is kept."""
    dataset_deleted_at: datetime | None
    """When the dataset was deleted; null for one that exists."""
    key_id: str | None
    """The key, where usage is listed by key."""
    rows_written: int | None
    """The rows that writes inserted, updated or deleted."""
    bytes_written: int | None
    """The bytes of the files that writes added."""
    changes: int | None
    """The changes in feeds."""
    job_seconds: float | None
    """How long jobs ran, from the start to the end. Jobs that share a commit count once."""
    stored_bytes: int | None
    """The most bytes that files had in a sample of the day."""
    requests: int | None
    """The requests."""
    egress_bytes: int | None
    """The bytes of the bodies of responses."""


class UsagePage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage by day."""

    items: tuple[Usage, ...]
    """The days of this page on which anything was used."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
