"""The health of the whole service, as responses show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

import msgspec

from app.core.jobs.values import ProcessKind


class Severity(StrEnum):
    """How much a fault matters: `critical`, if requests or writes stop; `warning`, if they go on."""

    CRITICAL = "critical"
    WARNING = "warning"


class ServiceState(StrEnum):
    """`failing`, if a critical check is not ok; `starting`, if no worker has reported yet; `degraded`, if another check
    is not ok.
    """

    OK = "ok"
    STARTING = "starting"
    DEGRADED = "degraded"
    FAILING = "failing"


class ServiceCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the service needs."""

    ok: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether it works."""
    severity: Severity
    """How much it matters while it does not work."""
    detail: str = ""
    """What is wrong; empty where it works."""


class ActiveAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that is active."""

    name: Annotated[str, msgspec.Meta(examples=["disk-low"])]
    """Its name."""
    severity: Severity
    """How much it matters."""
    fired_at: datetime
    """Since when it is active."""
    summary: str
    """What is wrong."""
    detail: str
    """The values for which its condition holds, the worst first, with the datasets that they are of."""
    action: str
    """What to do."""


class ResolvedAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that was active within the last day."""

    name: Annotated[str, msgspec.Meta(examples=["disk-low"])]
    """Its name."""
    severity: Severity
    """How much it mattered."""
    fired_at: datetime
    """Since when it was active."""
    resolved_at: datetime
    """Until when it was active."""
    summary: str
    """What was wrong."""
    detail: str
    """The last values for which its condition held, the worst first, with the datasets that they are of."""
    action: str
    """What to do if it is active again."""


class DiskSpaceView(msgspec.Struct, frozen=True, kw_only=True):
    """The space of a disk."""

    free_bytes: Annotated[int, msgspec.Meta(examples=[53687091200])]
    """What a process may still write."""
    total_bytes: Annotated[int, msgspec.Meta(examples=[107374182400])]
    """What the disk has."""
    folder: Annotated[str, msgspec.Meta(examples=["data and storage"])] | None
    """What is on it: `data`, the data folder with what spills; `storage`; or both. Null if that is unknown."""


class ProcessHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the service, as it has last reported."""

    id: str
    """Its name."""
    kind: ProcessKind
    """What it does: `derived`, `isolated` and `slow` belong to a worker, and run the SQL of users."""
    host: str
    """The machine or the container."""
    pid: int
    """The number of the process there."""
    version: Annotated[str, msgspec.Meta(examples=["0.1.0"])]
    """Its release."""
    alive: bool
    """Whether it has reported within three polls. Others are shown until a worker removes them."""
    started_at: datetime
    """When it has first reported."""
    seen_at: datetime
    """When it has last reported."""
    still: dict[str, datetime]
    """Its loops that stand still, and when each has last done a round."""
    faults: dict[str, str]
    """Why processes that belong to it do not start, by their names: a module that cannot be imported."""
    executors: int | None
    """Its executors on a cluster of Spark; null where Spark runs in the process, or there is none."""
    disk: DiskSpaceView | None
    """The fullest of its disks; null if unknown."""
    resident_bytes: Annotated[int, msgspec.Meta(examples=[201326592])] | None
    """The memory that it occupies, without its JVM; null if unknown."""


class ServiceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the whole service works: its processes, its servers and its storage."""

    state: ServiceState
    """The worst of the checks and the alerts."""
    checks: dict[str, ServiceCheck]
    """The checks, by what they check."""
    processes: list[ProcessHealth]
    """The processes, the oldest first, 200 at most; none while the database is away."""
    alerts: list[ActiveAlert]
    """The active alerts; none while the database is away."""
    resolved_alerts: list[ResolvedAlert]
    """Those that were active within the last day, the latest first; none while the database is away."""

    @classmethod
    def of(
        cls,
        checks: Mapping[str, ServiceCheck],
        processes: Sequence[ProcessHealth] = (),
        alerts: Sequence[ActiveAlert] = (),
        resolved_alerts: Sequence[ResolvedAlert] = (),
        *,
        starts: bool = False,
    ) -> Self:
        """The health with these checks and alerts. `starts`: no worker has reported yet, which is no fault yet."""
        severities = {check.severity for check in checks.values() if not check.ok}
        severities |= {alert.severity for alert in alerts}
        state = (
            ServiceState.FAILING
            if Severity.CRITICAL in severities
            else ServiceState.STARTING
            if starts
            else ServiceState.DEGRADED
            if severities
            else ServiceState.OK
        )
        return cls(
            state=state,
            checks=dict(checks),
            processes=list(processes),
            alerts=list(alerts),
            resolved_alerts=list(resolved_alerts),
        )


class AlertPhase(StrEnum):
    """Where an alert is: its condition holds, but not for long enough; it is active; or it no longer is."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class AlertState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an alert. `since`: when its condition began to hold. `sent`: whether its event was delivered."""

    name: str
    phase: AlertPhase
    since: datetime
    fired_at: datetime | None = None
    resolved_at: datetime | None = None
    detail: str = ""
    sent: bool = False


def detail_of_end(detail: str, fired_at: datetime, resolved_at: datetime) -> str:
    """That an alert is over, and what it was about. `detail`: that of the alert while it was active."""
    minutes = round((resolved_at - fired_at).total_seconds() / 60)
    hours, rest = divmod(minutes, 60)
    duration = f"{hours:,} h {rest} min" if hours else f"{minutes} min" if minutes else "less than a minute"
    return f"resolved after {duration}; it was: {detail}"
