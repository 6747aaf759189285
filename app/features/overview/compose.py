"""Composes the use cases of overviews."""

from __future__ import annotations

from app.core.platform import Platform
from app.features.overview.repository import OverviewStore


def overview_store(platform: Platform) -> OverviewStore:
    """The overview of tables in Postgres."""
    return OverviewStore(platform.database)
