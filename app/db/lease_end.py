"""Ends of leases, by the clock of Postgres."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func


def lease_end(lease_seconds: float) -> ColumnElement[Any]:
    """When a lease given now runs out.

    `clock_timestamp`, since a transaction may have waited for its locks.
    """
    return func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, lease_seconds)
