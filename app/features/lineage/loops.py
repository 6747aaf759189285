"""What workers repeat for lineage. It imports no framework of HTTP, which `api` does."""

from __future__ import annotations

from typing import Final

from app.core.feature.feature import Feature
from app.core.jobs.ends import ENDS
from app.core.platform import Platform
from app.features.lineage.emit import EmitLineage, LineageReceiver
from app.features.views.compose import view_store
from app.infra.runtime.loops import Loop

_SECONDS: Final = 5.0


def lineage_loops(platform: Platform) -> tuple[Loop, ...]:
    """The loop that sends events of OpenLineage, if a receiver of them is configured. For every process with jobs."""
    settings = platform.settings
    if not settings.openlineage_url:
        return ()
    ENDS.start()
    emit = EmitLineage(
        ends=ENDS,
        database=platform.database,
        jobs=platform.stores.jobs,
        catalog=platform.stores.catalog,
        view_of=view_store(platform).get,
        receiver=LineageReceiver(url=settings.openlineage_url, api_key=settings.openlineage_api_key),
        namespace=settings.openlineage_namespace,
    )
    return (Loop("openlineage", emit.run, every_seconds=_SECONDS, waits_first=True),)


FEATURE: Final[Feature[object]] = Feature(name="lineage", loops=lineage_loops)
