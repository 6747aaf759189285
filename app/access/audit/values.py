"""Values of the audit."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

UNAUTHENTICATED: Final = "00000000-0000-0000-0000-000000000000"
"""The tenant of entries about callers without a valid key."""


class AccessOutcome(str, Enum):
    """The result of a request, as the audit has it."""

    ALLOWED = "allowed"
    """It was carried out."""
    DENIED = "denied"
    """The caller may not do this, or what it names does not exist for it (401, 403, 404)."""
    FAILED = "failed"
    """It was refused for another reason, or failed."""


def outcome_of(status: int) -> AccessOutcome:
    """The outcome that an HTTP status stands for."""
    if status < 400:
        return AccessOutcome.ALLOWED
    return AccessOutcome.DENIED if status in (401, 403, 404) else AccessOutcome.FAILED


class RequestedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """What was requested: `path` is a template, without values."""

    id: str
    method: str
    path: str


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asked. `tenant_id` and `key_id` are None for a caller without a valid key."""

    tenant_id: str | None = None
    key_id: str | None = None
    key_name: str | None = None


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about access. Equal ones are counted. `dataset`: only of requests that were carried out.

    `address`: only of others. `digest`: of the credential of a request that was not authenticated.
    """

    caller: Caller
    operation: RequestedOperation
    outcome: AccessOutcome
    status: int
    code: str | None = None
    dataset: str | None = None
    address: str | None = None
    digest: bytes | None = None


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the audit. `tenant_id` is the tenant that the request was about, `key_tenant_id` that of the caller.

    `count` equal requests arrived from `first_at` to `at`. `route`: the path without values. `members`: those of the
    body, null where the value is not recorded.
    """

    tenant_id: str
    id: str
    first_at: datetime
    at: datetime
    key_tenant_id: str | None
    key_id: str | None
    key_name: str | None
    operation: str
    method: str
    route: str
    resources: dict[str, str]
    members: dict[str, Any]
    address: str | None
    outcome: str
    status: int
    code: str | None
    request_id: str | None
    count: int


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row to add. Ages are in seconds before now, which is the database's."""

    caller: Caller
    operation: RequestedOperation
    outcome: AccessOutcome
    status: int
    code: str | None = None
    resources: dict[str, str] = {}
    members: dict[str, Any] = {}
    address: str | None = None
    request_id: str | None = None
    count: int = 1
    first_age_seconds: float = 0.0
    age_seconds: float = 0.0


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries; None for all. `since` is inclusive, `until` exclusive."""

    tenant_id: str | None = None
    key_id: str | None = None
    operation: str | None = None
    outcome: AccessOutcome | None = None
    since: datetime | None = None
    until: datetime | None = None
