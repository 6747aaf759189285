"""Composes the use cases of quarantined records."""

from __future__ import annotations

from app.core.platform import Platform
from app.features.quarantine.repository import QuarantineStore
from app.features.quarantine.service import Quarantine
from app.infra.files.quarantine_file import QuarantineFileStore


def quarantine(platform: Platform) -> Quarantine:
    """Quarantined records in the API."""
    return Quarantine(
        index=QuarantineStore(platform.database),
        files=QuarantineFileStore(platform.storage),
        jobs=platform.stores.jobs,
        storage=platform.storage,
        wake=platform.wake,
    )


def dependencies(platform: Platform) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {"quarantine": quarantine(platform)}
