"""The numbered rows of a merge: the current rows, then the incoming rows, then rows that the merge created.

All decisions use the numbers. The columns, of any type, are gathered only where values are compared or returned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.commit.merge.values import row_codes
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.index.number_order import ascending_order
from app.kernel.format.rows.record_key import encode_keys


class NumberedRows:
    """Tables of one schema whose rows are numbered consecutively from 0."""

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        self._parts: list[pa.Table] = []
        self._starts: list[int] = []
        self.count = 0
        for table in tables:
            self.add(table)

    def add(self, rows: pa.Table) -> np.ndarray:
        """Adds rows and returns their numbers."""
        start = self.count
        self._starts.append(start)
        self._parts.append(rows)
        self.count += rows.num_rows
        return np.arange(start, self.count)

    def all(self) -> pa.Table:
        return pa.concat_tables(self._parts)

    def values(self, name: str, numbers: np.ndarray) -> pa.ChunkedArray:
        """The values of a column in the rows with these numbers; null where a number is negative."""
        column = pa.chunked_array([chunk for part in self._parts for chunk in part.column(name).chunks])
        return column.take(pa.array(numbers, mask=numbers < 0))

    def gather(self, numbers: np.ndarray) -> pa.Table:
        """The rows with these numbers, in this order."""
        if len(numbers) == 0:
            return self._parts[0].slice(0, 0)
        parts = np.searchsorted(self._starts, [numbers.min(), numbers.max()], side="right") - 1
        if parts[0] == parts[1]:
            return _taken(self._parts[parts[0]], numbers - self._starts[parts[0]])
        return _taken(self.all(), numbers)


def _taken(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """The rows in that order; not copied where they are consecutive, as in a load of new keys."""
    if rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return table.slice(int(rows[0]), len(rows))
    return table.take(pa.array(rows))


def key_numbers(key: Sequence[str], *tables: pa.Table) -> np.ndarray:
    """A dense number per distinct key, for every row of the tables, one after another.

    Keys are compared by their hashes, which sort many times faster, unless different keys share a hash.
    """
    parts = [encode_keys(rows, key) for rows in tables]
    keys = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    hashes = hash_keys(keys)
    order = ascending_order(hashes)
    equals_previous = np.append(False, np.diff(hashes[order]) == 0) if len(order) else np.zeros(0, dtype=bool)
    repeats = np.flatnonzero(equals_previous)
    one, other = (keys.take(pa.array(order[at])) for at in (repeats, repeats - 1))
    if pc.all(pc.equal(one, other)).as_py() is False:
        codes = keys.combine_chunks().dictionary_encode()
        return np.asarray(codes.indices).astype(np.int64)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(~equals_previous) - 1
    return numbers


def occurrence_numbers(rows: pa.Table, current_rows: int) -> np.ndarray:
    """Substitutes for keys where there are no keys: a dense number per row value and occurrence.

    The n-th of equal current rows and the n-th of equal incoming rows get the same number.
    """
    codes = row_codes(rows)
    occurrences = np.concatenate([occurrences_of(codes[:current_rows]), occurrences_of(codes[current_rows:])])
    _, numbers = np.unique(codes * (len(codes) + 1) + occurrences, return_inverse=True)
    return numbers.astype(np.int64)


def occurrences_of(codes: np.ndarray) -> np.ndarray:
    """By code, the number of equal codes before it (int64). Codes are not negative."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    occurrences = np.empty(len(codes), dtype=np.int64)
    occurrences[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    return occurrences
