"""Values of audit. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A request, or several equal ones."""

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
    operation: str
    """What was requested, as the OpenAPI document names it; `sign_in` for a sign-in to the console."""
    method: str
    """The method of the request."""
    path: str
    """Its path, with names in the place of values."""
    resources: dict[str, str]
    """What it was about, by kind: ids or names."""
    members: dict[str, Any]
    """The members of its body. The value is null unless it is known to be no secret."""
    via: str
    """Where it came from: `console` for what a page or a form of the console has sent, else `api`."""
    address: str | None
    """The address of the client as the service sees it; null for requests that read or write data."""
    outcome: str
    """The result."""
    status: int
    """The HTTP status."""
    code: str | None
    """The code of the problem; null if there was none."""
    request_id: str | None
    """The id of the request; null for several."""


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of the audit, the newest first."""

    items: tuple[AuditEntry, ...]
    """The entries of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
