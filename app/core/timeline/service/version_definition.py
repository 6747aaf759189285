"""Datasets as they were at earlier versions."""

from __future__ import annotations

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionReader
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.evolution import under_schema


def definition_at(timeline: VersionReader, dataset: Dataset, version: int) -> DatasetDefinition:
    """The dataset under the schema that it had at a version, which it has reached. Raises Unavailable."""
    latest = dataset.definition
    if version == dataset.version or latest.schema.id == 1:
        return latest
    schema = timeline.schema_at(dataset.tenant_id, dataset.id, version)
    return latest if schema.id == latest.schema.id else under_schema(latest, schema)
