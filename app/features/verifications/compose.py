"""Composes the use cases of verifications."""

from __future__ import annotations

from typing import Final

from app.core.feature.feature import Feature, Worker
from app.core.jobs.engine import Engine
from app.core.jobs.service.run_tasks import TaskHandler
from app.core.jobs.values import JobKind
from app.features.verifications.service.run import RunVerify


def _tasks(worker: Worker[Engine]) -> dict[JobKind, TaskHandler]:
    platform = worker.platform
    run = RunVerify(
        catalog=platform.stores.catalog,
        jobs=platform.stores.jobs,
        timeline=platform.stores.timeline,
        index=platform.changelog,
        leases=platform.leases,
        pins=platform.pins,
        engine=worker.engine,
    )
    return {JobKind.VERIFY: run}


FEATURE: Final = Feature(name="verifications", tasks=_tasks)
