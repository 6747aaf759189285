"""Values of transactions. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headwater_client.models.writes import Job


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets, all or nothing."""

    id: str
    """Its id."""
    state: str
    """The state that all its jobs have in common."""
    jobs: tuple[Job, ...]
    """Its writes, in the order of the request; they end together."""
    error: dict[str, Any] | None
    """Why the write failed that failed all others."""
    created_at: datetime
    """When it was accepted."""
    links: TransactionLinks
    """The paths of its resources."""


class TransactionLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a transaction's resources."""

    self_: str
    """The transaction."""
