"""The worker process: Celery, the poller and the relay around one Spark session."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import app.arrow  # noqa: F401  (before all that makes arrays)
from app.composition import stores_on
from app.consumers.repository.followers import FollowerStore
from app.consumers.service.run_followers import Follow
from app.db.session import Database
from app.format.errors import Unavailable
from app.jobs.repository.jobs import JobStore
from app.jobs.repository.outbox import OutboxStore
from app.jobs.repository.workers import WorkerStore
from app.jobs.service.relay import Relay
from app.jobs.values import JobQueue
from app.maintenance.compose import maintenance_store
from app.maintenance.service.run_maintenance import RunMaintenance
from app.messaging.announcements import Announcements
from app.messaging.outbox_sender import OutboxSender
from app.messaging.work_queue import FOLLOW_TASK, TASKS_TASK, WRITE_TASK, WorkQueue, celery_app
from app.platform import Platform
from app.retention.compose import reaper, retain, sample_usage
from app.retention.service.usage import SAMPLE_SECONDS
from app.settings import Settings, SettingsError
from workers.engine.scratch import scratch_folder
from workers.engine.session import start_session
from workers.engine.spark_engine import SparkEngine
from workers.engine.task_setup import TaskSetup
from workers.jobs.celery_worker import register_tasks, serve
from workers.jobs.poller import Poller, PollSource
from workers.jobs.runner import Runner
from workers.wiring import WorkerContext, follower_handlers, reconcilers, run_tasks, run_writes

_log = logging.getLogger(__name__)
_SHUTDOWN_SECONDS = 20.0
_MAINTENANCE_THREADS = 4


def main() -> None:
    """Runs a worker until it is stopped."""
    _configure_logging()
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"headwater: {error}")
    worker_id = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"
    with scratch_folder(settings.data_dir / "spark", worker_id) as scratch:
        _work(settings, worker_id, scratch)


def _work(settings: Settings, worker_id: str, scratch: Path) -> None:
    """Starts Spark and serves until SIGTERM."""
    database = Database(settings.database_url, application_name="headwater worker")
    stopping = threading.Event()
    engine = SparkEngine(
        partial(start_session, settings.spark_master, scratch, driver_memory="1g"),
        TaskSetup(
            storage_uri=settings.storage_uri,
            memory_bytes=settings.task_memory_bytes,
            scratch=str(scratch),
            hot_folder=str(settings.data_dir / "hot"),
            hot_bytes_max=settings.hot_bytes_max,
        ),
        died=partial(_end_this_process, stopping),
    )
    try:
        # Polling starts once Spark is ready: a worker that reports itself alive can run a write at once.
        engine.warm_up()
        _serve(settings, database, engine, worker_id, stopping)
    finally:
        engine.stop()
        database.close()


def _serve(
    settings: Settings, database: Database, engine: SparkEngine, worker_id: str, stopping: threading.Event
) -> None:
    """Connects the use cases to Celery, the poller, the relay, the reaper and retention, and serves until SIGTERM."""
    stores, workers = stores_on(database), WorkerStore(database)
    relay = Relay(
        OutboxStore(database),
        OutboxSender(queue=WorkQueue(settings.redis_url), announcements=Announcements(settings.redis_url)),
        poll_seconds=settings.poll_seconds,
    )
    platform = Platform.on(settings, stores, relay.wake)
    worker = WorkerContext(platform=platform, engine=engine, id=worker_id)
    writes = Runner(
        run_writes(worker),
        name="writes",
        threads=settings.worker_threads,
        per_dataset_max=settings.dataset_writers_max,
        stopping=stopping,
    )
    tasks = Runner(
        run_tasks(worker),
        name="tasks",
        threads=settings.task_threads,
        per_dataset_max=settings.task_threads,
        stopping=stopping,
    )
    followers = FollowerStore(database)
    follow = Runner(
        Follow(followers=followers, handlers=follower_handlers(worker), owner=worker_id),
        name="follow",
        threads=settings.follow_threads,
        per_dataset_max=settings.follow_threads,
        stopping=stopping,
    )
    policy_runner, policy_poller = _maintenance(worker, stopping)
    runners = (writes, tasks, follow, policy_runner)
    poller = Poller(
        [
            PollSource(find=partial(_waiting, stores.jobs, JobQueue.WRITES), runner=writes),
            PollSource(find=partial(_waiting, stores.jobs, JobQueue.TASKS), runner=tasks),
            PollSource(find=followers.due, runner=follow),
        ],
        poll_seconds=settings.poll_seconds,
        alive=partial(workers.polled, worker_id),
    )
    celery = celery_app(settings.redis_url)
    register_tasks(celery, {WRITE_TASK: writes.wake, TASKS_TASK: tasks.wake, FOLLOW_TASK: follow.wake})
    stop = threading.Event()
    threads = [
        threading.Thread(target=poller.run, args=(stop,), name="poller"),
        threading.Thread(target=relay.run, args=(stop,), name="relay"),
        *_housekeeping(platform, stop),
    ]
    if settings.table_services:
        threads.append(threading.Thread(target=policy_poller.run, args=(stop,), name="policies"))
    for thread in threads:
        thread.start()
    try:
        serve(celery, name=f"headwater@{worker_id}")
    finally:
        stop.set()
        stopping.set()
        ends = time.monotonic() + _SHUTDOWN_SECONDS
        # All are notified before the first is waited for.
        ended = [runner.stop(max(0.0, ends - time.monotonic())) for runner in runners]
        if not all(ended):
            _log.warning("some work did not end in time; another worker takes it over when its leases expire")
        relay.wake()
        _deregister(workers, worker_id)


def _maintenance(worker: WorkerContext, stopping: threading.Event) -> tuple[Runner, Poller]:
    """The runner and the poller of table services."""
    # Separate connections until the process ends: they take none from writes, and have a name of their own.
    settings = worker.platform.settings
    database = Database(settings.database_url, application_name="headwater maintenance")
    platform = Platform.on(settings, stores_on(database), worker.platform.wake)
    tables = maintenance_store(platform)
    policy_runner = Runner(
        RunMaintenance(
            tables=tables, reconcilers=reconcilers(replace(worker, platform=platform)), owner=worker.id
        ),
        name="keep",
        threads=_MAINTENANCE_THREADS,
        per_dataset_max=1,
        stopping=stopping,
    )
    return policy_runner, Poller(
        [PollSource(find=tables.due, runner=policy_runner)],
        poll_seconds=settings.maintenance_poll_seconds,
    )


def _housekeeping(platform: Platform, stop: threading.Event) -> list[threading.Thread]:
    """The threads that periodically delete data that are no longer needed, or sum up what is stored."""
    settings = platform.settings
    return [
        threading.Thread(
            target=reaper(platform).run_every, args=(settings.reap_seconds, stop), name="reaper", daemon=True
        ),
        threading.Thread(
            target=retain(platform).run_every,
            args=(settings.retention_seconds, stop),
            name="retention",
            daemon=True,
        ),
        threading.Thread(
            target=sample_usage(platform).run_every, args=(SAMPLE_SECONDS, stop), name="samples", daemon=True
        ),
    ]


def _waiting(jobs: JobStore, queue: JobQueue, limit: int) -> list[tuple[str, str]]:
    return [(each.tenant_id, each.dataset_id) for each in jobs.runnable(limit, queue)]


def _configure_logging() -> None:
    """Logs one line per event; a line per notification would add nothing."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for name in ("celery", "kombu", "py4j"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _end_this_process(stopping: threading.Event) -> None:
    """Stops as on SIGTERM. The supervisor starts a new worker, because a JVM cannot be restarted in a process."""
    _log.critical("Spark's JVM has exited; this worker stops")
    # Stop at once, or the worker would claim the jobs that it releases until their attempts are exhausted.
    stopping.set()
    os.kill(os.getpid(), signal.SIGTERM)


def _deregister(workers: WorkerStore, worker_id: str) -> None:
    try:
        workers.ended(worker_id)
    except Unavailable:
        _log.warning("could not deregister the worker: the database is out of reach")


if __name__ == "__main__":
    main()
