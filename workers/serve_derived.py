"""A process of a worker that runs refreshes of views, and transforms; `workers.derived` starts it.

The SQL of a user can use up the memory of the JVM that runs it. This JVM runs no writes, so it may end. The process
then kills itself: the worker that has started it counts the death against the jobs that it held.

Its standard input has a line `TENANT DATASET` for each dataset that may have work, and ends with the worker.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

from pyspark.sql import SparkSession

import app.infra.runtime.collector
import app.kernel.arrow  # noqa: F401  (before all that makes arrays)
from app.access.tenants.repository.quotas import QuotaStore
from app.access.tenants.service import QUOTA_SECONDS, KnownQuotas
from app.core.feature.feature import Worker
from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.service.relay import APART_SECONDS
from app.core.jobs.service.report_process import ReportProcess
from app.core.jobs.values import ProcessKind, WorkerEnd
from app.core.messaging.work_queue import WRITE_TASK, WorkQueue
from app.core.platform import Platform
from app.features.lineage.loops import lineage_loops
from app.features.monitoring.service.exposition import exposition
from app.infra.db.session import Database
from app.infra.errors import Unavailable
from app.infra.instruments import serve_metrics
from app.infra.runtime.collector import start_collector
from app.infra.runtime.loops import Loop, Loops
from app.infra.settings import Settings
from app.process.features import stores_on
from workers.engine.scratch import scratch_folder
from workers.engine.session import start_session
from workers.engine.spark_engine import SparkEngine
from workers.engine.spark_settings import session_settings
from workers.jobs.log_names import LogNames
from workers.jobs.runner import Runner
from workers.jvm import driver_memory, share_of
from workers.process import (
    SCRATCH_FOLDER,
    configured,
    database_beat,
    metrics_port,
    new_relay,
    spark_engine,
    worker_database,
)
from workers.wiring import run_writes

_log = logging.getLogger(__name__)
_WATCH_SECONDS = 1.0
# The time without work after which the process ends. Its start takes 10 to 20 seconds.
_IDLE_SECONDS = 600.0
# The time in which a task of Spark must have stopped. Otherwise the process ends, and the task with it.
_STOP_SECONDS = 10.0
# Together less than the worker waits for this process.
_SHUTDOWN_SECONDS = 10.0
_LOOPS_SECONDS = 1.0
# Where memory runs out, the kernel ends this process rather than those of writes and Postgres.
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST_TO_END = "500"
_SLOW_NICENESS = 10


def main() -> None:
    """Runs until the worker has ended, there was no work for ten minutes, or a task of Spark does not stop."""
    start_collector()
    process_id, process = sys.argv[1], WriteProcess(sys.argv[2])
    settings = configured(process.value)
    with suppress(OSError):
        _OOM_SCORE.write_text(_FIRST_TO_END)
    if process is WriteProcess.SLOW:
        # The cores that others need now are theirs.
        os.nice(_SLOW_NICENESS)
    stopping = threading.Event()
    _set_on_signals(stopping)
    with scratch_folder(settings.data_dir / SCRATCH_FOLDER, process_id) as scratch:
        database = worker_database(settings, process.value)
        of_session = session_settings(
            settings.derived_spark_master,
            scratch,
            driver_memory=driver_memory(settings.derived_heap_bytes),
            share=share_of(settings),
        )
        engine = spark_engine(
            settings,
            scratch,
            master=settings.derived_spark_master,
            start=partial(start_session, of_session, scratch),
            stop=SparkSession.stop,
            on_death=_die,
        )
        try:
            engine.warm_up()
            _serve(settings, database, engine, process_id, process, stopping)
        finally:
            engine.stop()
            database.close()


def _serve(
    settings: Settings,
    database: Database,
    engine: SparkEngine,
    process_id: str,
    process: WriteProcess,
    stopping: threading.Event,
) -> None:
    """Runs the datasets that standard input names."""
    stores, loops, queue = stores_on(database), Loops(), WorkQueue(settings.redis_url)
    relay = new_relay(settings, database)
    quotas = KnownQuotas(QuotaStore(database).of_workers)
    platform = Platform.on(settings, stores, relay.wake, quotas.job_seconds)
    alone = process is not WriteProcess.DERIVED

    def give_back(_other: WriteProcess, tenant_id: str, dataset_id: str) -> None:
        # The threads of writes of some worker look where it runs. Without Redis their poll finds it.
        with suppress(Exception):
            queue.send(WRITE_TASK, [(tenant_id, dataset_id)])

    runner = Runner(
        run_writes(
            Worker(platform=platform, engine=engine, id=process_id, process=process),
            hand_over=give_back,
        ),
        name=process.value,
        threads=1 if alone else settings.derived_threads,
        spare_threads=0 if alone else 1,
        per_dataset_max=settings.dataset_writers_max,
        weight=quotas.weight,
        facts_of=LogNames(platform.stores.catalog.names_with_tenant).facts_of,
        stopping=stopping,
    )
    loops.add(
        Loop(
            "relay",
            relay.run,
            every_seconds=settings.poll_seconds,
            apart_seconds=APART_SECONDS,
            woken=relay.woken,
        )
    )
    quota_loop = Loop("quotas", quotas.refresh, every_seconds=QUOTA_SECONDS)
    loops.add_all([database_beat(database), quota_loop, *lineage_loops(platform)])
    report = ReportProcess.of(ProcessKind(process.value), settings, ProcessStore(database), process_id)
    loops.add(Loop("register", lambda: report.run(loops.still()), every_seconds=settings.poll_seconds))
    loops.start()
    serve_metrics(exposition(), settings.metrics_host, metrics_port(settings, process))
    # A daemon: a read cannot be interrupted. Without a buffer, whose lock it would hold when the interpreter ends.
    lines = FileIO(sys.stdin.fileno(), closefd=False)
    threading.Thread(target=_listen, args=(lines, runner, stopping), name="listen", daemon=True).start()
    try:
        while not stopping.wait(_WATCH_SECONDS) and runner.idle_seconds() < _IDLE_SECONDS:
            if not engine.alive():
                _die()
            if engine.stopping_seconds() > _STOP_SECONDS:
                _log.warning("a task of Spark does not stop; this process ends, and another one is started")
                break
    finally:
        stopping.set()
        ends = time.monotonic() + _SHUTDOWN_SECONDS
        if not runner.stop(max(0.0, ends - time.monotonic())):
            _log.warning("some work did not end in time; another process takes it over")
        with suppress(Unavailable):
            stores.jobs.end_claims(process_id, WorkerEnd.STOPPED)
        loops.stop(_LOOPS_SECONDS)
        with suppress(Unavailable):
            report.processes.ended(process_id)
        # The relay announces the jobs that are handed over.
        relay.finish()


def _set_on_signals(stopping: threading.Event) -> None:
    """Has SIGTERM and SIGINT set the event, in another thread: a handler could wait for a lock of its own thread."""
    signals: SimpleQueue[int] = SimpleQueue()

    def wait() -> None:
        signals.get()
        stopping.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, _: signals.put(signum))


def _listen(lines: Iterable[bytes], runner: Runner, stopping: threading.Event) -> None:
    """Wakes the runner for each dataset, until the worker ends."""
    for line in lines:
        tenant_id, dataset_id = line.decode("ascii").split()
        runner.wake(tenant_id, dataset_id)
    stopping.set()


def _die() -> NoReturn:
    """Ends at once, as the JVM has: what is left to end in order needs it."""
    _log.critical("Spark's JVM has exited; this process ends with it")
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit
