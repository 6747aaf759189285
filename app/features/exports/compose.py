"""Composes the use cases of exports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from app.core.consumers.followers import ConsumerKind, Follower
from app.core.feature.feature import Feature, Participants, Worker
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.export import EXPORT
from app.core.jobs.service.run_tasks import TaskHandlers, handled
from app.core.platform import Platform
from app.features.exports.repository.exports import ExportStore
from app.features.exports.repository.readers import ExportReaders
from app.features.exports.service.destinations import Destinations
from app.features.exports.service.run import RunExports
from app.infra.files.folders.admitted import roots_of_tenant


def _tasks(worker: Worker[Engine]) -> TaskHandlers:
    return handled(EXPORT, _run_exports(worker))


def _followers(worker: Worker[Engine]) -> dict[ConsumerKind, Follower]:
    return {ConsumerKind.EXPORT: _run_exports(worker)}


def _run_exports(worker: Worker[Engine]) -> RunExports:
    platform = worker.platform
    return RunExports(
        catalog=platform.stores.catalog,
        exports=ExportStore(platform.database),
        timeline=platform.stores.timeline,
        pins=platform.pins,
        index=platform.changelog,
        storage=platform.storage,
        engine=worker.engine,
        roots_of=roots_of(platform),
    )


def roots_of(platform: Platform) -> Callable[[str], tuple[str, ...]]:
    """The folders to which the exports of a tenant, by its id, may go."""
    return partial(roots_of_tenant, platform.settings.export_roots)


def destinations_on(platform: Platform) -> Destinations:
    """The folders to which users have files copied."""
    return Destinations(storage_uri=platform.settings.storage_uri, roots_of=roots_of(platform))


FEATURE: Final = Feature(
    name="exports",
    participants=Participants(readers=ExportReaders()),
    tasks=_tasks,
    followers=_followers,
)
