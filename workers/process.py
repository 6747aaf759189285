"""What the processes of a worker have in common: their log, their folder, and Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.repository.outbox import OutboxStore
from app.core.jobs.service.relay import Relay
from app.core.messaging.announcements import Announcements
from app.core.messaging.outbox_sender import OutboxSender
from app.core.messaging.work_queue import WorkQueue
from app.core.platform import row_limits
from app.infra.db.answers import BEAT_SECONDS, Answers
from app.infra.db.session import Database
from app.infra.logs import LogFormat, configure_logs
from app.infra.runtime.loops import Loop
from app.infra.settings import Settings, SettingsError, is_cluster
from workers.engine.spark_engine import SparkEngine
from workers.engine.spark_settings import large_turns
from workers.engine.task_setup import TaskSetup
from workers.jvm import share_of

SCRATCH_FOLDER = "spark"
"""The folder in the data directory with a folder for each process."""


def configured(name: str) -> Settings:
    """The settings, once the log is configured, which has the name of the process in each line.

    Ends the process if a setting is wrong.
    """
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"headwater: {error}")
    configure_logs(name, LogFormat(settings.log_format))
    return settings


def worker_database(settings: Settings, name: str) -> Database:
    """The database of a process, whose `database_beat` is one of its loops.

    While it does not, no statement waits for it: each raises Unavailable. A server that stands still keeps its
    connections open, so a worker would wait without a bound, and could not be stopped.
    """
    return Database(settings.database_url, application_name=f"headwater {name}", answers=Answers())


def database_beat(database: Database, name: str = "database") -> Loop:
    """The loop that finds out whether the database answers."""
    return Loop(name, database.beat, every_seconds=BEAT_SECONDS)


def metrics_port(settings: Settings, process: WriteProcess) -> int:
    """The port on which a process of a worker serves its metrics; 0 for none."""
    return settings.metrics_port and settings.metrics_port + list(WriteProcess).index(process)


def new_relay(settings: Settings, database: Database) -> Relay:
    """A relay from the outbox to Redis."""
    sender = OutboxSender(
        queue=WorkQueue(settings.redis_url), announcements=Announcements(settings.redis_url)
    )
    return Relay(OutboxStore(database), sender)


def spark_engine(
    settings: Settings,
    scratch: Path,
    *,
    master: str,
    start: Callable[[], SparkSession],
    stop: Callable[[SparkSession], None],
    on_death: Callable[[], None],
) -> SparkEngine:
    """An engine that is not started yet. `scratch`: the folder of this process. `start` and `stop`: of its session on
    the master. `on_death` is called when its JVM has exited.
    """
    cluster = is_cluster(master)
    local = (settings.executor_dir if cluster else None) or settings.data_dir
    return SparkEngine(
        start,
        TaskSetup(
            storage_uri=settings.storage_uri,
            memory_bytes=settings.task_memory_bytes,
            # Executors on other machines have folders of their own, which Spark removes with them.
            scratch="" if cluster else str(scratch),
            hot_folder=str(local / "hot"),
            hot_bytes_max=settings.hot_bytes_max,
            decompressed_bytes_max=settings.decompressed_bytes_max,
            limits=row_limits(settings),
        ),
        turns=large_turns(master, share_of(settings)),
        stop=stop,
        on_death=on_death,
        prefers_hosts=settings.spark_locality_wait_seconds > 0,
    )
