"""What the files of tables serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import FeatureApi

API: Final = FeatureApi(name="objects", routes=())
