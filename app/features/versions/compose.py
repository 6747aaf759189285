"""Composes the use cases of versions."""

from __future__ import annotations

from app.core.jobs.engine import Engine
from app.core.jobs.service.run_tasks import TaskHandler
from app.core.jobs.values import JobKind
from app.core.platform import Platform
from app.core.timeline.service.name_winner import NameWinner
from app.features.maintenance.values import Reconciler
from app.features.versions.repository.named_versions import NamedVersionStore
from app.features.versions.service.comparisons import Comparisons
from app.features.versions.service.name_versions import NameVersions
from app.features.versions.service.restores import Restores
from app.features.versions.service.run_comparisons import RunComparisons
from app.features.versions.service.run_named_versions import RunNames
from app.features.versions.service.run_restore import StageEarlier
from app.features.versions.service.tag_policy import TagReconciler
from app.features.versions.service.versions import VersionOf
from app.features.writes.ports import InputStager


def version_of(platform: Platform) -> VersionOf:
    """Finds versions by number, name or time."""
    names = NamedVersionStore(platform.database)
    return VersionOf(timeline=platform.stores.timeline, names=names, leases=platform.leases)


def name_versions(platform: Platform) -> NameVersions:
    """Savepoints and tags in the API."""
    names = NamedVersionStore(platform.database)
    return NameVersions(names=names, versions=version_of(platform), jobs=platform.request_job)


def restores(platform: Platform) -> Restores:
    """Restores and rollbacks in the API."""
    names = NamedVersionStore(platform.database)
    return Restores(
        names=names,
        versions=version_of(platform),
        winners=NameWinner(timeline=platform.stores.timeline),
        jobs=platform.request_job,
    )


def comparisons(platform: Platform) -> Comparisons:
    """Comparisons in the API."""
    return Comparisons(versions=version_of(platform), jobs=platform.request_job)


def dependencies(platform: Platform) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {
        "name_versions": name_versions(platform),
        "restores": restores(platform),
        "comparisons": comparisons(platform),
    }


def tasks(platform: Platform, engine: Engine) -> dict[JobKind, TaskHandler]:
    """The kinds of task that a worker runs for versions."""
    names = RunNames(names=NamedVersionStore(platform.database))
    return {
        JobKind.SAVEPOINT: names,
        JobKind.TAG: names,
        JobKind.COMPARISON: RunComparisons(
            catalog=platform.stores.catalog,
            jobs=platform.stores.jobs,
            timeline=platform.stores.timeline,
            pins=platform.pins,
            engine=engine,
        ),
    }


def stagers(platform: Platform, engine: Engine) -> dict[JobKind, InputStager]:
    """The kinds of write whose input is an earlier version."""
    earlier = StageEarlier(
        catalog=platform.stores.catalog,
        timeline=platform.stores.timeline,
        pins=platform.pins,
        engine=engine,
    )
    return {JobKind.RESTORE: earlier, JobKind.ROLLBACK: earlier}


def reconcilers(platform: Platform) -> dict[str, Reconciler]:
    """The policy that names and expires automatic tags."""
    return {"tags": TagReconciler(tags=NamedVersionStore(platform.database))}
