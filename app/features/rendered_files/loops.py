"""What workers repeat for rendered files. They import no framework of HTTP, which `compose` does."""

from __future__ import annotations

from typing import Final

from app.core.feature.feature import Feature
from app.core.platform import Platform
from app.features.rendered_files.repository.evictions import EvictionStore
from app.features.rendered_files.service.eviction import EvictRenderings
from app.infra.runtime.loops import Loop

EVICTION_SECONDS: Final = 60.0
"""How long objects may take more than their bounds."""


def evict_renderings(platform: Platform) -> EvictRenderings:
    """Keeps rendered objects within their bounds."""
    return EvictRenderings(
        store=EvictionStore(platform.database),
        storage=platform.storage,
        bytes_max=platform.settings.rendered_bytes_max,
        tenant_bytes_max=platform.settings.rendered_tenant_bytes_max,
    )


def _loops(platform: Platform) -> tuple[Loop, ...]:
    return (
        Loop(
            "rendered files",
            evict_renderings(platform).run,
            every_seconds=EVICTION_SECONDS,
            waits_first=True,
        ),
    )


FEATURE: Final[Feature[object]] = Feature(name="rendered_files", loops=_loops)
