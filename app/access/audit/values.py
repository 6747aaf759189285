"""Values of the audit."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

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


class AccessVia(str, Enum):
    """Where a request came from, as the audit has it."""

    API = "api"
    """From a client."""
    CONSOLE = "console"
    """From a page or a form of the console."""


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

    `address`: only of others, and of sign-ins. `digest`: of the credential of a request that was not authenticated.
    """

    caller: Caller
    operation: RequestedOperation
    outcome: AccessOutcome
    status: int
    code: str | None = None
    via: AccessVia = AccessVia.API
    dataset: str | None = None
    address: str | None = None
    digest: bytes | None = None


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the audit: a request, or several equal ones."""

    id: str
    """The id of the entry."""
    at: datetime
    """When it was recorded; of several requests, when the last one arrived."""
    first_at: datetime
    """When the first of them arrived."""
    count: int
    """How many requests there were."""
    tenant_id: str | None
    """The tenant that it was about; null for a caller without a valid key."""
    key_tenant_id: str | None
    """The tenant of the key; null without one."""
    key_id: str | None
    """The id of the key; null without one."""
    key_name: str | None
    """The name of the key then; null without one."""
    operation: Annotated[str, msgspec.Meta(examples=["create_key"])]
    """What was requested, as the OpenAPI document names it; `sign_in` for a sign-in to the console."""
    method: str
    """The method of the request."""
    path: Annotated[str, msgspec.Meta(examples=["/tenants/{tenant}/keys"])]
    """Its path, with names in the place of values."""
    resources: dict[str, str]
    """What it was about, by kind: ids or names."""
    members: dict[str, Any]
    """The members of its body. The value is null unless it is known to be no secret."""
    via: AccessVia
    """Where it came from: `console` for what a page or a form of the console has sent, else `api`."""
    address: str | None
    """The address of the client as the service sees it; null for requests that read or write data."""
    outcome: AccessOutcome
    """The result."""
    status: int
    """The HTTP status."""
    code: str | None
    """The code of the problem; null if there was none."""
    request_id: str | None
    """The id of the request; null for several."""


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row to add. Ages are in seconds before now, which is the database's."""

    caller: Caller
    operation: RequestedOperation
    outcome: AccessOutcome
    status: int
    code: str | None = None
    resources: dict[str, str] = {}
    members: dict[str, Any] = {}
    via: AccessVia = AccessVia.API
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
    via: AccessVia | None = None
    since: datetime | None = None
    until: datetime | None = None
