"""What reports to a Hive metastore serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.maintenance.compose import maintenance_store
from app.features.metastore.handlers import get_metastore_report
from app.features.metastore.service.reports import MetastoreReports


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"metastore_reports": MetastoreReports(record=maintenance_store(process.platform).record)}


API: Final = FeatureApi(
    name="metastore",
    routes=(get_metastore_report,),
    dependencies=_dependencies,
)
