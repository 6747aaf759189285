"""What monitoring serves."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.monitoring.handlers import read_metrics, read_overview, read_overview_hours
from app.features.monitoring.repository.dataset_numbers import DatasetNumberStore
from app.features.monitoring.service.overview import TenantOverview


def _dependencies(process: ApiProcess) -> dict[str, object]:
    catalog, database = process.platform.stores.catalog, process.platform.database
    return {"tenant_overview": TenantOverview(catalog=catalog, numbers=DatasetNumberStore(database))}


API: Final = FeatureApi(
    name="monitoring", routes=(read_metrics, read_overview, read_overview_hours), dependencies=_dependencies
)
