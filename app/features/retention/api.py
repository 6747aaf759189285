"""What retention serves."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.retention.compose import reaper
from app.features.retention.handlers import create_clean, create_reap


def _dependencies(process: ApiProcess) -> dict[str, object]:
    # The use case of the other handler is that of table services.
    return {"reap": reaper(process.platform)}


API: Final = FeatureApi(name="retention", routes=(create_clean, create_reap), dependencies=_dependencies)
