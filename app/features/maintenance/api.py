"""What table services serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.maintenance.compose import table_services
from app.features.maintenance.handlers.clusterings import create_clustering
from app.features.maintenance.handlers.compactions import create_compaction


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"table_services": table_services(process.platform)}


API: Final = FeatureApi(
    name="maintenance",
    routes=(
        create_compaction,
        create_clustering,
    ),
    dependencies=_dependencies,
)
