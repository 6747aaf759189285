"""Composes the use cases of exports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.core.consumers.followers import ConsumerKind, Follower
from app.core.jobs.engine import Engine
from app.core.jobs.service.run_tasks import TaskHandler
from app.core.jobs.values import JobKind
from app.core.platform import Platform
from app.features.exports.repository.exports import ExportStore
from app.features.exports.service.exports import ManageExports
from app.features.exports.service.run import RunExports
from app.infra.files.folders.admitted import roots_of_tenant


def manage_exports(platform: Platform) -> ManageExports:
    """Exports in the API."""
    return ManageExports(
        exports=ExportStore(platform.database),
        storage=platform.storage,
        storage_uri=platform.settings.storage_uri,
        roots_of=_roots(platform),
        wake=platform.wake,
    )


def count(platform: Platform) -> Callable[[str], int]:
    """How many exports of a tenant, by its id, count against its quota."""
    return ExportStore(platform.database).count


def dependencies(platform: Platform) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {"exports": manage_exports(platform)}


def tasks(platform: Platform, engine: Engine) -> dict[JobKind, TaskHandler]:
    """The kind of task that writes the files of a run."""
    return {JobKind.EXPORT: _run_exports(platform, engine)}


def followers(platform: Platform, engine: Engine) -> dict[ConsumerKind, Follower]:
    """The kind of consumer that starts runs."""
    return {ConsumerKind.EXPORT: _run_exports(platform, engine)}


def _run_exports(platform: Platform, engine: Engine) -> RunExports:
    return RunExports(
        catalog=platform.stores.catalog,
        exports=ExportStore(platform.database),
        timeline=platform.stores.timeline,
        pins=platform.pins,
        index=platform.changelog,
        storage=platform.storage,
        engine=engine,
        roots_of=_roots(platform),
    )


def _roots(platform: Platform) -> Callable[[str], tuple[str, ...]]:
    return partial(roots_of_tenant, platform.settings.export_roots)
