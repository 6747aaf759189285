"""Interfaces of the feed to storage. Every port has one test suite, run on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from app.core.changes.positions import FeedBounds
from app.kernel.format.file_group import ChangelogSegment


class ChangelogIndex(Protocol):
    """Which rows of which changelog file hold which offsets."""

    def bounds(self, tenant_id: str, dataset_id: str) -> FeedBounds: ...

    def segments(
        self, tenant_id: str, dataset_id: str, since: int, until: int, *, limit: int | None = None
    ) -> list[ChangelogSegment]:
        """The segments that hold offsets [since, until), in order; the first `limit` of them."""
        ...

    def watermark(self, tenant_id: str, dataset_id: str, position: int) -> datetime | None:
        """The watermark of the changes before a position; None if there is none."""
        ...

    def correcting(
        self, tenant_id: str, dataset_id: str, first: int, last: int, *, since: int, limit: int
    ) -> list[ChangelogSegment]:
        """Up to `limit` segments with changes from `since` on that may take back one of first–last, in order."""
        ...
