"""Composes the use cases of reads."""

from __future__ import annotations

from typing import Final

from app.core.compose import read_corrections
from app.core.feature.feature import Feature, Worker
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.read import READ
from app.core.jobs.service.run_tasks import TaskHandlers, handled
from app.features.exports.compose import roots_of
from app.features.reads.repository import ReadResultStore
from app.features.reads.service.later_corrections import LaterCorrections
from app.features.reads.service.run import RunReads


def _tasks(worker: Worker[Engine]) -> TaskHandlers:
    platform = worker.platform
    read = RunReads(
        catalog=platform.stores.catalog,
        timeline=platform.stores.timeline,
        index=platform.changelog,
        later=LaterCorrections(timeline=platform.stores.timeline, corrections=read_corrections(platform)),
        pins=platform.pins,
        results=ReadResultStore(platform.database),
        storage=platform.storage,
        engine=worker.engine,
        roots_of=roots_of(platform),
        inline_bytes_max=platform.settings.read_inline_bytes_max,
    )
    return handled(READ, read)


FEATURE: Final = Feature(name="reads", tasks=_tasks)
