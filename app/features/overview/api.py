"""What overviews serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.maintenance.compose import service_results
from app.features.maintenance.service.analysis import AnalysisResults
from app.features.overview.compose import overview_store
from app.features.overview.handlers import list_files, list_partitions, read_statistics
from app.features.overview.service import Overview
from app.features.versions.compose import version_of


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform = process.platform
    overview = Overview(
        index=overview_store(platform),
        timeline=platform.stores.timeline,
        versions=version_of(platform),
        analyses=AnalysisResults(results=service_results(platform)),
    )
    return {"overview": overview}


API: Final = FeatureApi(
    name="overview",
    routes=(
        list_files,
        list_partitions,
        read_statistics,
    ),
    dependencies=_dependencies,
)
