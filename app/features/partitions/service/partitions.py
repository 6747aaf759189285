"""Partitions that are done, on request: marks and events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.positions import StartingPosition
from app.features.partitions.repository.marks import PartitionStore
from app.features.partitions.service.maintenance import PartitionMarkers
from app.features.partitions.values import PartitionEvents, PartitionMark
from app.kernel.format.errors import FieldError, InvalidRequest


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
