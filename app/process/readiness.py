"""The readiness of the API: the database, the workers, Spark, their loops, the storage, the disk, and Redis."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from app.core.jobs.repository.workers import WorkerStore
from app.core.messaging.announcements import Announcements
from app.core.platform import Platform
from app.http.health import Check
from app.infra.files.probe import StorageProbe
from app.infra.runtime.loops import Loops
from app.kernel.format.errors import HeadwaterError

# A worker reports with each poll; after three missed polls it counts as gone.
_POLLS_MISSED_MAX: Final = 3


def readiness(
    platform: Platform,
    workers: WorkerStore,
    announcements: Announcements,
    loops: Loops,
    draining: threading.Event,
) -> Callable[[], list[Check]]:
    """The function that checks everything; it takes a few seconds at most. `loops`: those of this process.

    `draining`: set when this process is about to stop.
    """
    settings = platform.settings
    probe = StorageProbe(platform.storage, settings.data_dir, settings.disk_free_bytes_min)
    alive_seconds = settings.poll_seconds * _POLLS_MISSED_MAX

    def checks() -> list[Check]:
        if draining.is_set():
            return [Check(name="process", ok=False, detail="it is about to stop: use another one")]
        redis, faults = announcements.reachable(), probe.run()
        return [
            *_database_checks(platform, workers, alive_seconds, loops.still()),
            Check(name="storage", ok=not faults.storage, detail=faults.storage),
            Check(name="disk", ok=not faults.disk, detail=faults.disk),
            Check(
                name="redis",
                ok=redis,
                required=False,
                detail="" if redis else "out of reach: work and changes are found by polling",
            ),
        ]

    return checks


def _database_checks(
    platform: Platform, workers: WorkerStore, seconds: float, still: Mapping[str, datetime]
) -> list[Check]:
    try:
        alive, postponed_jobs = workers.alive(seconds), platform.stores.jobs.postponed()
    except HeadwaterError as error:
        return [Check(name="database", ok=False, detail=error.detail)]
    # For example there are no tables yet, or those of another release. The log has the statement, the reply does not.
    except Exception as error:
        logging.getLogger(__name__).warning(
            "the schema of the database does not match this release: %s", error
        )
        return [Check(name="database", ok=False, detail="it does not have this release's schema")]
    detail = "" if alive else "no worker has polled recently: writes are accepted and wait"
    waiting = (
        f"{postponed_jobs} wait for the storage or the database and go on by themselves"
        if postponed_jobs
        else ""
    )
    return [
        Check(name="database", ok=True),
        Check(name="worker", ok=bool(alive), detail=detail),
        spark_check({name: worker.executors for name, worker in alive.items()}),
        loops_check({"the API": still, **{f"worker {name}": each.still for name, each in alive.items()}}),
        Check(name="jobs", ok=not postponed_jobs, required=False, detail=waiting),
    ]


def spark_check(executors: Mapping[str, int | None]) -> Check:
    """The check of the executors of live workers, by their names; None where Spark runs in the worker.

    It is required if no worker has an executor: then nothing is written.
    """
    without = [name for name, number in executors.items() if number == 0]
    detail = f"Spark has no executor for the workers {', '.join(without)}" if without else ""
    return Check(
        name="spark", ok=not without, required=bool(without) and len(without) == len(executors), detail=detail
    )


def loops_check(still: Mapping[str, Mapping[str, datetime]]) -> Check:
    """The check of the loops that stand still, by process, the API first.

    It is required if a loop stands still in all workers: then nothing does its work.
    """
    _, *workers = still.values()
    everywhere = set.intersection(*map(set, workers)) if workers else set()
    faults = [
        f"{process}: the loop {name} stands still since {since.isoformat(timespec='seconds')}"
        for process, loops in still.items()
        for name, since in loops.items()
    ]
    return Check(name="loops", ok=not faults, required=bool(everywhere), detail="; ".join(faults))
