"""Positions of changes in a feed: tables of changes by offset, with gaps."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.rows.changelog import Op


def changes_since(changes: pa.Table, start: int, *, whole: bool) -> pa.Table:
    """The changes from a position on. `whole`: if the position splits a pair, the first half is included."""
    before = changes.num_rows - count_since(changes, start)
    pair_start = before - 1
    if whole and opens_pair(changes, pair_start):
        return changes.slice(pair_start)
    return changes.slice(before)


def count_since(changes: pa.Table, start: int) -> int:
    """The number of changes from a position on."""
    return int(pc.sum(pc.greater_equal(changes.column("offset"), start)).as_py() or 0)


def opens_pair(changes: pa.Table, at: int) -> bool:
    """Whether the change is a -C that its +C directly follows."""
    return (
        op_is(changes, at, Op.CORRECT_FROM)
        and op_is(changes, at + 1, Op.CORRECT_TO)
        and offset_at(changes, at) + 1 == offset_at(changes, at + 1)
    )


def op_is(changes: pa.Table, at: int, op: Op) -> bool:
    """Whether there is such a change, with this op."""
    return 0 <= at < changes.num_rows and bool(changes.column("op")[at].as_py() == op)


def offset_at(changes: pa.Table, at: int) -> int:
    """The offset of a change."""
    return int(changes.column("offset")[at].as_py())


def end_of(changes: pa.Table) -> int:
    """The offset behind the last change; 0 if there is none."""
    return offset_at(changes, changes.num_rows - 1) + 1 if changes.num_rows else 0
