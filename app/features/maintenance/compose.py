"""Composes the use cases of table services."""

from __future__ import annotations

from typing import Final, TypeVar

from app.core.feature.feature import Feature, Worker
from app.core.feature.reconcilers import Reconciler
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.rewrite import CLUSTERING, COMPACTION, RewriteRequest
from app.core.jobs.service.run_tasks import TaskHandlers, handled
from app.core.platform import Platform
from app.features.maintenance.repository.changelog_merges import ChangelogMergeStore
from app.features.maintenance.repository.maintenance import MaintenanceStore
from app.features.maintenance.repository.table_shapes import TableShapeStore
from app.features.maintenance.service.clustering import Clustering
from app.features.maintenance.service.compaction import Compaction
from app.features.maintenance.service.file_group_reconciler import FileGroupReconciler
from app.features.maintenance.service.merge_changelog import MergeChangelog
from app.features.maintenance.service.policy_jobs import PolicyJobs
from app.features.maintenance.service.publish_in_slot import PublishInSlot
from app.features.maintenance.service.run_table_service import RunTableService, TableServicePlanner
from app.features.maintenance.service.table_services import TableServiceRequests
from app.infra.files.changelog_merge import ChangelogMerger
from app.infra.files.slices.vector_rebase import RebaseFiles

_Request = TypeVar("_Request", bound=RewriteRequest)


def table_services(platform: Platform) -> TableServiceRequests:
    """Accepts compactions, clusterings and cleans."""
    return TableServiceRequests(request_job=platform.request_job)


def maintenance_store(platform: Platform) -> MaintenanceStore:
    """The datasets whose policies are due."""
    return MaintenanceStore(platform.database, platform.stores.catalog.live)


def _tasks(worker: Worker[Engine]) -> TaskHandlers:
    return {
        **handled(COMPACTION, _run(worker, Compaction.plan)),
        **handled(CLUSTERING, _run(worker, Clustering.plan)),
    }


def _reconcilers(worker: Worker[object]) -> dict[str, Reconciler]:
    platform = worker.platform
    shapes = TableShapeStore(platform.database)
    jobs = PolicyJobs(services=table_services(platform), jobs=platform.stores.jobs)
    compaction = Compaction(shapes=shapes, commits=platform.stores.timeline)
    return {
        "compaction": FileGroupReconciler(service=compaction, groups=shapes, jobs=jobs),
        "clustering": FileGroupReconciler(service=Clustering(orders=shapes), groups=shapes, jobs=jobs),
        "changelog": MergeChangelog(
            files=ChangelogMergeStore(platform.database),
            merger=ChangelogMerger(storage=platform.storage, reader=platform.reader),
        ),
    }


def _run(worker: Worker[Engine], plan: TableServicePlanner[_Request]) -> RunTableService[_Request]:
    platform = worker.platform
    settings, timeline = platform.settings, platform.stores.timeline
    return RunTableService(
        catalog=platform.stores.catalog,
        timeline=timeline,
        engine=worker.engine,
        rebase=RebaseFiles(platform.storage),
        publish=PublishInSlot(timeline=timeline, writers_max=settings.dataset_writers_max),
        plan=plan,
        replans_max=settings.replans_max,
    )


FEATURE: Final = Feature(name="maintenance", tasks=_tasks, reconcilers=_reconcilers)
