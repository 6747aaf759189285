"""What monitoring serves."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import FeatureApi
from app.features.monitoring.handlers import read_metrics

API: Final = FeatureApi(name="monitoring", routes=(read_metrics,))
