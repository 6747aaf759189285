"""What monitoring serves."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.monitoring.handlers import (
    list_stored_datasets,
    read_metrics,
    read_overview,
    read_overview_hours,
)
from app.features.monitoring.repository.dataset_numbers import DatasetNumberStore
from app.features.monitoring.repository.stored_datasets import StoredDatasetStore
from app.features.monitoring.service.overview import TenantOverview
from app.features.monitoring.service.stored_datasets import LargestDatasets


def _dependencies(process: ApiProcess) -> dict[str, object]:
    catalog, database = process.platform.stores.catalog, process.platform.database
    return {
        "tenant_overview": TenantOverview(catalog=catalog, numbers=DatasetNumberStore(database)),
        "largest_datasets": LargestDatasets(datasets=StoredDatasetStore(database)),
    }


API: Final = FeatureApi(
    name="monitoring",
    routes=(read_metrics, read_overview, read_overview_hours, list_stored_datasets),
    dependencies=_dependencies,
)
