"""What alerts serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.alerts.compose import check_service
from app.features.alerts.handlers import get_service_health


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"service_health": check_service(process.platform)}


API: Final = FeatureApi(name="alerts", routes=(get_service_health,), dependencies=_dependencies)
