"""Marking partitions as done: on request, and by a reconciler."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.positions import StartingPosition
from app.core.feature.reconcilers import Observation, ReconcileResult
from app.features.partitions.repository.marks import PartitionStore
from app.features.partitions.values import MarkerWork, PartitionEvents, PartitionMark
from app.infra.files.ports import ObjectStorage
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.paths import dataset_prefix, marker_path

_MARKERS_AT_ONCE: Final = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionMarkers:
    """The marker files of partitions that are done."""

    marks: PartitionStore
    storage: ObjectStorage

    def settle(self, dataset: Dataset) -> bool:
        """Writes and removes some outdated marker files; true if there may be more."""
        policy = dataset.definition.services.partition_done
        prefix = dataset_prefix(dataset.tenant_id, dataset.id)

        def settle(work: MarkerWork) -> None:
            path = marker_path(prefix, work.path)
            # Also a marker that was written, but not recorded.
            self.storage.delete([path])
            if work.version is not None:
                content = {"partition": work.path, "version": work.version, "done_at": work.done_at}
                with self.storage.create(path) as file:
                    file.write(msgspec.json.encode(content))

        count = self.marks.settle_markers(
            dataset.tenant_id,
            dataset.id,
            settle,
            with_markers=policy is not None and policy.marker,
            limit=_MARKERS_AT_ONCE,
        )
        return count == _MARKERS_AT_ONCE


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionReconciler:
    """The reconciler of `services.partition_done`. Without this policy it removes the marks and marker files."""

    marks: PartitionStore
    markers: PartitionMarkers

    def reconcile(self, observation: Observation) -> ReconcileResult:
        """Records changed and idle partitions, and updates marker files. See `Reconciler`."""
        dataset = observation.dataset
        policy = dataset.definition.services.partition_done
        if not dataset.definition.partition_by:
            return ReconcileResult()
        wait = None
        if policy is not None:
            idle_seconds = None if policy.idle_seconds is None else float(policy.idle_seconds)
            wait = self.marks.catch_up(dataset.tenant_id, dataset.id, idle_seconds=idle_seconds)
        if self.markers.settle(dataset):
            return ReconcileResult(wake_after_seconds=0.0)
        if policy is None:
            self.marks.clear(dataset.tenant_id, dataset.id)
        return ReconcileResult(wake_after_seconds=wait)


@dataclass(frozen=True, kw_only=True, slots=True)
class Partitions:
    """The partitions of a tenant's datasets."""

    catalog: DatasetLookup
    marks: PartitionStore
    markers: PartitionMarkers

    def end(self, dataset: Dataset, partitions: Sequence[str]) -> list[PartitionMark]:
        """Marks partitions as done; see `PartitionStore.end`. Raises InvalidRequest, NotFound."""
        if dataset.definition.services.partition_done is None:
            detail = "the dataset has no services.partition_done; `{}` enables it"
            raise InvalidRequest(
                "partitions of this dataset are not marked",
                [FieldError(pointer="/partitions", detail=detail)],
            )
        marks = self.marks.end(dataset.tenant_id, dataset.id, partitions)
        self.markers.settle(dataset)
        return marks

    def end_changed(self, tenant_id: str, dataset_id: str, since: int) -> None:
        """Marks the partitions that changed after a version as done, but for those with writes that are invisible
        until a compaction. Without `services.partition_done` it does nothing. Raises NotFound.
        """
        dataset = self.catalog.get(tenant_id, dataset_id)
        if dataset.definition.services.partition_done is not None:
            self.marks.end_changed(tenant_id, dataset_id, since)
            self.markers.settle(dataset)

    def marked(self, dataset: Dataset, paths: Collection[str]) -> dict[str, PartitionMark]:
        """The marks of these partitions by path; partitions without a mark are left out."""
        return self.marks.of(dataset.tenant_id, dataset.id, paths)

    def events(self, dataset: Dataset, since: int | StartingPosition, limit: int) -> PartitionEvents:
        """Raises OffsetAhead."""
        return self.marks.events(dataset.tenant_id, dataset.id, since, limit)
