"""The kinds whose parts are fetched by tasks: they need nothing but their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.sources.kinds.files import Files
from app.features.sources.kinds.kafka import Kafka
from app.features.sources.ports import SourceKind

KINDS: Final[Mapping[str, SourceKind]] = {"files": Files(), "kafka": Kafka()}
"""By name. Tasks import this module; a kind that needs use cases of the service is added by `compose`."""
