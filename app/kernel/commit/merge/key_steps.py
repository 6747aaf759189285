"""Key steps: the effect of rows on the state of their key, as if the rows came one by one.

A key has a live row, a tombstone, or nothing. A row is a step from one state to the next. A step takes the place of
states up to an order, and leaves those above it; some steps turn a live row into a tombstone. Two steps in a row are
again such a step, so the rows of all keys are applied in few operations on whole columns, however many a key has.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Self, TypeVar

import numpy as np

NOTHING: Final = 0
LIVE: Final = 1
TOMBSTONE: Final = 2
"""The kinds of states."""

NEVER: Final = -2
NO_ORDER: Final = -1
"""The order of nothing: below that of every row. Ranks of ordering values start at 0, for null."""
ALWAYS: Final = np.iinfo(np.int64).max
UNMADE: Final = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class _Arrays:
    """Arrays of one length."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def at(self, places: np.ndarray) -> Self:
        """The elements at these places (int64 or bool); the same arrays if these are all, in order."""
        if places.dtype == np.int64 and len(places) == len(self) and _is_every(places):
            return self
        return type(self)(**{field.name: _at(getattr(self, field.name), places) for field in fields(self)})


def _is_every(places: np.ndarray) -> bool:
    """Whether these are 0, 1, 2 …, as where no key occurs twice."""
    return len(places) > 0 and places[0] == 0 and bool((np.diff(places) == 1).all())


def _at(value: np.ndarray | _Arrays, places: np.ndarray) -> np.ndarray | _Arrays:
    return value.at(places) if isinstance(value, _Arrays) else value[places]


@dataclass(frozen=True, kw_only=True, slots=True)
class States(_Arrays):
    """States of keys (int64 by default).

    `kind` (uint8). `order`: the rank of the ordering value, NO_ORDER for nothing. `row`: the number of the live row.
    `cause`: the position of the incoming row that made the state, UNMADE if none did.
    """

    kind: np.ndarray
    order: np.ndarray
    row: np.ndarray
    cause: np.ndarray

    def without(self, places: np.ndarray) -> States:
        """The states, with nothing at these places (bool)."""
        if not places.any():
            return self
        return States(
            kind=np.where(places, NOTHING, self.kind).astype(np.uint8),
            order=np.where(places, NO_ORDER, self.order),
            row=self.row,
            cause=self.cause,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class KeySteps(_Arrays):
    """KeySteps (int64 by default).

    `reach`: the greatest order of a state whose place `state` takes. `buries` (bool): whether another live row becomes
    a tombstone; `burier`: the position of the incoming row that does it.
    """

    reach: np.ndarray
    state: States
    buries: np.ndarray
    burier: np.ndarray

    def wins(self, states: States) -> np.ndarray:
        """Whether the state of each step takes the place of these (bool)."""
        won: np.ndarray = states.order <= self.reach
        return won

    def apply(self, states: States) -> States:
        """The states after one step each."""
        wins = self.wins(states)
        if wins.all():
            return self.state
        buried = ~wins & self.buries & (states.kind == LIVE)
        return States(
            kind=np.where(wins, self.state.kind, np.where(buried, TOMBSTONE, states.kind)).astype(np.uint8),
            order=np.where(wins, self.state.order, states.order),
            row=np.where(wins, self.state.row, states.row),
            cause=np.where(wins, self.state.cause, np.where(buried, self.burier, states.cause)),
        )

    def then(self, others: KeySteps) -> KeySteps:
        """Each step and the one after it, as one."""
        return KeySteps(
            reach=np.maximum(self.reach, others.reach),
            state=others.apply(self.state),
            buries=self.buries | others.buries,
            burier=np.where(self.buries, self.burier, others.burier),
        )

    def run(self, starts: States, ranks: np.ndarray) -> tuple[States, States]:
        """The states before and after each step, where the steps of one key come one after another.

        `starts`: the state before the first step of its key, for each step. `ranks`: the number of steps of its key
        before each step (int64).
        """
        steps, distance, most = self, 1, int(ranks.max(initial=0))
        while distance <= most:
            later = np.flatnonzero(ranks >= distance)
            steps = _replaced(steps, later, steps.at(later - distance).then(steps.at(later)))
            distance *= 2
        after = steps.apply(starts)
        if most == 0:
            return starts, after
        followers = np.flatnonzero(ranks)
        return _replaced(starts, followers, after.at(followers - 1)), after


_Some = TypeVar("_Some", bound=_Arrays)


def _replaced(values: _Some, places: np.ndarray, others: _Some) -> _Some:
    """The values, with others at these places (int64)."""
    copies = {}
    for field in fields(values):
        value, other = getattr(values, field.name), getattr(others, field.name)
        if isinstance(value, _Arrays):
            copies[field.name] = _replaced(value, places, other)
        else:
            copies[field.name] = value.copy()
            copies[field.name][places] = other
    return type(values)(**copies)
