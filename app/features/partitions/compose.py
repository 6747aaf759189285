"""Composes the use cases of partitions."""

from __future__ import annotations

from typing import Final

from app.core.feature.feature import Feature, Participants, Worker
from app.core.feature.reconcilers import Reconciler
from app.core.platform import Platform
from app.features.partitions.repository.marks import PartitionStore
from app.features.partitions.repository.participant import PartitionParticipant
from app.features.partitions.repository.touched import TouchedPartitionStore
from app.features.partitions.service import PartitionMarkers, PartitionReconciler, Partitions


def partitions(platform: Platform) -> Partitions:
    """Marks and events of partitions."""
    marks = PartitionStore(platform.database)
    markers = PartitionMarkers(marks=marks, storage=platform.storage)
    return Partitions(catalog=platform.stores.catalog, marks=marks, markers=markers)


def touched_partitions(platform: Platform) -> TouchedPartitionStore:
    """Partitions whose files changed."""
    return TouchedPartitionStore(platform.database)


def _reconcilers(worker: Worker[object]) -> dict[str, Reconciler]:
    platform = worker.platform
    marks = PartitionStore(platform.database)
    markers = PartitionMarkers(marks=marks, storage=platform.storage)
    return {"partitions": PartitionReconciler(marks=marks, markers=markers)}


FEATURE: Final = Feature(
    name="partitions", participants=Participants(commit=PartitionParticipant()), reconcilers=_reconcilers
)
