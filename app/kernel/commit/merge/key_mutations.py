"""Key mutations: the effect of each write on each of its keys, after its rows of one key are reduced to one.

A mutation may reset the key (delete the live row), put a row, or both: then the row replaces the live one. The
reduction has these steps, in order:


1. A -C that is directly followed by the +C of its key has no effect of its own.
2. A delete without an ordering value (or where rows are not ordered) cancels everything before it.
3. The remaining rows are ordered by ordering value, then by position. A delete cancels everything before it in that
   order.
4. Of the rows after the last delete, the last one counts; under mode `first` the first one. Under `partial` and
   `aggregate` they are folded, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from app.kernel.format.rows.changelog import Op

NEVER: Final = -1
ALWAYS: Final = np.iinfo(np.int64).max
Keep = Literal["first", "last", "all"]


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingRows:
    """Facts of the incoming rows by position (int64 by default): `key` numbers, `job`, `op` (uint8), and `order`: the
    rank of the ordering value, 0 for null.
    """

    key: np.ndarray
    job: np.ndarray
    op: np.ndarray
    order: np.ndarray

    @property
    def deletes(self) -> np.ndarray:
        """Whether each row deletes its key (bool)."""
        return np.isin(self.op, (Op.RETRACT, Op.CORRECT_FROM))


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyMutations:
    """One element per write and key (int64 by default), with the mutations of a key in order of acceptance.

    `cause`: position of the incoming row that counts. `row`: number of the row to put (of the cause, for a mere
    delete). `puts` (bool): whether the mutation puts a row. `reset`: the key is deleted if its live row's order is not
    above this; NEVER and ALWAYS. `order`: of the row that is put.
    """

    cause: np.ndarray
    row: np.ndarray
    key: np.ndarray
    job: np.ndarray
    order: np.ndarray
    reset: np.ndarray
    puts: np.ndarray


@dataclass(frozen=True, kw_only=True, slots=True)
class ReducedWrites:
    """The reduction of the rows of every write.

    `cause`, `reset`, `puts`: as in KeyMutations. `members`: positions of the rows that count, consecutive and in order
    for one mutation; `member_of`: their mutations, ascending. `merged_away`: positions of the rows that do not count.
    """

    cause: np.ndarray
    reset: np.ndarray
    puts: np.ndarray
    members: np.ndarray
    member_of: np.ndarray
    merged_away: np.ndarray


def reduce_writes(rows: IncomingRows, *, keep: Keep) -> ReducedWrites:
    """Reduces the rows of every write to one mutation per key. `keep`: which of the candidate rows count."""
    deletes = rows.deletes
    if len(rows.key) == 0 or np.bincount(rows.key).max() == 1:
        return _one_each(rows, deletes)
    positions = np.argsort(rows.key, kind="stable")
    unit = _units(rows.key[positions], rows.job[positions])
    counts = np.ones(len(positions), dtype=bool)
    units = int(unit[-1]) + 1
    reset = np.full(units, NEVER, dtype=np.int64)
    last_delete = np.full(units, -1, dtype=np.int64)
    if deletes.any():
        counts &= ~_corrected(rows.op[positions], unit)
        final = counts & deletes[positions] & (rows.order[positions] == 0)
        counts = _cut(positions, unit, counts, final, last_delete)
        reset[last_delete >= 0] = ALWAYS
    positions, unit = positions[counts], unit[counts]
    order = np.lexsort((rows.order[positions], unit))
    positions, unit = positions[order], unit[order]
    if deletes.any():
        ends = deletes[positions]
        cut = np.full(units, -1, dtype=np.int64)
        counts = _cut(positions, unit, np.ones(len(positions), dtype=bool), ends, cut)
        has_cut = cut >= 0
        reset[has_cut] = np.maximum(reset[has_cut], rows.order[cut[has_cut]])
        last_delete[has_cut] = cut[has_cut]
        positions, unit = positions[counts], unit[counts]
    return _chosen(rows, positions, unit, reset, last_delete, keep)


def _one_each(rows: IncomingRows, deletes: np.ndarray) -> ReducedWrites:
    """The mutations where no key occurs twice, as in most writes: every row is a mutation."""
    positions = np.arange(len(rows.key))
    reset = np.where(deletes, np.where(rows.order == 0, ALWAYS, rows.order), NEVER)
    puts = ~deletes
    return ReducedWrites(
        cause=positions,
        reset=reset,
        puts=puts,
        members=positions[puts],
        member_of=positions[puts],
        merged_away=positions[:0],
    )


def _units(key: np.ndarray, job: np.ndarray) -> np.ndarray:
    """A dense number per (key, job) of rows sorted by both."""
    changes = (np.diff(key, prepend=-1) != 0) | (np.diff(job, prepend=-1) != 0)
    return np.cumsum(changes) - 1


def _corrected(op: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Whether each row is the -C of a +C that directly follows in the same mutation."""
    pair_starts = np.zeros(len(op), dtype=bool)
    pair_starts[:-1] = (op[:-1] == Op.CORRECT_FROM) & (op[1:] == Op.CORRECT_TO) & (unit[:-1] == unit[1:])
    return pair_starts


def _cut(
    positions: np.ndarray, unit: np.ndarray, counts: np.ndarray, ends: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Whether each row still counts: rows up to the last of `ends` in their mutation do not.

    Writes the positions of those last ones to `last`, by mutation.
    """
    places = np.flatnonzero(ends)
    cut = np.full(len(last), -1, dtype=np.int64)
    # Of several assignments to one element, the last one stays.
    cut[unit[places]] = places
    has_cut = cut >= 0
    last[has_cut] = positions[cut[has_cut]]
    still_counts: np.ndarray = counts & (np.arange(len(unit)) > cut[unit])
    return still_counts


def _chosen(
    rows: IncomingRows,
    positions: np.ndarray,
    unit: np.ndarray,
    reset: np.ndarray,
    last_delete: np.ndarray,
    keep: Keep,
) -> ReducedWrites:
    """`positions`: rows that put a row, in the order in which they count, by `unit`."""
    cause = last_delete.copy()
    puts = np.zeros(len(cause), dtype=bool)
    puts[unit] = True
    if keep == "first":
        cause[unit[::-1]] = positions[::-1]
    else:
        cause[unit] = positions
    if keep == "all":
        members, member_of = positions, unit
    else:
        members, member_of = cause[puts], np.flatnonzero(puts)
    is_cause = np.zeros(len(rows.key), dtype=bool)
    is_cause[cause] = True
    return ReducedWrites(
        cause=cause,
        reset=reset,
        puts=puts,
        members=members,
        member_of=member_of,
        merged_away=np.flatnonzero(~is_cause),
    )
