"""Which versions were committed since a time."""

from __future__ import annotations

from datetime import datetime

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionReader


def first_version_since(timeline: VersionReader, dataset: Dataset, moment: datetime) -> int:
    """The first version that was committed at a time or later, which the dataset may not have reached."""
    before = timeline.version_at(dataset.tenant_id, dataset.id, moment)
    if before and timeline.commit_times(dataset.tenant_id, dataset.id, [before]).get(before) == moment:
        return before
    return before + 1
