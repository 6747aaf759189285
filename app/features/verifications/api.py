"""What verifications serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.verifications.handlers import create_verification
from app.features.verifications.service import Verifications


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"verifications": Verifications(request_job=process.platform.request_job)}


API: Final = FeatureApi(
    name="verifications",
    routes=(create_verification,),
    dependencies=_dependencies,
)
