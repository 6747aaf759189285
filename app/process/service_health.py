"""Checks of the whole service: the database, workers, Spark, loops, jobs, the storage, the disk, and Redis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from app.core.jobs.repository.workers import WorkerStore
from app.core.messaging.announcements import Announcements
from app.core.platform import Platform
from app.http.health import ServiceCheck, ServiceHealth, Severity
from app.infra.files.probe import StorageProbe
from app.infra.runtime.loops import Loops
from app.kernel.format.errors import HeadwaterError

# A worker reports with each poll; after three missed polls it counts as gone.
_POLLS_MISSED_MAX: Final = 3


def service_health(
    platform: Platform, workers: WorkerStore, announcements: Announcements, loops: Loops
) -> Callable[[], ServiceHealth]:
    """The function that checks everything; it takes a few seconds at most. `loops`: those of this process."""
    settings = platform.settings
    probe = StorageProbe(platform.storage, settings.data_dir, settings.disk_free_bytes_min)
    alive_seconds = settings.poll_seconds * _POLLS_MISSED_MAX

    def checks() -> ServiceHealth:
        redis, faults = announcements.reachable(), probe.run()
        return ServiceHealth.of(
            {
                **_database_checks(platform, workers, alive_seconds, loops.still()),
                "storage": _check(faults.storage),
                "disk": _check(faults.disk),
                "redis": _check(
                    "" if redis else "out of reach: work and changes are found by polling", Severity.WARNING
                ),
            }
        )

    return checks


def _check(fault: str, severity: Severity = Severity.CRITICAL) -> ServiceCheck:
    return ServiceCheck(ok=not fault, severity=severity, detail=fault)


def _database_checks(
    platform: Platform, workers: WorkerStore, seconds: float, still: Mapping[str, datetime]
) -> dict[str, ServiceCheck]:
    try:
        alive, postponed_jobs = workers.alive(seconds), platform.stores.jobs.postponed()
    except HeadwaterError as error:
        return {"database": _check(error.detail)}
    return {
        "database": _check(""),
        "workers": _check("" if alive else "no worker has polled recently: writes are accepted and wait"),
        "spark": spark_check({name: worker.executors for name, worker in alive.items()}),
        "loops": loops_check(
            {"the API": still, **{f"worker {name}": each.still for name, each in alive.items()}}
        ),
        "jobs": _check(_postponed(postponed_jobs), Severity.WARNING),
    }


def _postponed(jobs: int) -> str:
    match jobs:
        case 0:
            return ""
        case 1:
            return "1 job is waiting for storage or the database and will resume automatically."
        case _:
            return f"{jobs} jobs are waiting for storage or the database and will resume automatically."


def spark_check(executors: Mapping[str, int | None]) -> ServiceCheck:
    """The check of the executors of live workers, by their names; None where Spark runs in the worker.

    It is critical if no worker has an executor: then nothing is written.
    """
    without = [name for name, number in executors.items() if number == 0]
    critical = bool(without) and len(without) == len(executors)
    return _check(
        f"Spark has no executor for the workers {', '.join(without)}" if without else "",
        Severity.CRITICAL if critical else Severity.WARNING,
    )


def loops_check(still: Mapping[str, Mapping[str, datetime]]) -> ServiceCheck:
    """The check of the loops that stand still, by process, the API first.

    It is critical if a loop stands still in all workers: then nothing does its work.
    """
    _, *workers = still.values()
    everywhere = set.intersection(*map(set, workers)) if workers else set()
    faults = [
        f"{process}: the loop {name} stands still since {since.isoformat(timespec='seconds')}"
        for process, loops in still.items()
        for name, since in loops.items()
    ]
    return _check("; ".join(faults), Severity.CRITICAL if everywhere else Severity.WARNING)
