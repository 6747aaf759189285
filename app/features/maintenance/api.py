"""What table services serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.maintenance.compose import table_service_requests
from app.features.maintenance.handlers import create_analysis, create_clustering, create_compaction


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"table_service_requests": table_service_requests(process.platform)}


API: Final = FeatureApi(
    name="maintenance",
    routes=(
        create_compaction,
        create_clustering,
        create_analysis,
    ),
    dependencies=_dependencies,
)
