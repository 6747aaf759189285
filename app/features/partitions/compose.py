"""Composes the use cases of partitions."""

from __future__ import annotations

from app.core.platform import Platform
from app.features.maintenance.values import Reconciler
from app.features.partitions.repository.marks import PartitionStore
from app.features.partitions.repository.touched import TouchedPartitionStore
from app.features.partitions.service.maintenance import PartitionMarkers, PartitionReconciler
from app.features.partitions.service.partitions import Partitions


def partitions(platform: Platform) -> Partitions:
    """Marks and events of partitions."""
    marks = PartitionStore(platform.database)
    markers = PartitionMarkers(marks=marks, storage=platform.storage)
    return Partitions(catalog=platform.stores.catalog, marks=marks, markers=markers)


def touched_partitions(platform: Platform) -> TouchedPartitionStore:
    """Partitions whose files changed."""
    return TouchedPartitionStore(platform.database)


def dependencies(platform: Platform) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    # A query parameter of handlers is called `partitions`.
    return {"partition_marks": partitions(platform)}


def reconcilers(platform: Platform) -> dict[str, Reconciler]:
    """The policy that marks partitions as done."""
    marks = PartitionStore(platform.database)
    markers = PartitionMarkers(marks=marks, storage=platform.storage)
    return {"partitions": PartitionReconciler(marks=marks, markers=markers)}
