"""The worker process: Celery, the poller and the relay around one Spark session.

`python -m workers.main` starts a JVM that ends with it. `python -m workers.main FOLDER` takes over the JVM that the
supervisor has started with `python -m workers.jvm FOLDER`.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import app.infra.runtime.collector
import app.kernel.arrow  # noqa: F401  (before all that makes arrays)
from app.access.tenants.repository.quotas import QuotaStore
from app.access.tenants.service import QUOTA_SECONDS, KnownQuotas
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import FollowerStore
from app.core.consumers.service import Follow
from app.core.feature.feature import Worker
from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.service.fail_waiting import FailWaiting
from app.core.jobs.service.relay import APART_SECONDS
from app.core.jobs.service.report_process import ReportProcess
from app.core.jobs.values import JobQueue, ProcessKind, WorkerEnd
from app.core.messaging.work_queue import FOLLOW_TASK, TASKS_TASK, WRITE_TASK, celery_app
from app.core.platform import Platform
from app.features.maintenance.compose import maintenance_store
from app.features.maintenance.service.run_maintenance import RunMaintenance
from app.features.monitoring.service.exposition import exposition
from app.features.sources.compose import round_store
from app.features.webhooks.compose import alert_followers, deliver_webhooks
from app.infra.db.session import Database
from app.infra.db.tenant_rotation import Rotation
from app.infra.instruments import serve_metrics
from app.infra.runtime.collector import start_collector
from app.infra.runtime.loops import Loop, Loops
from app.infra.settings import Settings, is_cluster
from app.process.doctor import Examined, log_faults
from app.process.features import stores_on
from app.process.samples import sample_loop
from workers.engine.scratch import is_alive, remove_abandoned, scratch_folder
from workers.engine.session import start_session
from workers.engine.spark_engine import SparkEngine
from workers.engine.take_over import release, take_over
from workers.jobs.celery_worker import register_tasks, serve
from workers.jobs.dead_workers import DeadWorkers
from workers.jobs.derived_process import DerivedProcesses, worker_of
from workers.jobs.log_names import LogNames
from workers.jobs.poller import Poller, PollSource
from workers.jobs.runner import Runner
from workers.jvm import worker_session_settings
from workers.process import (
    SCRATCH_FOLDER,
    configured,
    database_beat,
    metrics_port,
    new_relay,
    spark_engine,
    worker_database,
)
from workers.wiring import (
    SparkWorker,
    follower_handlers,
    housekeeping,
    reconcilers,
    run_tasks,
    run_writes,
    start_rounds,
)

_log = logging.getLogger(__name__)
# Together less than the supervisor waits before it kills.
_SHUTDOWN_SECONDS = 15.0
_LOOPS_SECONDS = 2.0
_POLLS_MISSED_MAX = 4
_MAINTENANCE_THREADS = 4
# Webhooks, export schedules and views that one worker serves at a time.
_FOLLOW_THREADS = 4
_ALERT_THREADS = 2
_SOURCE_POLL_SECONDS = 0.5
_SETTLED_POLLS = 5
# Datasets with new versions that a poll hands to the policies. A check of a dataset costs as much as a write to it, so
# with more of them each is checked less often, the one that has waited longest first.
_CHECKS_PER_POLL = 10


def main() -> None:
    """Runs a worker until it is stopped."""
    start_collector()
    settings = configured("worker")
    log_faults(settings, Examined.WORKER)
    worker_id = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"
    with scratch_folder(settings.data_dir / SCRATCH_FOLDER, worker_id) as scratch:
        _work(settings, worker_id, scratch)


def _work(settings: Settings, worker_id: str, scratch: Path) -> None:
    """Starts Spark and serves until SIGTERM."""
    database = worker_database(settings, "worker")
    stopping = threading.Event()
    start, stop = _session(settings, scratch)
    engine = spark_engine(
        settings,
        scratch,
        master=settings.spark_master,
        start=start,
        stop=stop,
        on_death=partial(_end_this_process, stopping),
    )
    try:
        # Polling for jobs starts once Spark is ready: until then this worker claims nothing.
        _warm_up(settings, database, engine, worker_id)
        _serve(settings, database, engine, worker_id, stopping)
    finally:
        engine.stop()
        database.close()


def _session(
    settings: Settings, scratch: Path
) -> tuple[Callable[[], SparkSession], Callable[[SparkSession], None]]:
    """How the session starts and ends: in the JVM of the supervisor, if there is one."""
    if len(sys.argv) > 1:
        return partial(take_over, Path(sys.argv[1]), partial(worker_session_settings, settings)), release
    return partial(start_session, worker_session_settings(settings, scratch), scratch), SparkSession.stop


def _warm_up(settings: Settings, database: Database, engine: SparkEngine, worker_id: str) -> None:
    """Starts Spark, and reports meanwhile that this worker waits for executors of its cluster.

    Where Spark runs in the worker, nothing is reported: a worker that reports itself alive can run a write at once.
    """
    waiting = Loops()
    if is_cluster(settings.spark_master):
        report = ReportProcess.of(ProcessKind.WORKER, settings, ProcessStore(database), worker_id)
        waiting.add(
            Loop("warm up", partial(report.run, {}, 0), every_seconds=settings.poll_seconds, waits_first=True)
        )
    waiting.start()
    try:
        engine.warm_up()
    finally:
        waiting.stop(_LOOPS_SECONDS)


def _serve(
    settings: Settings, database: Database, engine: SparkEngine, worker_id: str, stopping: threading.Event
) -> None:
    """Connects the use cases to Celery and to the loops, and serves until SIGTERM."""
    stores, loops = stores_on(database), Loops()
    relay = new_relay(settings, database)
    quotas = KnownQuotas(QuotaStore(database).of_workers)
    platform = Platform.on(settings, stores, relay.wake, quotas.job_seconds)
    worker = Worker(platform=platform, engine=engine, id=worker_id, process=WriteProcess.WORKER)
    process_end, rounds = threading.Event(), threading.Event()
    names = LogNames(stores.catalog.names_with_tenant)
    new_runner = partial(Runner, weight=quotas.weight, facts_of=names.facts_of, stopping=stopping)
    derived_processes = _derived_processes(worker, process_end, stopping)
    writes = _write_runner(worker, derived_processes, new_runner, rounds.set)
    tasks = new_runner(
        run_tasks(worker),
        name="tasks",
        threads=settings.task_threads,
        per_dataset_max=settings.task_threads,
    )
    report = ReportProcess.of(ProcessKind.WORKER, settings, ProcessStore(database), worker_id)
    dead = _dead_workers(platform, report.processes, relay.wake)
    follow, alerts = _followers(worker, new_runner)
    policy_runner, policy_poller = _maintenance(worker, new_runner, loops)
    sources = _sources(worker, new_runner, loops, rounds)
    runners = (writes, tasks, follow.runner, alerts.runner, policy_runner, sources)
    poller = Poller(
        [
            PollSource(find=partial(_waiting, stores.jobs, JobQueue.WRITES, Rotation()), runner=writes),
            PollSource(find=partial(_waiting, stores.jobs, JobQueue.TASKS, Rotation()), runner=tasks),
            follow,
            alerts,
        ],
        alive=lambda: report.run(loops.still(), engine.executors(), derived_processes.faults()),
    )
    celery = celery_app(settings.redis_url)
    register_tasks(celery, {WRITE_TASK: writes.wake, TASKS_TASK: tasks.wake, FOLLOW_TASK: follow.runner.wake})
    polling = settings.poll_seconds
    loops.add(Loop("poller", poller.run, every_seconds=polling))
    loops.add(Loop("relay", relay.run, every_seconds=polling, apart_seconds=APART_SECONDS, woken=relay.woken))
    loops.add(Loop("quotas", quotas.refresh, every_seconds=QUOTA_SECONDS))
    end_claims = partial(_end_claims_of_others, dead, settings)
    loops.add(Loop("dead workers", end_claims, every_seconds=polling, woken=process_end))
    for loop in derived_processes.loops():
        loops.add(loop)
    for loop in (database_beat(database), *housekeeping(platform), _metrics(platform)):
        loops.add(loop)
    if settings.table_services:
        loops.add(Loop("policies", policy_poller.run, every_seconds=settings.maintenance_poll_seconds))
    loops.start()
    try:
        serve(celery, name=f"headwater@{worker_id}")
    finally:
        stopping.set()
        ends = time.monotonic() + _SHUTDOWN_SECONDS
        # All are notified before the first is waited for.
        derived_processes.stop_soon()
        ends_in_time = [runner.stop(max(0.0, ends - time.monotonic())) for runner in runners]
        if not all(ends_in_time):
            _log.warning("some work did not end in time; another worker takes it over")
        derived_processes.stop(ends, dead.stopped)
        loops.stop(_LOOPS_SECONDS)
        dead.stopped(worker_id)
        # The relay announces the jobs that are handed over.
        relay.finish()


def _metrics(platform: Platform) -> Loop:
    """The loop that gathers metrics. Also serves those of this process."""
    samples, loop = sample_loop(platform)
    settings = platform.settings
    serve_metrics(exposition(samples), settings.metrics_host, metrics_port(settings, WriteProcess.WORKER))
    return loop


def _dead_workers(platform: Platform, processes: ProcessStore, announce: Callable[[], None]) -> DeadWorkers:
    return DeadWorkers(
        jobs=platform.stores.jobs,
        others=(
            FollowerStore(platform.database),
            alert_followers(platform),
            maintenance_store(platform),
            round_store(platform),
        ),
        workers=processes,
        announce=announce,
    )


def _write_runner(
    worker: SparkWorker,
    derived_processes: DerivedProcesses,
    new_runner: partial[Runner],
    after_round: Callable[[], None],
) -> Runner:
    """The runner of writes whose rows were sent. It is notified of all writes, and passes the others on."""
    settings = worker.platform.settings
    return new_runner(
        run_writes(worker, hand_over=derived_processes.wake, after_round=after_round),
        name="writes",
        threads=settings.worker_threads,
        per_dataset_max=settings.dataset_writers_max,
    )


def _derived_processes(
    worker: SparkWorker, process_end: threading.Event, stopping: threading.Event
) -> DerivedProcesses:
    """The processes for the SQL of users. What waits for one that cannot import a module fails."""
    platform = worker.platform
    fail_waiting = FailWaiting(
        jobs=platform.stores.jobs, rules=platform.claim_rules, owner=worker.id, announce=platform.wake
    )
    return DerivedProcesses(worker.id, on_end=process_end.set, on_fault=fail_waiting.run, stopping=stopping)


def _followers(worker: SparkWorker, new_runner: partial[Runner]) -> tuple[PollSource, PollSource]:
    """What follows feeds, and what sends alerts. The latter is named by webhooks, which may be of no dataset."""
    platform = worker.platform
    followers, alerts = FollowerStore(platform.database), alert_followers(platform)
    send = {ConsumerKind.WEBHOOK: deliver_webhooks(platform)}
    follow_runner = new_runner(
        Follow(followers=followers, handlers=follower_handlers(worker), owner=worker.id),
        name="follow",
        threads=_FOLLOW_THREADS,
        per_dataset_max=_FOLLOW_THREADS,
    )
    alert_runner = new_runner(
        Follow(followers=alerts, handlers=send, owner=worker.id),
        name="alerts",
        threads=_ALERT_THREADS,
        per_dataset_max=1,
        facts_of=lambda tenant_id, webhook_id: {"tenant": tenant_id, "webhook": webhook_id},
    )
    return PollSource(find=followers.due, runner=follow_runner), PollSource(
        find=alerts.due, runner=alert_runner
    )


def _sources(
    worker: SparkWorker,
    new_runner: partial[Runner],
    loops: Loops,
    woken: threading.Event,
) -> Runner:
    """The runner of sources, and its poll, which `woken` starts, too.

    What they read from may be slow, so they have threads of their own.
    """
    settings = worker.platform.settings
    runner = new_runner(
        start_rounds(worker),
        name="sources",
        threads=settings.source_threads,
        per_dataset_max=1,
    )
    poller = Poller([PollSource(find=round_store(worker.platform).due, runner=runner)])
    # Rounds of small sources end often: they share a poll.
    loops.add(
        Loop(
            "sources",
            poller.run,
            every_seconds=_SOURCE_POLL_SECONDS,
            woken=woken,
            apart_seconds=APART_SECONDS,
        )
    )
    return runner


def _maintenance(worker: SparkWorker, new_runner: partial[Runner], loops: Loops) -> tuple[Runner, Poller]:
    """The runner and the poller of table services."""
    # Separate connections until the process ends: they take none from writes, and have a name of their own.
    settings = worker.platform.settings
    database = worker_database(settings, "maintenance")
    loops.add(database_beat(database, "database of maintenance"))
    platform = Platform.on(settings, stores_on(database), worker.platform.wake)
    tables = maintenance_store(platform)
    policy_runner = new_runner(
        RunMaintenance(
            tables=tables, reconcilers=reconcilers(replace(worker, platform=platform)), owner=worker.id
        ),
        name="keep",
        threads=_MAINTENANCE_THREADS,
        per_dataset_max=1,
    )
    # A dataset with continuous writes is reconciled after several of them, not after each.
    find = partial(tables.due, settled_seconds=_SETTLED_POLLS * settings.maintenance_poll_seconds)
    return policy_runner, Poller([PollSource(find=find, runner=policy_runner, datasets_max=_CHECKS_PER_POLL)])


def _end_claims_of_others(dead: DeadWorkers, settings: Settings) -> None:
    """One round: processes of this machine that have ended, and workers that do not poll any more."""
    folder = settings.data_dir / SCRATCH_FOLDER

    def died(process_id: str) -> None:
        worker_id = worker_of(process_id)
        # A process that its worker survives was killed by what it ran.
        worker_lives = worker_id is not None and is_alive(folder, worker_id)
        dead.died(process_id, WorkerEnd.KILLED if worker_lives else WorkerEnd.DIED)

    remove_abandoned(folder, died)
    # A worker polls three times in this time at least.
    dead.end_silent(max(settings.lease_seconds, _POLLS_MISSED_MAX * settings.poll_seconds))


def _waiting(jobs: JobStore, queue: JobQueue, rotation: Rotation, limit: int) -> list[tuple[str, str]]:
    return [(each.tenant_id, each.dataset_id) for each in jobs.runnable(limit, queue, rotation)]


def _end_this_process(stopping: threading.Event) -> None:
    """Stops as on SIGTERM. The supervisor starts a new worker: this process has had its JVM."""
    _log.critical("Spark's JVM has exited; this worker stops")
    # Stop at once, or the worker would claim the jobs that it releases until their attempts are exhausted.
    stopping.set()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
