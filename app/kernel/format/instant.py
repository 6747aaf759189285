"""Instants: attempts to change a dataset, and their states."""

from __future__ import annotations

from enum import Enum

import msgspec


class Action(str, Enum):
    """What an instant does to the dataset."""

    COMMIT = "commit"
    SCHEMA = "schema"
    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    SAVEPOINT = "savepoint"
    TAG = "tag"
    ROLLBACK = "rollback"
    RESTORE = "restore"


WRITE_ACTIONS = (Action.COMMIT, Action.ROLLBACK, Action.RESTORE)
"""What jobs do that change rows."""


class InstantState(str, Enum):
    """The state of an instant. Only COMPLETED is ever visible to readers."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"
    ROLLED_BACK = "rolled_back"


class InstantEvent(str, Enum):
    """An event that changes the state of an instant."""

    START = "start"
    PUBLISH = "publish"
    ABANDON = "abandon"


class IllegalTransition(Exception):
    """The event is not possible in this state. It is always a bug."""


def next_state(state: InstantState, event: InstantEvent) -> InstantState:
    """The state after `event`. A restarted attempt starts an inflight instant again."""
    match state, event:
        case ((InstantState.REQUESTED | InstantState.INFLIGHT), InstantEvent.START):
            return InstantState.INFLIGHT
        case InstantState.INFLIGHT, InstantEvent.PUBLISH:
            return InstantState.COMPLETED
        case ((InstantState.REQUESTED | InstantState.INFLIGHT), InstantEvent.ABANDON):
            return InstantState.ROLLED_BACK
    raise IllegalTransition(f"{event.value} in state {state.value}")


def states_before(event: InstantEvent) -> list[InstantState]:
    """The states in which `event` may happen: the condition of the one UPDATE that applies it."""

    def allowed(state: InstantState) -> bool:
        try:
            next_state(state, event)
        except IllegalTransition:
            return False
        return True

    return [state for state in InstantState if allowed(state)]


class RowCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effects of a write's rows; the six numbers add up to the rows that were sent."""

    inserted: int = 0
    """Rows whose key was new."""
    updated: int = 0
    """Rows that replaced the row of their key."""
    deleted: int = 0
    """Rows that deleted the row of their key."""
    unchanged: int = 0
    """Rows that changed nothing, for another reason than `late`."""
    quarantined: int = 0
    """Rows that were rejected and quarantined."""
    late: int = 0
    """Rows that changed nothing because their ordering value is less than that of the row or delete of their key."""

    @property
    def sent(self) -> int:
        """The rows that were sent."""
        return sum(msgspec.structs.astuple(self))

    @property
    def stored(self) -> dict[str, int]:
        """The stored form: without late rows where there are none, because the release before does not know them."""
        counts: dict[str, int] = msgspec.structs.asdict(self)
        return counts if self.late else {name: count for name, count in counts.items() if name != "late"}

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        )
