"""What lineage serves."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import FeatureApi
from app.features.lineage.handlers import read_lineage
from app.features.lineage.providers import PROVIDERS

API: Final = FeatureApi(name="lineage", routes=(read_lineage,), providers=PROVIDERS)
