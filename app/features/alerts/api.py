"""What alerts serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.core.jobs.repository.processes import ProcessStore
from app.core.messaging.announcements import Announcements
from app.features.alerts.handlers import get_service_health
from app.features.alerts.service.health import CheckService
from app.infra.files.probe import StorageProbe


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform = process.platform
    settings = platform.settings
    health = CheckService(
        processes=ProcessStore(platform.database),
        jobs=platform.stores.jobs,
        announcements=Announcements(settings.redis_url),
        probe=StorageProbe(platform.storage),
        poll_seconds=settings.poll_seconds,
        disk_free_bytes_min=settings.disk_free_bytes_min,
    )
    return {"service_health": health}


API: Final = FeatureApi(name="alerts", routes=(get_service_health,), dependencies=_dependencies)
