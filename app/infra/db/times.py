"""Times by the clock of Postgres. `clock_timestamp`, since a transaction may have waited for its locks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, func


def lease_end(lease_seconds: float | BindParameter[Any]) -> ColumnElement[datetime]:
    """When a lease given now runs out."""
    return func.clock_timestamp() + interval(lease_seconds)


def seconds_ago(seconds: float) -> ColumnElement[datetime]:
    """The time this number of seconds ago."""
    return func.clock_timestamp() - interval(seconds)


def interval(seconds: float | BindParameter[Any]) -> ColumnElement[Any]:
    """A length of time."""
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
