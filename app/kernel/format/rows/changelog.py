"""The changelog: operations, their order, and the result of folding them.

Every change row has an `op`: 0 append (+A), 1 retract (-R), 2 correct-from (-C), 3 correct-to (+C). A -C row is
directly followed by its +C row; -R and -C rows have exactly the values of the row before. Folding the changes up to a
version over an empty table gives the snapshot at that version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

OP_COLUMN: Final = "_hw_op"
OP_FIELD: Final = pa.field(OP_COLUMN, pa.uint8(), nullable=False)


class Op(IntEnum):
    """The operation of a change row, as stored."""

    APPEND = 0
    RETRACT = 1
    CORRECT_FROM = 2
    CORRECT_TO = 3


SYMBOLS: Final = ("+A", "-R", "-C", "+C")
UPDATE_SYMBOL: Final = "U"
"""The symbol of a +C that is one event with its -C."""
DELTA_TYPES: Final = ("insert", "delete", "update_preimage", "update_postimage")
"""The ops as Delta Lake's change data feed names them."""


class FeedError(ValueError):
    """The changes do not form a feed; the message has the first change that does not fit."""


def complete_pairs(
    offsets: npt.NDArray[np.int64], ops: npt.NDArray[np.uint8], selection: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """The changes of the selection, and the other half of each of their pairs. All arrays have the shape (changes,).

    The changes are of one changelog file, by offset; some may be missing between them.
    """
    pairs = _pairs(offsets, ops)
    either = pairs & (selection[:-1] | selection[1:])
    complete = selection.copy()
    complete[:-1] |= either
    complete[1:] |= either
    return complete


def without_hidden_halves(
    offsets: npt.NDArray[np.int64], ops: npt.NDArray[np.uint8], visible: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint8]:
    """The ops for a reader that sees some of the changes only; the arrays are those of `complete_pairs`.

    A -C whose +C is hidden takes its row out of what the reader sees: -R. A +C whose -C is hidden adds its row: +A. So
    the visible changes fold to the visible rows.
    """
    pairs = _pairs(offsets, ops)
    visible_ops = ops.copy()
    visible_ops[:-1][pairs & ~visible[1:]] = Op.RETRACT
    visible_ops[1:][pairs & ~visible[:-1]] = Op.APPEND
    return visible_ops


def _pairs(offsets: npt.NDArray[np.int64], ops: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Whether each change but the last is a -C that its +C directly follows."""
    pairs: npt.NDArray[np.bool_] = (ops[:-1] == Op.CORRECT_FROM) & (ops[1:] == Op.CORRECT_TO)
    pairs &= np.diff(offsets) == 1
    return pairs


def fold(changes: Iterable[tuple[int, dict[str, Any]]], key: Sequence[str]) -> list[dict[str, Any]]:
    """Folds (op, row) pairs over an empty table and returns the rows, in no particular order.

    Raises FeedError for a change that contradicts the table so far: an append of a live key, a retraction of values
    that are not there, a -C without its +C. Without a key, rows are counted as a multiset.
    """
    live: dict[Any, list[dict[str, Any]]] = {}
    open_correction: Any = None
    for number, (op, row) in enumerate(changes):
        identity = tuple(row[name] for name in key) if key else repr(sorted(row.items()))
        if (open_correction is not None) != (op == Op.CORRECT_TO) or (
            op == Op.CORRECT_TO and open_correction != identity
        ):
            raise FeedError(f"change {number}: a -C must be directly followed by the +C of its key")
        rows = live.setdefault(identity, [])
        open_correction = identity if op == Op.CORRECT_FROM else None
        if op in (Op.APPEND, Op.CORRECT_TO):
            if key and rows:
                raise FeedError(f"change {number}: {identity} is already live")
            rows.append(row)
        elif row in rows:
            rows.remove(row)
        else:
            raise FeedError(f"change {number}: the values it retracts are not in the table: {row}")
    if open_correction is not None:
        raise FeedError("the feed ends between a -C and its +C")
    return [row for rows in live.values() for row in rows]
