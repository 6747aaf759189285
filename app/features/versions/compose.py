"""Composes the use cases of versions."""

from __future__ import annotations

from typing import Final

from app.core.feature.feature import Feature, Participants, Worker
from app.core.feature.reconcilers import Reconciler
from app.core.feature.stagers import InputStager
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.comparison import COMPARISON
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.named_version import SAVEPOINT, TAG
from app.core.jobs.service.run_tasks import TaskHandlers, handled
from app.core.platform import Platform
from app.features.versions.repository import NamedVersionStore, VersionParticipant
from app.features.versions.service.comparisons import RunComparisons
from app.features.versions.service.name_versions import RunNames
from app.features.versions.service.restores import StageEarlier
from app.features.versions.service.tag_policy import TagReconciler
from app.features.versions.service.versions import VersionOf


def version_of(platform: Platform) -> VersionOf:
    """Finds versions by number, name or time."""
    names = NamedVersionStore(platform.database)
    return VersionOf(timeline=platform.stores.timeline, names=names, leases=platform.leases)


def _tasks(worker: Worker[Engine]) -> TaskHandlers:
    platform = worker.platform
    names = RunNames(names=NamedVersionStore(platform.database))
    comparisons = RunComparisons(
        catalog=platform.stores.catalog,
        jobs=platform.stores.jobs,
        timeline=platform.stores.timeline,
        pins=platform.pins,
        engine=worker.engine,
    )
    return {**handled(SAVEPOINT, names), **handled(TAG, names), **handled(COMPARISON, comparisons)}


def _stagers(worker: Worker[Engine]) -> dict[JobKind, InputStager]:
    platform = worker.platform
    earlier = StageEarlier(
        catalog=platform.stores.catalog,
        timeline=platform.stores.timeline,
        pins=platform.pins,
        engine=worker.engine,
    )
    return {JobKind.RESTORE: earlier, JobKind.ROLLBACK: earlier}


def _reconcilers(worker: Worker[object]) -> dict[str, Reconciler]:
    return {"tags": TagReconciler(tags=NamedVersionStore(worker.platform.database))}


FEATURE: Final[Feature[Engine]] = Feature(
    name="versions",
    participants=Participants(commit=VersionParticipant()),
    tasks=_tasks,
    stagers=_stagers,
    reconcilers=_reconcilers,
)
