"""Scans of changelog files for the changes that a reader requests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.changelog.change_selection import ChangeSelection
from app.kernel.changelog.changelog_run import ChangelogRun, FileRange
from app.kernel.format.file_group import StoredFile
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op, complete_pairs, without_hidden_halves
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.tree import Filter

# The minimum cost of a read, in changes, because a file must be opened.
_SCANNED_MIN: Final = 1024
# The number of changes that bounds exclude in the time in which one change is read.
_RULED_OUT: Final = 64

_Offsets = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


class ChangelogReader(Protocol):
    """Reads changelog files and verifies that they are the files that were written."""

    def read_slice(
        self,
        file: StoredFile,
        schema: pa.Schema,
        first_row: int,
        rows: int,
        *,
        bytes_max: int | None = None,
    ) -> pa.Table:
        """Rows [first_row, first_row + rows) of a file, under a schema of the dataset, with columns matched by field
        id.

        `bytes_max`: the rows may end, after at least one, where they have this size. The types of the schema hold all
        values of the file. Raises CorruptFile.
        """
        ...

    def row_ranges(
        self, file: StoredFile, where: Filter, schema: Schema, first_row: int, rows: int
    ) -> list[tuple[int, int]]:
        """The parts of the rows [first_row, first_row + rows) that may match: [first, end) of each row group, in order.

        `schema`: the schema of the filter, whatever schema the file was written under. Raises CorruptFile.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanResult:
    """The changes found, by offset, the offset that the scan ended before, and its cost, in changes."""

    changes: pa.Table
    end: int
    cost: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangelogScan:
    """Finds changes in their emitted order."""

    reader: ChangelogReader
    selection: ChangeSelection

    def find(
        self,
        run: ChangelogRun,
        first: int,
        last: int,
        *,
        lower: int,
        upper: int,
        bytes_max: int | None = None,
    ) -> ScanResult:
        """The selected ones of the changes with offsets [first, last) of a run.

        Includes the other half of a pair, as far as it is in [lower, upper). `bytes_max`: the scan may end before
        `last`, after at least one change, once it has read this number of bytes. Raises SchemaMismatch, CorruptFile.
        """
        ranges = self._ranges(run, first, last)
        changes, end = self._found(
            run,
            ranges,
            last,
            max(lower, run.first_offset),
            min(upper, run.end_offset),
            sys.maxsize if bytes_max is None else bytes_max,
        )
        read = sum(max(0, min(each.end, end) - each.start) for each in ranges)
        return ScanResult(
            changes=changes,
            end=end,
            cost=max(read + (end - first - read) // _RULED_OUT, _SCANNED_MIN),
        )

    def splits_pair(self, run: ChangelogRun, position: int) -> bool:
        """Whether the position is between a -C and its +C, which are adjacent in one segment."""
        segment = run.segment_at(position)
        if not segment.first_offset < position < segment.end_offset:
            return False
        before = segment.row_of(position - 1)
        ops = self.reader.read_slice(segment.file, pa.schema([OP_FIELD]), before, 2).column(OP_COLUMN)
        return bool(ops.to_pylist() == [Op.CORRECT_FROM, Op.CORRECT_TO])

    def _ranges(self, run: ChangelogRun, first: int, last: int) -> list[FileRange]:
        """The ranges that may have selected changes."""
        segments = [segment for segment in run.segments if not self.selection.rules_out(segment.file)]
        ranges = ChangelogRun(segments).ranges(first, last)
        where, schema = self.selection.where, self.selection.schema
        if where is None:
            return list(ranges)
        return [
            each.part(start, end)
            for each in ranges
            for start, end in self.reader.row_ranges(
                each.file, where, schema, each.first_row, each.end - each.start
            )
        ]

    def _found(
        self,
        run: ChangelogRun,
        ranges: list[FileRange],
        last: int,
        lower: int,
        upper: int,
        bytes_max: int,
    ) -> tuple[pa.Table, int]:
        """The changes found, and the offset that the scan ended before: `last`, unless it has read `bytes_max`."""
        parts, masks, places = [], [], []
        wide = len(self.selection.stored_schema()) >= 2 * len(self.selection.deciding_schema())
        rare = False
        schema = self.selection.stored_schema()
        for each in ranges:
            # If all parts of a file have selected changes, a search costs more than it saves.
            if rare and wide and not self._any_chosen(run, each):
                continue
            parts.append(self._read_columns(run, each, schema, bytes_max=bytes_max))
            read_to = each.start + parts[-1].num_rows
            masks.append(self.selection.chosen(parts[-1]))
            places.append(np.arange(each.start, read_to, dtype=np.int64))
            rare = not masks[-1].any()
            bytes_max -= parts[-1].nbytes
            if read_to < each.end or bytes_max <= 0:
                last = read_to
                break
        if not parts:
            return self.selection.changes_schema().empty_table(), last
        rows, mask, offsets = pa.concat_tables(parts), np.concatenate(masks), np.concatenate(places)
        lacking = _lacking(offsets, _ops(rows), mask, lower, upper)
        if len(lacking):
            rows = pa.concat_tables([rows, *(self.read(run, at, at + 1) for at in lacking)])
            offsets = np.concatenate([offsets, lacking])
            mask = np.concatenate([mask, np.zeros(len(lacking), dtype=np.bool_)])
            order = np.argsort(offsets)
            rows, offsets, mask = rows.take(pa.array(order)), offsets[order], mask[order]
        mask = complete_pairs(offsets, _ops(rows), mask)
        visible = self.selection.visible(rows)
        if visible is not None:
            # A pair of which one half is hidden is an append or a retraction for the reader.
            ops = without_hidden_halves(offsets, _ops(rows), visible)
            mask &= visible
            rows = rows.set_column(rows.schema.get_field_index(OP_COLUMN), OP_FIELD, pa.array(ops))
        if not mask.all():
            rows, offsets = rows.filter(pa.array(mask)), offsets[mask]
        return self.selection.changes(rows, run, offsets), last

    def _any_chosen(self, run: ChangelogRun, among: FileRange) -> bool:
        """Whether some of these changes are selected; reads only the columns that determine this."""
        deciding = self._read_columns(run, among, self.selection.deciding_schema())
        return bool(self.selection.chosen(deciding).any())

    def read(self, run: ChangelogRun, start: int, end: int, *, also: Sequence[str] = ()) -> pa.Table:
        """The stored changes [start, end) of a run, with the selected columns and the columns `also`.

        Raises SchemaMismatch, CorruptFile.
        """
        schema = self.selection.stored_schema(also)
        return pa.concat_tables(self._read_columns(run, each, schema) for each in run.ranges(start, end))

    def _read_columns(
        self, run: ChangelogRun, among: FileRange, schema: pa.Schema, *, bytes_max: int | None = None
    ) -> pa.Table:
        rows = self.reader.read_slice(
            among.file, schema, among.first_row, among.end - among.start, bytes_max=bytes_max
        )
        try:
            return self.selection.fitted(rows)
        except pa.ArrowInvalid as error:
            segment = run.segment_at(among.start)
            written = (
                f"changes of version {segment.version} were written under schema {segment.file.schema_id} and"
            )
            raise self.selection.does_not_fit(written, error, since=segment.file.schema_id) from error


def _ops(rows: pa.Table) -> npt.NDArray[np.uint8]:
    ops: npt.NDArray[np.uint8] = rows.column(OP_COLUMN).to_numpy()
    return ops


def _lacking(offsets: _Offsets, ops: npt.NDArray[np.uint8], mask: _Mask, lower: int, upper: int) -> _Offsets:
    """The offsets in [lower, upper) of halves of pairs that were not read, though the other half is selected."""
    jumps = np.diff(offsets) > 1
    first, last = np.append(True, jumps), np.append(jumps, True)
    before = offsets[first & mask & (ops == Op.CORRECT_TO)] - 1
    behind = offsets[last & mask & (ops == Op.CORRECT_FROM)] + 1
    lacking = np.unique(np.concatenate([before, behind]))
    return lacking[(lacking >= lower) & (lacking < upper)]
