"""Random conditions on the columns of the table `flat`, in the SQL that the service and all engines have in common."""

from __future__ import annotations

import random
from typing import Final

_NUMBERS: Final = ("id", "c_int8", "c_int16", "c_int32", "c_int64", "c_uint8", "c_uint16", "c_uint32")
_TEXTS: Final = ("a", "A", "ü", "漢字", "x")
_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_DEPTH: Final = 3


def predicate(dice: random.Random, depth: int = _DEPTH) -> str:
    """A condition."""
    if depth and dice.random() < 0.6:
        left, right = predicate(dice, depth - 1), predicate(dice, depth - 1)
        joined = f"({left}) {dice.choice(('AND', 'OR'))} ({right})"
        return f"NOT ({joined})" if dice.random() < 0.2 else joined
    match dice.randrange(5):
        case 0:
            return f"text {dice.choice(_COMPARISONS)} '{dice.choice(_TEXTS)}'"
        case 1:
            return f"{dice.choice((*_NUMBERS, 'text', 'day', 'uid'))} IS {dice.choice(('', 'NOT '))}NULL"
        case 2:
            values = ", ".join(str(dice.randrange(80)) for _ in range(dice.randint(1, 4)))
            return f"id {dice.choice(('', 'NOT '))}IN ({values})"
        case 3:
            return f"yes = {dice.choice(('TRUE', 'FALSE'))}"
    return f"{dice.choice(_NUMBERS)} {dice.choice(_COMPARISONS)} {dice.choice((0, 1, 40, 100, 127, 128))}"
