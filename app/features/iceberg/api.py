"""What the Iceberg catalogue serves."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import FeatureApi
from app.features.iceberg.handlers.catalogue import HANDLERS
from app.features.iceberg.handlers.error_form import error_form
from app.features.iceberg.handlers.tokens import give_token
from app.features.iceberg.problems import PROBLEMS

API: Final = FeatureApi(
    name="iceberg",
    routes=(),
    protocol_routes=(*HANDLERS, give_token),
    error_forms={"iceberg": error_form},
    problems=(PROBLEMS,),
)
