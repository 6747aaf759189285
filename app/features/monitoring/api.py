"""What monitoring serves."""

from __future__ import annotations

from typing import Final

from sqlalchemy import make_url

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
from app.infra.files.storage import LocalStorage


def _dependencies(process: ApiProcess) -> dict[str, object]:
    catalog, database = process.platform.stores.catalog, process.platform.database
    return {
        "tenant_overview": TenantOverview(catalog=catalog, numbers=DatasetNumberStore(database)),
        "largest_datasets": LargestDatasets(
            datasets=StoredDatasetStore(database),
            files_on_disk=isinstance(process.platform.storage, LocalStorage),
            database_on_host=is_on_this_machine(process.platform.settings.database_url),
        ),
    }


def is_on_this_machine(database_url: str) -> bool:
    """Whether a URL of Postgres leads to a socket or to this machine."""
    url = make_url(database_url)
    host = str(url.host or url.query.get("host", "localhost"))
    return host.startswith("/") or host in ("localhost", "127.0.0.1", "::1")


API: Final = FeatureApi(
    name="monitoring",
    routes=(read_metrics, read_overview, read_overview_hours, list_stored_datasets),
    dependencies=_dependencies,
)
