"""The use cases of a worker process, composed from the features. Part of the composition root, `workers/main.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.core import compose as core
from app.core.consumers.followers import ConsumerKind, Follower
from app.core.jobs.service.run_tasks import RunTasks, TaskHandler
from app.core.jobs.values import JobKind, WriteProcess
from app.core.platform import Platform
from app.features.exports import compose as exports
from app.features.maintenance import compose as maintenance
from app.features.maintenance.values import Reconciler
from app.features.metastore import compose as metastore
from app.features.metastore.values import Metastore
from app.features.overview import compose as overview
from app.features.partitions import compose as partitions
from app.features.reads import compose as reads
from app.features.retention import compose as retention
from app.features.sources import compose as sources
from app.features.sources.service.due import StartRounds
from app.features.verifications import compose as verifications
from app.features.versions import compose as versions
from app.features.views import compose as views
from app.features.webhooks import compose as webhooks
from app.features.writes import compose as writes
from app.features.writes.ports import InputStager
from app.features.writes.service.run import RunWrites
from workers.engine.hive_metastore import HiveMetastore
from workers.engine.spark_engine import SparkEngine


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerContext:
    """The shared dependencies of this process's use cases. `id` names the process as the owner of jobs."""

    platform: Platform
    engine: SparkEngine
    id: str


def _keep(_process: WriteProcess, _tenant_id: str, _dataset_id: str) -> None:
    """Hands nothing over: a use case that runs all writes has no other to leave one to."""


def run_writes(
    worker: WorkerContext,
    *,
    process: WriteProcess | None = None,
    hand_over: Callable[[WriteProcess, str, str], None] = _keep,
    round_ended: Callable[[], None] = lambda: None,
) -> RunWrites:
    """The queue of writes, as far as they run in this process (None: all).

    `hand_over` is called with a tenant and a dataset whose next write runs in another one, which is named first;
    `round_ended` after a round of a source.
    """
    platform, engine = worker.platform, worker.engine
    own = process in (None, WriteProcess.WORKER)
    threads = platform.settings.worker_threads if own else platform.settings.derived_threads
    stagers: dict[JobKind, InputStager] = {
        **views.stagers(platform, engine),
        **versions.stagers(platform, engine),
        **sources.stagers(platform, engine, threads),
    }
    return writes.run_writes(
        platform,
        engine,
        worker.id,
        stagers,
        process=process,
        hand_over=hand_over,
        round_ended=round_ended,
    )


def start_rounds(worker: WorkerContext) -> StartRounds:
    """The sources that are due."""
    return sources.start_rounds(worker.platform, partitions.partitions(worker.platform), worker.id)


def run_tasks(worker: WorkerContext) -> RunTasks:
    """The queue of tasks."""
    platform, engine = worker.platform, worker.engine
    handlers: dict[JobKind, TaskHandler] = {
        **retention.tasks(platform),
        **maintenance.tasks(platform, engine),
        **exports.tasks(platform, engine),
        **versions.tasks(platform, engine),
        **reads.tasks(platform, engine),
        **verifications.tasks(platform, engine),
    }
    return RunTasks(
        jobs=platform.stores.jobs,
        handlers=handlers,
        engine=engine,
        announce=platform.wake,
        owner=worker.id,
        rules=platform.claim_rules,
        heartbeat_seconds=platform.settings.heartbeat_seconds,
        seconds_max=platform.job_seconds_max,
    )


def follower_handlers(worker: WorkerContext) -> dict[ConsumerKind, Follower]:
    """The processing of new changes, by kind of consumer."""
    platform = worker.platform
    walk = core.table_walk(platform, core.read_memory(platform))
    return {
        **views.followers(platform),
        **exports.followers(platform, worker.engine),
        **webhooks.followers(platform, partitions.partitions(platform), walk),
    }


def reconcilers(worker: WorkerContext) -> dict[str, Reconciler]:
    """The reconcilers of maintenance policies, by the name under which each stores its state of a dataset."""
    platform = worker.platform
    return {
        **maintenance.reconcilers(platform),
        **retention.reconcilers(platform, maintenance.table_services(platform)),
        **versions.reconcilers(platform),
        **partitions.reconcilers(platform),
        **metastore.reconcilers(
            _metastore(worker), overview.overview_store(platform), partitions.touched_partitions(platform)
        ),
    }


def _metastore(worker: WorkerContext) -> Metastore | None:
    """The metastore that the operator has configured, if any."""
    settings = worker.platform.settings
    if not settings.metastore_uri:
        return None
    return HiveMetastore(settings.metastore_uri, settings.storage_uri, worker.engine.jvm)
