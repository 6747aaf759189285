"""Composes the use cases of sharing."""

from __future__ import annotations

from typing import Final

from app.core.feature.feature import Feature, Participants
from app.core.platform import Platform
from app.features.sharing.repository.readers import RecipientReaders
from app.features.sharing.repository.shared_tables import SharedTableStore
from app.features.sharing.repository.shares import SharedDatasetDeletion
from app.features.sharing.service.shared_tables import SharedTables


def shared_tables(platform: Platform) -> SharedTables:
    """The tables that recipients see."""
    return SharedTables(store=SharedTableStore(platform.database, platform.stores.catalog.live))


FEATURE: Final[Feature[object]] = Feature(
    name="sharing", participants=Participants(deletion=SharedDatasetDeletion(), readers=RecipientReaders())
)
