"""Sends the events of alerts to the URL that the operator has configured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from app.features.alerts.declared import ALERTS, RUNBOOK, Alert
from app.features.alerts.repository import AlertStore
from app.features.alerts.values import AlertPhase, AlertState, Severity, detail_of_end
from app.infra.errors import Unavailable

_log = logging.getLogger(__name__)
EVENTS_TASK: Final = "alert events"
"""The task of the process that sends events."""
_BY_NAME: Final = {alert.name: alert for alert in ALERTS}

Send = Callable[[str, bytes], str | None]
"""Sends a message with this id; returns what was wrong, None if it has arrived. It takes 15 s at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SendEvents:
    """Sends `alert.fired` and `alert.resolved`, each until it has arrived or the alert has changed again.

    `leads`: whether this process sends them now.
    """

    store: AlertStore
    send: Send
    leads: Callable[[], bool]

    def run(self) -> None:
        """One round. Raises Unavailable if an event did not arrive: the next round sends it again."""
        waiting = [
            (state, _BY_NAME[state.name])
            for state in self.store.states()
            if not state.sent and state.phase is not AlertPhase.PENDING and state.name in _BY_NAME
        ]
        # The critical ones first: an attempt may take long.
        waiting.sort(key=lambda each: each[1].severity is not Severity.CRITICAL)
        if not waiting or not self.leads():
            return
        for state, alert in waiting:
            fault = self.send(
                f"{state.name}-{state.phase.value}-{state.since.timestamp():.0f}", event_of(alert, state)
            )
            if fault is not None:
                raise Unavailable(f"the receiver of alerts does not take them: {fault}")
            self.store.note_sent(state)
            _log.info("the receiver has the event that alert %s is %s", state.name, state.phase.value)


def event_of(alert: Alert, state: AlertState) -> bytes:
    """The body of an event, in the form of Standard Webhooks. Of one that is resolved there is nothing to do."""
    fired = state.phase is AlertPhase.FIRING
    detail = state.detail
    if state.fired_at is not None and state.resolved_at is not None and not fired:
        detail = detail_of_end(detail, state.fired_at, state.resolved_at)
    data: Mapping[str, object] = {
        "alert": alert.name,
        "severity": alert.severity.value,
        "state": state.phase.value,
        "summary": alert.summary,
        "detail": detail,
        "action": alert.action if fired else "",
        "runbook": RUNBOOK,
        "fired_at": state.fired_at,
        "resolved_at": None if fired else state.resolved_at,
    }
    moment = state.fired_at if fired else state.resolved_at
    return msgspec.json.encode(
        {"type": "alert.fired" if fired else "alert.resolved", "timestamp": moment, "data": data}
    )
