"""What retention serves."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import FeatureApi
from app.features.retention.handlers import create_clean

# The use case of the handler is that of table services.
API: Final = FeatureApi(name="retention", routes=(create_clean,))
