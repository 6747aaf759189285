"""Errors of statements and transactions."""

from __future__ import annotations

from app.infra.errors import Unavailable


class TooSlow(Unavailable):
    """The database was reached, and did not finish a statement in time, as the statement of one job may every time."""

    awaits = None


class CommitInDoubt(Unavailable):
    """The connection broke after COMMIT was sent: whether the transaction was committed is unknown."""
