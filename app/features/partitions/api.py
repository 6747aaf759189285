"""What partitions serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.partitions.compose import partitions
from app.features.partitions.handlers import end_partitions, read_partition_events


def _dependencies(process: ApiProcess) -> dict[str, object]:
    # A query parameter of handlers is called `partitions`.
    return {"partition_marks": partitions(process.platform)}


API: Final = FeatureApi(
    name="partitions",
    routes=(
        end_partitions,
        read_partition_events,
    ),
    dependencies=_dependencies,
)
