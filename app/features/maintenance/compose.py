"""Composes the use cases of table services, and lists these."""

from __future__ import annotations

from typing import Any, Final

from app.core.feature.feature import Feature, Worker, merged
from app.core.feature.reconcilers import Reconciler
from app.core.jobs.engine import Engine
from app.core.jobs.service.run_tasks import TaskHandlers, handled
from app.core.platform import Platform
from app.features.maintenance.repository.changelog_merges import ChangelogMergeStore
from app.features.maintenance.repository.maintenance import MaintenanceStore
from app.features.maintenance.repository.service_results import ServiceResultStore
from app.features.maintenance.repository.table_shapes import TableShapeStore
from app.features.maintenance.service.analysis import Analysis
from app.features.maintenance.service.clustering import Clustering
from app.features.maintenance.service.compaction import Compaction
from app.features.maintenance.service.merge_changelog import MergeChangelog
from app.features.maintenance.service.policy_reconciler import PolicyReconciler
from app.features.maintenance.service.publish_in_slot import PublishInSlot
from app.features.maintenance.service.requests import TableServiceRequests
from app.features.maintenance.service.rewrite_file_groups import RewriteFileGroups
from app.features.maintenance.service.table_service import TableService
from app.features.maintenance.service.touched_groups import TouchedGroups
from app.infra.files.changelog_merge import ChangelogMerger
from app.infra.files.slices.vector_rebase import RebaseFiles


def table_services(worker: Worker[Engine]) -> tuple[TableService[Any], ...]:
    """All table services of this room: each runs its jobs, and has a reconciler that starts some by its policy."""
    platform = worker.platform
    shapes, rewrite = TableShapeStore(platform.database), _rewrite(worker)
    groups = TouchedGroups(names=shapes)
    return (
        Compaction(groups=groups, shapes=shapes, commits=platform.stores.timeline, rewrite=rewrite),
        Clustering(groups=groups, orders=shapes, rewrite=rewrite),
        Analysis(
            catalog=platform.stores.catalog,
            timeline=platform.stores.timeline,
            pins=platform.pins,
            engine=worker.engine,
            results=service_results(platform),
            jobs=platform.stores.jobs,
        ),
    )


def table_service_requests(platform: Platform) -> TableServiceRequests:
    """Accepts the tasks of all table services."""
    return TableServiceRequests(request_job=platform.request_job)


def service_results(platform: Platform) -> ServiceResultStore:
    """The last results of table services that make no version."""
    return ServiceResultStore(platform.database)


def maintenance_store(platform: Platform) -> MaintenanceStore:
    """The datasets whose policies are due."""
    return MaintenanceStore(platform.database, platform.stores.catalog.live)


def _tasks(worker: Worker[Engine]) -> TaskHandlers:
    return merged(*(handled(service.kind, service) for service in table_services(worker)))


def _reconcilers(worker: Worker[Engine]) -> dict[str, Reconciler]:
    platform = worker.platform
    requests = table_service_requests(platform)
    reconcilers: dict[str, Reconciler] = {
        service.kind.name.value: PolicyReconciler(
            service=service, requests=requests, jobs=platform.stores.jobs
        )
        for service in table_services(worker)
    }
    changelog = MergeChangelog(
        files=ChangelogMergeStore(platform.database),
        merger=ChangelogMerger(storage=platform.storage, reader=platform.reader),
    )
    return {**reconcilers, "changelog": changelog}


def _rewrite(worker: Worker[Engine]) -> RewriteFileGroups:
    platform = worker.platform
    settings, timeline = platform.settings, platform.stores.timeline
    return RewriteFileGroups(
        catalog=platform.stores.catalog,
        timeline=timeline,
        engine=worker.engine,
        rebase=RebaseFiles(platform.storage),
        publish=PublishInSlot(timeline=timeline, writers_max=settings.dataset_writers_max),
        replans_max=settings.replans_max,
    )


FEATURE: Final = Feature(name="maintenance", tasks=_tasks, reconcilers=_reconcilers)
