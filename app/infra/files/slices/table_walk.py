"""Walks over the rows of a table at one version: a page of selected rows at a time, from any place on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.commit.read_plan import GroupScan
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.rows.row_sizes import row_bytes
from app.kernel.sql.conditions.prune import RowFilter
from app.kernel.sql.conditions.tree import Filter

PAGE_BYTES_MAX: Final = 32 * 1024 * 1024
# The most rows that a page scans. A page whose filter selects few of them ends there.
SCANNED_ROWS_MAX: Final = 256 * 1024
# And the most bytes: the same for wide rows.
SCANNED_BYTES_MAX: Final = 64 * 1024 * 1024
# As many as a row group has at most: it is decoded whole in any case.
_STEP_ROWS: Final = 128 * 1024
# The number of scanned rows that a smaller read counts as, because it opens a file.
_READ_ROWS_MIN: Final = 1024

_Numbers = npt.NDArray[np.int64]


class GroupReader(Protocol):
    """Reads the rows of file groups as readers see them."""

    def read_group(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        schema: pa.Schema,
        first_row: int,
        rows: int,
        bytes_max: int,
    ) -> pa.Table:
        """Live rows [first_row, first_row + rows) of a file group, logs merged in: fewer where it ends, and fewer, but
        at least one, of `bytes_max` bytes or more.

        `files`: the group's, in order of their commits. `schema`: columns of the dataset, stored meta columns, and
        those derived of the file. Rows have the same numbers each time. Raises CorruptFile.
        """
        ...

    def row_ranges(
        self, files: Sequence[DataFile], row_filter: RowFilter, first_row: int, end: int | None
    ) -> Iterable[tuple[int, int | None]]:
        """Ranges [first, end) of live rows [first_row, end) of a group that may have matching rows, in order.

        An end of None is that of the group. A file that was opened but has no such rows yields an empty range. Files
        are opened one by one, as the ranges are consumed. Raises CorruptFile.
        """
        ...


class RowSelection(Protocol):
    """The selected rows, and the columns to read of them."""

    @property
    def definition(self) -> DatasetDefinition:
        """The dataset, under the schema of the rows."""
        ...

    @property
    def read(self) -> pa.Schema:
        """The columns to read."""
        ...

    @property
    def where(self) -> Filter | None:
        """A filter that excludes row groups by their bounds; None for no filter."""
        ...

    @property
    def selects(self) -> bool:
        """Whether rows that are read may not be selected."""
        ...

    def chosen(self, rows: pa.Table) -> _Numbers:
        """The numbers of the selected rows."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RowPlace:
    """A place among the rows of a version: a live row of a file group. Groups are ordered by name."""

    file_group: str = ""
    row: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class WalkedRows:
    """Rows of a page. `places`: by file group, in order, the numbers of its live rows (int64), of all rows in order.

    `following`: the place to continue at; None if no row is left to scan.
    """

    rows: pa.Table
    places: Sequence[tuple[str, _Numbers]]
    following: RowPlace | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableWalk:
    """Reads pages of rows. `bytes_max`: the most bytes of rows on a page, unless it has one."""

    groups: GroupReader
    bytes_max: int = PAGE_BYTES_MAX

    def page(
        self, selection: RowSelection, scans: Iterable[GroupScan], place: RowPlace, limit: int
    ) -> WalkedRows:
        """At most `limit` selected rows from a place on, in the order of the groups and of their rows.

        `scans`: the plan from the group of the place on, in this order, which is iterated no further than the page
        needs.
        A page also ends before `bytes_max` bytes, and after `SCANNED_ROWS_MAX` scanned rows or `SCANNED_BYTES_MAX`
        scanned bytes, however few rows are selected. Raises CorruptFile.
        """
        tables = [selection.read.empty_table()]
        places: list[tuple[str, _Numbers]] = []
        room, scanned_rows, scanned_bytes, room_bytes = limit, 0, 0, self.bytes_max

        def ended_at(following: RowPlace | None) -> WalkedRows:
            return WalkedRows(rows=pa.concat_tables(tables), places=places, following=following)

        for scan, start, end in self._ranges_from(selection, scans, place):
            first = start
            while True:
                if scanned_rows >= SCANNED_ROWS_MAX or scanned_bytes >= SCANNED_BYTES_MAX or room_bytes <= 0:
                    return ended_at(RowPlace(file_group=scan.file_group, row=first))
                # One row more than there is room for shows whether another page follows.
                step_rows = _STEP_ROWS if selection.selects else room + 1
                step_rows = step_rows if end is None else min(step_rows, end - first)
                rows = self.groups.read_group(
                    selection.definition, scan.files, selection.read, first, step_rows, self.bytes_max
                )
                numbers = selection.chosen(rows)
                part = _taken(rows, numbers)
                sizes = np.cumsum(row_bytes(part, with_names=True))
                fits = min(room, int(np.searchsorted(sizes, room_bytes, side="right")))
                if len(numbers) > fits:
                    # A row that fits no page is a page of its own.
                    fits = fits or int(room == limit)
                    tables.append(part.slice(0, fits))
                    places.append((scan.file_group, first + numbers[:fits]))
                    if len(numbers) > fits:
                        return ended_at(RowPlace(file_group=scan.file_group, row=first + int(numbers[fits])))
                    room_bytes = 0
                else:
                    tables.append(part)
                    places.append((scan.file_group, first + numbers))
                    room_bytes -= int(sizes[-1]) if len(sizes) else 0
                room -= len(numbers)
                scanned_rows += max(rows.num_rows, _READ_ROWS_MIN)
                scanned_bytes += rows.nbytes
                first += rows.num_rows
                # A read ends early where its rows have `bytes_max` bytes. Otherwise no row is left.
                at_end = not rows.num_rows or (rows.num_rows < step_rows and rows.nbytes < self.bytes_max)
                if at_end or first == end:
                    break
        return ended_at(None)

    def _ranges_from(
        self, selection: RowSelection, scans: Iterable[GroupScan], place: RowPlace
    ) -> Iterator[tuple[GroupScan, int, int | None]]:
        """The row ranges after a place, without those that the bounds of row groups exclude."""
        for scan, start, end in _planned_from(scans, place):
            if selection.where is None:
                yield scan, start, end
                continue
            row_filter = RowFilter(where=selection.where, schema=selection.definition.schema)
            for first, stop in self.groups.row_ranges(scan.files, row_filter, start, end):
                yield scan, first, stop


def _planned_from(scans: Iterable[GroupScan], place: RowPlace) -> Iterator[tuple[GroupScan, int, int | None]]:
    """The row ranges of the plan after a place."""
    for scan in scans:
        first_row = place.row if scan.file_group == place.file_group else 0
        for first, end in scan.row_ranges:
            if end is None or end > first_row:
                yield scan, max(first, first_row), end


def _taken(rows: pa.Table, numbers: _Numbers) -> pa.Table:
    if len(numbers) == 0 or int(numbers[-1]) == len(numbers) - 1:
        return rows.slice(0, len(numbers))
    mask = np.zeros(rows.num_rows, dtype=np.bool_)
    mask[numbers] = True
    return rows.filter(pa.array(mask))
