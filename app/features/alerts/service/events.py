"""Sends the events of alerts to the URL that the operator has configured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from app.features.alerts.declared import ALERTS, Alert
from app.features.alerts.repository import AlertStore
from app.features.alerts.values import AlertPhase, AlertState
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
        if not self.leads():
            return
        for state in self.store.states():
            alert = _BY_NAME.get(state.name)
            if state.sent or state.phase is AlertPhase.PENDING or alert is None:
                continue
            fault = self.send(
                f"{state.name}-{state.phase.value}-{state.since.timestamp():.0f}", event_of(alert, state)
            )
            if fault is not None:
                raise Unavailable(f"the receiver of alerts does not take them: {fault}")
            self.store.note_sent(state)
            _log.info("alert %s is %s: %s", state.name, state.phase.value, state.detail)


def event_of(alert: Alert, state: AlertState) -> bytes:
    """The body of an event, in the form of Standard Webhooks."""
    fired = state.phase is AlertPhase.FIRING
    data: Mapping[str, object] = {
        "alert": alert.name,
        "severity": alert.severity.value,
        "summary": alert.summary,
        "detail": state.detail,
        "action": alert.action,
        "fired_at": state.fired_at,
        "resolved_at": None if fired else state.resolved_at,
    }
    moment = state.fired_at if fired else state.resolved_at
    return msgspec.json.encode(
        {"type": "alert.fired" if fired else "alert.resolved", "timestamp": moment, "data": data}
    )
