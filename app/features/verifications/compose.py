"""Composes the use cases of verifications."""

from __future__ import annotations

from typing import Final

from app.core.feature.feature import Feature, Worker
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.verification import VERIFICATION
from app.core.jobs.service.run_tasks import TaskHandlers, handled
from app.features.verifications.service import RunVerify


def _tasks(worker: Worker[Engine]) -> TaskHandlers:
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
    return handled(VERIFICATION, run)


FEATURE: Final = Feature(name="verifications", tasks=_tasks)
