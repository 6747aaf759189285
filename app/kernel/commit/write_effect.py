"""The effect of a write on a key, as far as it is known before the write runs."""

from __future__ import annotations

from enum import Enum

from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op


class WriteEffect(str, Enum):
    """The effect of a row. `merge`: the rule of the merge mode decides between the row and the live one."""

    INSERT = "insert"
    MERGE = "merge"
    REPLACE = "replace"
    DELETE = "delete"
    NOTHING = "nothing"
    REFUSE = "refuse"
    QUARANTINE = "quarantine"
    DROP = "drop"


def effect_of(
    operation: Operation, op: int, *, live: bool, drop_duplicates: bool, quarantine: bool
) -> WriteEffect:
    """The effect of a row on its key. `op`: the operation of the row. `live`: whether the key has a row."""
    if op in (Op.RETRACT, Op.CORRECT_FROM):
        return WriteEffect.DELETE if live else WriteEffect.NOTHING
    if not live:
        return WriteEffect.INSERT
    if operation.replaces:
        return WriteEffect.REPLACE
    if not operation.refuses_live_keys:
        return WriteEffect.MERGE
    if drop_duplicates:
        return WriteEffect.DROP
    return WriteEffect.QUARANTINE if quarantine else WriteEffect.REFUSE
