"""Turns: what each write does to each of its keys, after its rows of one key were reduced to one.

A turn may reset the key (delete what is there), put a row there, or both: the row then takes the place of what was
there. Reduction, in this order:

1. A -C that is directly followed by the +C of its key says nothing of its own.
2. A delete without an ordering value (or where rows are not ordered) ends what came before it.
3. What is left goes by ordering value, then by position; a delete ends what is before it in that order.
4. Of the rows after the last delete the last one counts, under mode `first` the first; under `partial` and
   `aggregate` they are folded, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from app.format.rows.changelog import Op

NEVER: Final = -1
ALWAYS: Final = np.iinfo(np.int64).max
Keep = Literal["first", "last", "all"]


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingRows:
    """Facts of the incoming rows by position (int64 unless said otherwise): `key` numbers, `job`, `op` (uint8), and
    `order`: the rank of the ordering value, 0 for none.
    """

    key: np.ndarray
    job: np.ndarray
    op: np.ndarray
    order: np.ndarray

    @property
    def deletes(self) -> np.ndarray:
        """Which rows delete their key (bool)."""
        return np.isin(self.op, (Op.RETRACT, Op.CORRECT_FROM))


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyMutations:
    """One element per write and key (int64 unless said otherwise), each key's turns in order of acceptance.

    `cause`: position of the incoming row that counts. `row`: number of the row to put there (of the cause, where the
    turn only deletes). `puts` (bool): whether there is one. `reset`: the key is deleted if its live row's order is not
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
    """`cause`, `reset`, `puts`: as in Turns. `members`: positions of the rows that count, those of one turn behind each
    other in order; `member_of`: their turns, ascending. `merged_away`: positions of the rows that do not count.
    """

    cause: np.ndarray
    reset: np.ndarray
    puts: np.ndarray
    members: np.ndarray
    member_of: np.ndarray
    merged_away: np.ndarray


def reduce_writes(rows: IncomingRows, *, keep: Keep) -> ReducedWrites:
    """Reduces the rows of every write to one turn per key. `keep`: which of the rows that could count do."""
    deletes = rows.deletes
    if len(rows.key) == 0 or np.bincount(rows.key).max() == 1:
        return _one_each(rows, deletes)
    arrived = np.argsort(rows.key, kind="stable")
    unit = _units(rows.key[arrived], rows.job[arrived])
    counts = np.ones(len(arrived), dtype=bool)
    units = int(unit[-1]) + 1
    reset = np.full(units, NEVER, dtype=np.int64)
    last_delete = np.full(units, -1, dtype=np.int64)
    if deletes.any():
        counts &= ~_corrected(rows.op[arrived], unit)
        final = counts & deletes[arrived] & (rows.order[arrived] == 0)
        counts = _cut(arrived, unit, counts, final, last_delete)
        reset[last_delete >= 0] = ALWAYS
    arrived, unit = arrived[counts], unit[counts]
    order = np.lexsort((rows.order[arrived], unit))
    arrived, unit = arrived[order], unit[order]
    if deletes.any():
        ordered = deletes[arrived]
        cut = np.full(units, -1, dtype=np.int64)
        counts = _cut(arrived, unit, np.ones(len(arrived), dtype=bool), ordered, cut)
        found = cut >= 0
        reset[found] = np.maximum(reset[found], rows.order[cut[found]])
        last_delete[found] = cut[found]
        arrived, unit = arrived[counts], unit[counts]
    return _chosen(rows, arrived, unit, reset, last_delete, keep)


def _one_each(rows: IncomingRows, deletes: np.ndarray) -> ReducedWrites:
    """Where no key comes twice, as in most writes, every row is a turn."""
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
    """Which rows are the -C of a +C that directly follows in the same turn."""
    found = np.zeros(len(op), dtype=bool)
    found[:-1] = (op[:-1] == Op.CORRECT_FROM) & (op[1:] == Op.CORRECT_TO) & (unit[:-1] == unit[1:])
    return found


def _cut(
    positions: np.ndarray, unit: np.ndarray, counts: np.ndarray, ends: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Which rows still count after each turn's last one of `ends` ended itself and what is before it.

    Writes the positions of those last ones to `last`, by turn.
    """
    places = np.flatnonzero(ends)
    cut = np.full(len(last), -1, dtype=np.int64)
    # The last of several assignments to one element stays.
    cut[unit[places]] = places
    found = cut >= 0
    last[found] = positions[cut[found]]
    left: np.ndarray = counts & (np.arange(len(unit)) > cut[unit])
    return left


def _chosen(
    rows: IncomingRows,
    positions: np.ndarray,
    unit: np.ndarray,
    reset: np.ndarray,
    last_delete: np.ndarray,
    keep: Keep,
) -> ReducedWrites:
    """`positions`: rows that put something, in the order in which they count, by `unit`."""
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
    counted = np.zeros(len(rows.key), dtype=bool)
    counted[cause] = True
    return ReducedWrites(
        cause=cause,
        reset=reset,
        puts=puts,
        members=members,
        member_of=member_of,
        merged_away=np.flatnonzero(~counted),
    )
