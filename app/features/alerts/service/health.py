"""Checks of the whole service: the database, workers, Spark, loops, jobs, disks, the storage, and Redis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Final

from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.repository.processes import POLLS_MISSED_MAX, ProcessStore
from app.core.jobs.values import KnownProcess, ProcessKind
from app.core.messaging.announcements import Announcements
from app.features.alerts.declared import ALERTS
from app.features.alerts.repository import AlertStore
from app.features.alerts.values import (
    ActiveAlert,
    AlertPhase,
    AlertState,
    DiskSpaceView,
    ProcessHealth,
    ResolvedAlert,
    ServiceCheck,
    ServiceHealth,
    Severity,
)
from app.infra.files.probe import StorageProbe, readable_bytes
from app.kernel.format.errors import HeadwaterError

_PROCESSES_MAX: Final = 200
START_SECONDS: Final = 120.0
"""How long a worker may need to report itself once the API has started."""
LOW_SHARE: Final = 0.1
"""The share of a disk that is free, below which it is low."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckService:
    """Checks the whole service. `poll_seconds`: how often processes report."""

    processes: ProcessStore
    alerts: AlertStore
    jobs: JobStore
    announcements: Announcements
    probe: StorageProbe
    poll_seconds: float
    disk_free_bytes_min: int
    start_seconds: float = field(default_factory=monotonic)
    """When this process has composed the checks, by the monotonic clock."""

    def run(self) -> ServiceHealth:
        """All checks; they take a few seconds at most."""
        redis = self.announcements.reachable()
        servers = {
            "storage": _check(self.probe.run()),
            "redis": _check(
                "" if redis else "out of reach: work and changes are found by polling", Severity.WARNING
            ),
        }
        try:
            known, postponed_jobs = self.processes.known(), self.jobs.postponed()
            states = self.alerts.states()
        except HeadwaterError as error:
            return ServiceHealth.of({"database": _check(error.detail), **servers})
        alive = [each for each in known if each.silent_seconds <= self.poll_seconds * POLLS_MISSED_MAX]
        workers = [each for each in alive if each.report.kind is ProcessKind.WORKER]
        starts = not workers and self._starts(known)
        return ServiceHealth.of(
            {
                "database": _check(""),
                "workers": _STARTING if starts else _check("" if workers else _NO_WORKER),
                "spark": spark_check({each.id: each.report.executors for each in workers}),
                "loops": loops_check(alive),
                "processes": processes_check(workers),
                "jobs": _check(_postponed(postponed_jobs), Severity.WARNING),
                "disk": disk_check(alive, self.disk_free_bytes_min),
                **servers,
            },
            [_process(each, alive=each in alive) for each in known[-_PROCESSES_MAX:]],
            active(states),
            latest_resolutions(states),
            starts=starts,
        )

    def _starts(self, known: Sequence[KnownProcess]) -> bool:
        """Whether this process is new, and no worker has reported itself since its start."""
        age = monotonic() - self.start_seconds
        return age < START_SECONDS and not any(
            each.report.kind is ProcessKind.WORKER and each.silent_seconds < age for each in known
        )


def active(states: Sequence[AlertState]) -> list[ActiveAlert]:
    """The alerts that are active. One that this release does not know is left out."""
    by_name = {alert.name: alert for alert in ALERTS}
    return [
        ActiveAlert(
            name=state.name,
            severity=by_name[state.name].severity,
            fired_at=state.fired_at,
            summary=by_name[state.name].summary,
            detail=state.detail,
            action=by_name[state.name].action,
        )
        for state in states
        if state.phase is AlertPhase.FIRING and state.fired_at is not None and state.name in by_name
    ]


def latest_resolutions(states: Sequence[AlertState]) -> list[ResolvedAlert]:
    """The alerts that are active no longer, the latest first. One that this release does not know is left out."""
    by_name = {alert.name: alert for alert in ALERTS}
    items = [
        ResolvedAlert(
            name=state.name,
            severity=by_name[state.name].severity,
            fired_at=state.fired_at,
            resolved_at=state.resolved_at,
            summary=by_name[state.name].summary,
            detail=state.detail,
            action=by_name[state.name].action,
        )
        for state in states
        if state.phase is not AlertPhase.FIRING
        and state.fired_at is not None
        and state.resolved_at is not None
        and state.name in by_name
    ]
    return sorted(items, key=lambda each: each.resolved_at, reverse=True)


def _check(fault: str, severity: Severity = Severity.CRITICAL) -> ServiceCheck:
    return ServiceCheck(ok=not fault, severity=severity, detail=fault)


_NO_WORKER: Final = "no worker has polled recently: writes are accepted and wait"
_STARTING: Final = _check(
    "no worker has polled yet, as the service is starting: writes are accepted and wait", Severity.WARNING
)


def _process(process: KnownProcess, *, alive: bool) -> ProcessHealth:
    report = process.report
    free, total = report.disk_free_bytes, report.disk_total_bytes
    return ProcessHealth(
        id=process.id,
        kind=report.kind,
        host=report.host,
        pid=report.pid,
        version=report.version,
        alive=alive,
        started_at=process.started_at,
        seen_at=process.seen_at,
        still=dict(report.still),
        faults=dict(report.faults),
        executors=report.executors,
        disk=None
        if free is None or total is None
        else DiskSpaceView(free_bytes=free, total_bytes=total, folder=report.disk_folder),
        resident_bytes=report.resident_bytes,
    )


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


def loops_check(alive: Sequence[KnownProcess]) -> ServiceCheck:
    """The check of the loops that stand still in live processes.

    It is critical if a loop stands still in all workers: then nothing does its work.
    """
    workers = [set(each.report.still) for each in alive if each.report.kind is ProcessKind.WORKER]
    everywhere = set.intersection(*workers) if workers else set()
    faults = [
        f"{process.report.kind.value} {process.id}: the loop {name} stands still since {_second(since)}"
        for process in alive
        for name, since in process.report.still.items()
    ]
    return _check("; ".join(faults), Severity.CRITICAL if everywhere else Severity.WARNING)


def processes_check(workers: Sequence[KnownProcess]) -> ServiceCheck:
    """The check of the processes that workers cannot start: what would run there fails."""
    faults = [
        f"worker {worker.id}: the process {name} does not start: {reason}"
        for worker in workers
        for name, reason in sorted(worker.report.faults.items())
    ]
    return _check("; ".join(faults), Severity.WARNING)


def _second(since: datetime) -> str:
    return since.isoformat(timespec="seconds")


def disk_check(alive: Sequence[KnownProcess], free_bytes_min: int) -> ServiceCheck:
    """The check of the disks of live processes, by host: critical if one is full, and a warning if one gets full."""
    fullest: dict[str, tuple[int, int, str]] = {}
    for report in (each.report for each in alive):
        if report.disk_free_bytes is not None and report.disk_total_bytes is not None:
            disk = (report.disk_free_bytes, report.disk_total_bytes, report.disk_folder or "")
            fullest[report.host] = min(disk, fullest.get(report.host, disk))
    full = [
        f"{_disk(host, folder)}: {readable_bytes(free)} free; the minimum is {readable_bytes(free_bytes_min)} "
        "(HEADWATER_DISK_FREE_BYTES_MIN)."
        for host, (free, _, folder) in fullest.items()
        if free < free_bytes_min
    ]
    low = [
        f"{_disk(host, folder)}: {readable_bytes(free)} of {readable_bytes(total)} free; writes stop at "
        f"{readable_bytes(free_bytes_min)}."
        for host, (free, total, folder) in fullest.items()
        if free_bytes_min <= free < max(free_bytes_min, LOW_SHARE * total)
    ]
    return _check(" ".join([*full, *low]), Severity.CRITICAL if full else Severity.WARNING)


def _disk(host: str, folder: str) -> str:
    return f"{host}, disk of {folder}" if folder else host
