"""The act that a transaction belongs to: it is recorded in the transaction, so that both are committed, or neither."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol

from sqlalchemy import Connection


class RecordedAct(Protocol):
    """A request that has to be recorded with what it changes."""

    def committing(self, connection: Connection, *, administration: bool) -> None:
        """Called before a transaction is committed. `administration`: it may make rows of any tenant."""
        ...

    def committed(self) -> None:
        """Called after the commit."""
        ...

    def concerns(self, **ids: str) -> None:
        """What the act is about, by kind: ids that only the use case knows."""
        ...

    def record(self) -> None:
        """Records the act in a transaction of its own, unless it is recorded. Raises Unavailable."""
        ...


_ACT: Final[ContextVar[RecordedAct | None]] = ContextVar("recorded_act", default=None)


def begin_act(act: RecordedAct) -> None:
    """The rest of this request, in whichever thread, is part of the act."""
    _ACT.set(act)


def current_act() -> RecordedAct | None:
    """The act of this request, if it has to be recorded."""
    return _ACT.get()


def act_concerns(**ids: str) -> None:
    """Names what the act of this request is about. Without an act, nothing happens."""
    if (act := _ACT.get()) is not None:
        act.concerns(**ids)


def record_act() -> None:
    """Records the act of this request before it does something outside of the database. Raises Unavailable.

    Without an act, nothing happens.
    """
    if (act := _ACT.get()) is not None:
        act.record()
