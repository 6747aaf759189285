"""The use cases of a worker process, wired to its adapters. Part of the composition root, `workers/main.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.changes.repository.changelog import ChangelogStore
from app.changes.service.read_changes import ReadChanges
from app.composition import stores_on
from app.consumers.followers import ConsumerKind, Follower
from app.db.session import Database
from app.exports.repository.exports import ExportStore
from app.exports.service.run import RunExports
from app.files.parquet_file import ParquetReader
from app.files.slices.vector_rebase import RebaseFiles
from app.files.storage import open_storage
from app.jobs.service.group_accept import GroupAccept
from app.jobs.service.request_job import RequestJob
from app.jobs.service.run_tasks import RunTasks, TaskHandler
from app.jobs.values import ClaimRules, JobKind
from app.maintenance.repository.table_shapes import TableShapeStore
from app.maintenance.service import table_service_plans
from app.maintenance.service.clustering_policy import ClusterGroups
from app.maintenance.service.compaction_policy import CompactGroups
from app.maintenance.service.file_group_reconciler import FileGroupReconciler
from app.maintenance.service.policy_jobs import PolicyJobs
from app.maintenance.service.publish_in_slot import PublishInSlot
from app.maintenance.service.run_table_service import RunTableService, TableServicePlanner
from app.maintenance.service.table_services import TableServiceRequests
from app.maintenance.values import Reconciler
from app.metastore.repository import METASTORE_RECONCILER
from app.metastore.service.maintenance import MetastoreReconciler
from app.outbound.addresses import Rules
from app.overview.repository import OverviewStore
from app.partitions.repository.marks import PartitionStore
from app.partitions.repository.touched import TouchedPartitionStore
from app.partitions.service.maintenance import PartitionMarkers, PartitionReconciler
from app.platform import Stores
from app.reads.repository import ReadResultStore
from app.reads.service.run import RunReads
from app.retention.repository.history import HistoryStore
from app.retention.repository.references import ReferenceStore
from app.retention.service.history_reconciler import HistoryReconciler
from app.retention.service.reaper import Reap
from app.retention.service.run_clean import RunClean
from app.settings import Settings
from app.timeline.files import TimelineFileStore
from app.timeline.repository.archives import TimelineArchiveStore
from app.timeline.repository.read_leases import ReadLeaseStore
from app.timeline.service.version_pins import VersionPins
from app.verifications.service.run import RunVerify
from app.versions.repository.named_versions import NamedVersionStore
from app.versions.service.run_comparisons import RunComparisons
from app.versions.service.run_named_versions import RunNames
from app.versions.service.run_restore import StageEarlier
from app.versions.service.tag_policy import TagReconciler
from app.views.repository.views import ViewStore
from app.views.service.refresh import DeriveView, FollowInputs
from app.webhooks.repository.deliveries import DeliveryStore
from app.webhooks.sender import HttpSender
from app.webhooks.service.deliver import DeliverWebhooks, RetryRules
from app.webhooks.service.message import Messages
from app.writes.ports import InputStager
from app.writes.service.run import RunWrites
from workers.engine.hive_metastore import HiveMetastore
from workers.engine.spark_engine import SparkEngine


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerContext:
    """What all use cases of this process share. `announce` is called after messages were left for the relay."""

    settings: Settings
    database: Database
    engine: SparkEngine
    announce: Callable[[], None]
    id: str

    @property
    def stores(self) -> Stores:
        """The core repositories."""
        return stores_on(self.database)


def run_writes(worker: WorkerContext) -> RunWrites:
    """The lane of writes."""
    settings, database = worker.settings, worker.database
    return RunWrites(
        catalog=worker.stores.catalog,
        jobs=worker.stores.jobs,
        timeline=worker.stores.timeline,
        engine=worker.engine,
        stagers=_input_stagers(worker),
        kept=ReadLeaseStore(database),
        announce=worker.announce,
        owner=worker.id,
        rules=_claim_rules(settings),
        heartbeat_seconds=settings.heartbeat_seconds,
        replans_max=settings.replans_max,
    )


def _input_stagers(worker: WorkerContext) -> dict[JobKind, InputStager]:
    """What makes the rows of the writes that come without any, by kind of job."""
    timeline, pins = worker.stores.timeline, pin_versions(worker)
    restore = StageEarlier(catalog=worker.stores.catalog, timeline=timeline, pins=pins, engine=worker.engine)
    return {
        JobKind.REFRESH: DeriveView(
            views=ViewStore(worker.database),
            timeline=timeline,
            index=ChangelogStore(worker.database),
            pins=pins,
            engine=worker.engine,
        ),
        JobKind.RESTORE: restore,
        JobKind.ROLLBACK: restore,
    }


def run_tasks(worker: WorkerContext) -> RunTasks:
    """The lane of tasks."""
    database, engine = worker.database, worker.engine
    jobs = worker.stores.jobs
    handlers: dict[JobKind, TaskHandler] = {
        JobKind.CLEAN: _run_clean(worker),
        JobKind.COMPACTION: _run_table_service(worker, table_service_plans.compaction),
        JobKind.CLUSTERING: _run_table_service(worker, table_service_plans.clustering),
        JobKind.EXPORT: _run_exports(worker),
        JobKind.SAVEPOINT: RunNames(names=NamedVersionStore(database)),
        JobKind.TAG: RunNames(names=NamedVersionStore(database)),
        JobKind.COMPARISON: RunComparisons(
            catalog=worker.stores.catalog,
            jobs=jobs,
            timeline=worker.stores.timeline,
            pins=pin_versions(worker),
            engine=engine,
        ),
        JobKind.READ: _run_reads(worker),
        JobKind.VERIFY: RunVerify(
            catalog=worker.stores.catalog,
            jobs=jobs,
            timeline=worker.stores.timeline,
            index=ChangelogStore(database),
            leases=ReadLeaseStore(database),
            pins=pin_versions(worker),
            engine=engine,
        ),
    }
    return RunTasks(
        jobs=jobs,
        handlers=handlers,
        engine=engine,
        announce=worker.announce,
        owner=worker.id,
        rules=_claim_rules(worker.settings),
        heartbeat_seconds=worker.settings.heartbeat_seconds,
    )


def _run_clean(worker: WorkerContext) -> RunClean:
    database, storage = worker.database, open_storage(worker.settings.storage_uri)
    return RunClean(
        catalog=worker.stores.catalog,
        jobs=worker.stores.jobs,
        history=HistoryStore(database),
        archives=TimelineArchiveStore(database),
        files=TimelineFileStore(storage, ParquetReader(storage)),
        reap=reaper(worker.settings, database),
    )


def reaper(settings: Settings, database: Database) -> Reap:
    """What removes files that nothing refers to."""
    return Reap(
        references=ReferenceStore(database),
        storage=open_storage(settings.storage_uri),
        grace_seconds=settings.orphan_grace_seconds,
        upload_seconds_max=settings.upload_keep_seconds,
        result_seconds_max=settings.read_result_seconds,
    )


def _run_table_service(worker: WorkerContext, plan: TableServicePlanner) -> RunTableService:
    settings, timeline = worker.settings, worker.stores.timeline
    return RunTableService(
        catalog=worker.stores.catalog,
        timeline=timeline,
        engine=worker.engine,
        rebase=RebaseFiles(open_storage(settings.storage_uri)),
        publish=PublishInSlot(timeline=timeline, writers_max=settings.dataset_writers_max),
        plan=plan,
        replans_max=settings.replans_max,
    )


def follower_handlers(worker: WorkerContext) -> dict[ConsumerKind, Follower]:
    """What is done with new changes, by kind of consumer."""
    return {
        ConsumerKind.VIEW: FollowInputs(views=ViewStore(worker.database), wake=worker.announce),
        ConsumerKind.EXPORT: _run_exports(worker),
        ConsumerKind.WEBHOOK: _deliver_webhooks(worker),
        ConsumerKind.PARTITION_WEBHOOK: _deliver_webhooks(worker),
    }


def reconcilers(worker: WorkerContext) -> dict[str, Reconciler]:
    """What is done for datasets by itself, by the name of its memory."""
    return {
        "compaction": _compaction_reconciler(worker),
        "clustering": _clustering_reconciler(worker),
        "history": _history_reconciler(worker),
        "tags": TagReconciler(tags=NamedVersionStore(worker.database)),
        "partitions": _partition_reconciler(worker),
        **_metastore_policies(worker),
    }


def _compaction_reconciler(worker: WorkerContext) -> FileGroupReconciler:
    shapes = TableShapeStore(worker.database)
    service = CompactGroups(shapes=shapes, commits=worker.stores.timeline)
    return FileGroupReconciler(service=service, groups=shapes, jobs=_policy_jobs(worker))


def _clustering_reconciler(worker: WorkerContext) -> FileGroupReconciler:
    shapes = TableShapeStore(worker.database)
    return FileGroupReconciler(service=ClusterGroups(orders=shapes), groups=shapes, jobs=_policy_jobs(worker))


def _policy_jobs(worker: WorkerContext) -> PolicyJobs:
    return PolicyJobs(services=_table_services(worker), jobs=worker.stores.jobs)


def _table_services(worker: WorkerContext) -> TableServiceRequests:
    jobs = worker.stores.jobs
    return TableServiceRequests(
        request_job=RequestJob(jobs=jobs, group=GroupAccept(jobs), wake=worker.announce)
    )


def _history_reconciler(worker: WorkerContext) -> HistoryReconciler:
    return HistoryReconciler(history=HistoryStore(worker.database), cleans=_table_services(worker))


def _partition_reconciler(worker: WorkerContext) -> PartitionReconciler:
    marks = PartitionStore(worker.database)
    storage = open_storage(worker.settings.storage_uri)
    return PartitionReconciler(marks=marks, markers=PartitionMarkers(marks=marks, storage=storage))


def _metastore_policies(worker: WorkerContext) -> dict[str, Reconciler]:
    """The one that reports to the metastore, if the operator has named one."""
    settings = worker.settings
    if not settings.metastore_uri:
        return {}
    reconciler = MetastoreReconciler(
        metastore=HiveMetastore(settings.metastore_uri, settings.storage_uri, worker.engine.jvm),
        overview=OverviewStore(worker.database),
        touched=TouchedPartitionStore(worker.database),
    )
    return {METASTORE_RECONCILER: reconciler}


def _deliver_webhooks(worker: WorkerContext) -> DeliverWebhooks:
    settings, catalog = worker.settings, worker.stores.catalog
    read_changes = ReadChanges(
        catalog=catalog,
        index=ChangelogStore(worker.database),
        reader=ParquetReader(open_storage(settings.storage_uri)),
    )
    return DeliverWebhooks(
        catalog=catalog,
        deliveries=DeliveryStore(worker.database, keep_seconds=settings.webhook_keep_seconds),
        messages=Messages(read_changes=read_changes, partitions=PartitionStore(worker.database)),
        sender=HttpSender(rules=Rules.of(settings.webhook_allow, http=settings.webhook_http)),
        rules=RetryRules(after_seconds=settings.webhook_retry_seconds, dead_max=settings.webhook_dead_max),
    )


def _run_exports(worker: WorkerContext) -> RunExports:
    return RunExports(
        catalog=worker.stores.catalog,
        exports=ExportStore(worker.database),
        index=ChangelogStore(worker.database),
        storage=open_storage(worker.settings.storage_uri),
        engine=worker.engine,
    )


def pin_versions(worker: WorkerContext) -> VersionPins:
    """What keeps the versions that a task of this process reads."""
    return VersionPins(
        leases=ReadLeaseStore(worker.database),
        lease_seconds=worker.settings.lease_seconds,
        heartbeat_seconds=worker.settings.heartbeat_seconds,
    )


def _run_reads(worker: WorkerContext) -> RunReads:
    settings, database = worker.settings, worker.database
    return RunReads(
        catalog=worker.stores.catalog,
        timeline=worker.stores.timeline,
        index=ChangelogStore(database),
        pins=pin_versions(worker),
        results=ReadResultStore(database),
        storage=open_storage(settings.storage_uri),
        engine=worker.engine,
        inline_bytes_max=settings.read_inline_bytes_max,
    )


def _claim_rules(settings: Settings) -> ClaimRules:
    return ClaimRules(
        lease_seconds=settings.lease_seconds,
        group_jobs_max=settings.group_commit_jobs_max,
        dataset_writers_max=settings.dataset_writers_max,
        attempts_max=settings.attempts_max,
    )
