"""The states of alerts in Postgres, so that they survive the process that evaluates them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from app.features.alerts.tables import alerts
from app.features.alerts.values import AlertPhase, AlertState
from app.infra.db.session import Database


class AlertStates:
    """The states of all alerts within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        rows = connection.execute(select(alerts).with_for_update()).all()
        self._states = {row.name: _state(row) for row in rows}

    def get(self, name: str) -> AlertState | None:
        """The state of an alert; None if it has none."""
        return self._states.get(name)

    def put(self, name: str, state: AlertState | None) -> None:
        """Replaces the state of an alert; None removes it."""
        if state == self._states.get(name):
            return
        if state is None:
            self._connection.execute(delete(alerts).where(alerts.c.name == name))
            return
        values = {
            "phase": state.phase.value,
            "since": state.since,
            "fired_at": state.fired_at,
            "resolved_at": state.resolved_at,
            "detail": state.detail,
            "sent": state.sent,
        }
        row = insert(alerts).values(name=name, **values)
        self._connection.execute(row.on_conflict_do_update(index_elements=["name"], set_=values))


class AlertStore:
    """The states of alerts. They are of the installation, and of no tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def changing(self) -> Iterator[AlertStates]:
        """The states, which are stored at the end. Raises Unavailable."""
        with self._database.relay() as connection:
            yield AlertStates(connection)

    def states(self) -> list[AlertState]:
        """The states of all alerts by name. Raises Unavailable."""
        with self._database.relay() as connection:
            return [_state(row) for row in connection.execute(select(alerts).order_by(alerts.c.name))]

    def note_sent(self, state: AlertState) -> None:
        """Notes that the event of this state was delivered, unless the alert has another one by now."""
        same = (
            alerts.c.name == state.name,
            alerts.c.phase == state.phase.value,
            alerts.c.since == state.since,
        )
        with self._database.relay() as connection:
            connection.execute(update(alerts).where(*same).values(sent=True))


def _state(row: Any) -> AlertState:
    return AlertState(
        name=row.name,
        phase=AlertPhase(row.phase),
        since=row.since,
        fired_at=row.fired_at,
        resolved_at=row.resolved_at,
        detail=row.detail,
        sent=row.sent,
    )
