"""Evaluates the alerts about datasets for tenants that have webhooks for them, in one of the workers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec

from app.features.alerts.declared import RUNBOOK, Alert
from app.features.alerts.values import detail_of_end
from app.features.monitoring.values import DatasetFault
from app.features.webhooks.values import AlertEvent, AlertEventState, DecideAlerts, HeldAlert, HeldAlerts
from app.infra.identifiers import new_id

_log = logging.getLogger(__name__)
TENANTS_TASK: Final = "alerts of tenants"
"""The task of the process that evaluates them."""
HELD_SECONDS: Final = 300.0
"""An alert is resolved once its condition has not held for this time: one that comes and goes is sent once."""
EVENTS_MAX: Final = 50
"""The most events of a tenant in a round. The others come with the next rounds."""
TENANTS_MAX: Final = 1_000
"""The most tenants of a round. The next round begins behind the last one of them."""
# A tenant whose round takes long rests for this multiple of its time.
_RESTS: Final = 50
# Rounds are not exact, see `Evaluate`.
_EARLY_SECONDS: Final = 0.5

Faults = Mapping[str, Sequence[DatasetFault]]


@dataclass(kw_only=True, slots=True)
class WatchTenants:
    """The alerts of tenants. `alerts`: those about datasets. Called by one thread.

    `tenants`: ids of those that have webhooks for alerts, in order: behind an id, of a number at most. `states`: of a
    tenant's alerts. `faults`: by metric, datasets of a tenant with a value that may be a fault, of all those that are
    named by metric, and of others up to a number. `change`: stores what is decided about the states of a tenant's
    alerts, and sends the events.
    `leads`: whether this process does it now. `round_seconds`: a round begins no further tenant after this time.
    `held_seconds`: see HELD_SECONDS.
    """

    alerts: Sequence[Alert]
    tenants: Callable[[str, int], Sequence[str]]
    states: Callable[[str], HeldAlerts]
    faults: Callable[[str, Mapping[str, Sequence[str]]], Faults]
    change: Callable[[str, DecideAlerts], Sequence[AlertEvent]]
    leads: Callable[[], bool]
    round_seconds: float
    held_seconds: float = HELD_SECONDS
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _rests: dict[str, float] = field(default_factory=dict)
    """By tenant, the time until which it rests, by the monotonic clock."""
    _after: str = ""
    """The tenant behind which the next round begins."""

    def run(self) -> None:
        """One round. Each tenant has its turn, however many there are. A failure of one does not affect others."""
        if not self.leads():
            self._rests.clear()
            return
        began = time.monotonic()
        self._rests = {each: until for each, until in self._rests.items() if until > began}
        tenant_ids = self.tenants(self._after, TENANTS_MAX)
        for tenant_id in tenant_ids:
            if time.monotonic() >= began + self.round_seconds:
                return
            self._after = tenant_id
            if tenant_id not in self._rests:
                self._serve(tenant_id)
        if len(tenant_ids) < TENANTS_MAX:
            self._after = ""

    def _serve(self, tenant_id: str) -> None:
        began = time.monotonic()
        try:
            self._watch(tenant_id)
        except Exception:
            _log.exception("the alerts of tenant %s could not be evaluated", tenant_id)
        ended = time.monotonic()
        if ended - began > 1.0:
            self._rests[tenant_id] = ended + _RESTS * (ended - began)

    def _watch(self, tenant_id: str) -> None:
        faults = self.faults(tenant_id, self._datasets_of(self.states(tenant_id)))
        now = self.now()
        events = self.change(
            tenant_id, lambda name, number, states: self.decide(name, number, states, faults, now)
        )
        for event in events:
            _log.info(
                "alert %s of tenant %s, dataset %s, is %s: %s",
                event.alert,
                tenant_id,
                event.labels.get("dataset_id", "–"),
                event.state.value,
                event.detail,
            )

    def _datasets_of(self, states: HeldAlerts) -> dict[str, list[str]]:
        """The datasets that have a state, by metric: they are read whatever their values are, and so resolved."""
        by_alert: dict[str, list[str]] = {}
        for key, state in states.items():
            if state.dataset_id is not None:
                by_alert.setdefault(key.partition(" ")[0], []).append(state.dataset_id)
        return {alert.metric: by_alert.get(alert.name, []) for alert in self.alerts}

    def decide(
        self, tenant: str, next_event: int, before: HeldAlerts, faults: Faults, now: datetime
    ) -> tuple[dict[str, HeldAlert], list[AlertEvent]]:
        """The states after a round, and the events about what has changed, from the number `next_event` on.

        A metric that is missing changes nothing.
        """
        after: dict[str, HeldAlert] = {}
        events: list[AlertEvent] = []
        for alert in self.alerts:
            held_before = {key: held for key, held in before.items() if key.partition(" ")[0] == alert.name}
            if alert.metric not in faults:
                after |= held_before
                continue
            current = {
                f"{alert.name} {fault.dataset_id or ''}": fault
                for fault in faults[alert.metric]
                if fault.value > alert.threshold
            }
            for key, fault in current.items():
                after[key] = held = _holding(alert, held_before.get(key), fault, now)
                if held.fired_at is None and _has_lasted(alert, held, now) and len(events) < EVENTS_MAX:
                    after[key] = fired = msgspec.structs.replace(
                        held, fired_at=now, event=next_event + len(events)
                    )
                    events.append(event_of(tenant, alert, fired))
            for key, held in held_before.items():
                if key in current or held.fired_at is None:
                    continue
                right_since = held.right_since or now
                quiet_seconds = (now - right_since).total_seconds()
                if quiet_seconds >= self.held_seconds and len(events) < EVENTS_MAX:
                    events.append(event_of(tenant, alert, held, resolved_at=now))
                else:
                    after[key] = msgspec.structs.replace(held, right_since=right_since)
        return after, events


def _holding(alert: Alert, before: HeldAlert | None, fault: DatasetFault, now: datetime) -> HeldAlert:
    """The state while the condition holds. What an alert that is active says stays, unless it names what comes."""
    if before is None:
        return HeldAlert(since=now, dataset_id=fault.dataset_id, dataset=fault.dataset, detail=fault.detail)
    if not alert.follows and (before.fired_at is not None or alert.for_seconds == 0):
        return msgspec.structs.replace(before, right_since=None)
    return msgspec.structs.replace(before, right_since=None, dataset=fault.dataset, detail=fault.detail)


def _has_lasted(alert: Alert, held: HeldAlert, now: datetime) -> bool:
    return (now - held.since).total_seconds() >= alert.for_seconds - _EARLY_SECONDS


def event_of(tenant: str, alert: Alert, held: HeldAlert, resolved_at: datetime | None = None) -> AlertEvent:
    """The event of an alert that is fired, or resolved at a time. `tenant`: its name."""
    fired_at = held.fired_at or held.since
    return AlertEvent(
        id=new_id(),
        alert=alert.name,
        severity=alert.severity.value,
        state=AlertEventState.FIRING if resolved_at is None else AlertEventState.RESOLVED,
        labels={"tenant": tenant, **_dataset_labels(held)},
        summary=alert.summary,
        detail=held.detail if resolved_at is None else detail_of_end(held.detail, fired_at, resolved_at),
        action=alert.action if resolved_at is None else "",
        runbook=RUNBOOK,
        fired_at=fired_at,
        resolved_at=resolved_at,
    )


def _dataset_labels(held: HeldAlert) -> dict[str, str]:
    if held.dataset_id is None or held.dataset is None:
        return {}
    return {"dataset": held.dataset, "dataset_id": held.dataset_id}
