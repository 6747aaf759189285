"""Composes the use cases of overviews."""

from __future__ import annotations

from app.core.platform import Platform
from app.features.overview.repository import OverviewStore
from app.features.overview.service import Overview
from app.features.versions.service.versions import VersionOf


def overview_store(platform: Platform) -> OverviewStore:
    """The overview of tables in Postgres."""
    return OverviewStore(platform.database)


def overview(platform: Platform, versions: VersionOf) -> Overview:
    """Overviews in the API."""
    return Overview(index=overview_store(platform), timeline=platform.stores.timeline, versions=versions)


def dependencies(platform: Platform, versions: VersionOf) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {"overview": overview(platform, versions)}
