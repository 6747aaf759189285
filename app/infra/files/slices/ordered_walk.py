"""The first rows of a table in an order, without sorting the table: files that may have them, the likeliest first.

Statistics of partitions, files and row groups say which of them have no row before the last one that was found. An
order that statistics do not fit, such as one by a column of few values, reads everything that the filter selects, up to
the limits below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.infra.files.errors import OrderTooLarge
from app.infra.files.slices.table_walk import PAGE_BYTES_MAX, GroupReader, RowPlace, RowSelection
from app.kernel.commit.read_plan import GroupScan
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import ColumnStatistics, DataFile, FileKind
from app.kernel.format.index.column_bounds import comparable_bound
from app.kernel.format.partition.members import column_of
from app.kernel.format.partition.statistics import partition_statistics
from app.kernel.format.rows.row_sizes import row_bytes
from app.kernel.paging import unknown_token
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.order_sides import all_of, at_or_after, at_or_before
from app.kernel.sql.conditions.prune import RowFilter, may_match
from app.kernel.sql.conditions.tree import Filter
from app.kernel.sql.read_order import ReadOrder

LISTED_FILES_MAX: Final = 20_000
"""The most files of which a request compares the statistics."""
FILES_MAX: Final = 256
"""The most files that a request opens."""
ROWS_MAX: Final = 2 * 1024 * 1024
"""The most rows that a request reads."""
_BYTES_MAX: Final = 512 * 1024 * 1024
# As many as a row group has at most: it is decoded whole in any case.
_STEP_ROWS: Final = 128 * 1024
# The place of a row: its file group, and its number there. The number is doubled, so that a mark can lie behind a row.
_RANK: Final = "rank"
_GROUP: Final = "group"
_ROW: Final = "row"

_Statistics = Mapping[str, ColumnStatistics]

RowRanks = Callable[[str, npt.NDArray[np.int64]], npt.NDArray[np.uint64]]
"""Where rows come among those that are equal in an order: of a file group, by their numbers in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderedRows:
    """Rows of a page, in order. `last`: the place of the last of them if others follow; else None."""

    rows: pa.Table
    last: RowPlace | None


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderedWalk:
    """Reads pages of rows in an order. `bytes_max`: the most bytes of rows on a page, unless it has one."""

    groups: GroupReader
    bytes_max: int = PAGE_BYTES_MAX

    def page(
        self,
        selection: RowSelection,
        scans: Iterable[GroupScan],
        order: Sequence[ReadOrder],
        after: RowPlace | None,
        limit: int,
        ranks: RowRanks | None = None,
    ) -> OrderedRows:
        """At most `limit` selected rows, in order; rows that are equal in it, by their `ranks`, then by their places.

        `scans`: the plan, by file group. `order`: fields, and members of structs as of a key, of the columns that the
        selection reads. `after`: the place of the last row of the page before.

        Raises OrderTooLarge, CorruptFile, InvalidRequest if there is no row at `after`.
        """
        groups = _listed(scans)
        firsts = _FirstRows(
            schema=selection.read, order=order, names=[each.file_group for each in groups], limit=limit,
            bytes_max=self.bytes_max, ranks=ranks,
        )  # fmt: skip
        behind = None
        if after is not None:
            behind = self._start(selection, groups, order, after, firsts)
        budget = _Budget()
        for part in _likeliest_first(selection.definition, groups, order[0]):
            definition, target = selection.definition, all_of([behind, firsts.bound(selection.definition)])
            if target is not None and not part.may_have(target, definition):
                continue
            budget.open(part.files)
            self._read(selection, part, behind, firsts, budget)
        return firsts.page()

    def _start(
        self,
        selection: RowSelection,
        groups: Sequence[GroupScan],
        order: Sequence[ReadOrder],
        after: RowPlace,
        firsts: _FirstRows,
    ) -> Filter | None:
        """Has only rows behind a place found. Returns a filter that all of these match, if there is one."""
        scan = next((each for each in groups if each.file_group == after.file_group), None)
        row = None
        if scan is not None:
            row = self.groups.read_group(
                selection.definition, scan.files, selection.read, after.row, 1, self.bytes_max
            )
        if row is None or not row.num_rows:
            raise unknown_token()
        firsts.begin_behind(row, after)
        return at_or_after(selection.definition.schema, order[0], _value(row, order[0]))

    def _read(
        self, selection: RowSelection, part: _Part, behind: Filter | None, firsts: _FirstRows, budget: _Budget
    ) -> None:
        definition = selection.definition
        ranges: Iterable[tuple[int, int | None]] = [(part.first, part.end)]
        target = all_of([selection.where, behind, firsts.bound(definition)])
        if target is not None:
            row_filter = RowFilter(where=target, schema=definition.schema)
            ranges = self.groups.row_ranges(part.scan.files, row_filter, part.first, part.end)
        for start, end in ranges:
            first = start
            while end is None or first < end:
                step = _STEP_ROWS if end is None else min(_STEP_ROWS, end - first)
                rows = self.groups.read_group(
                    definition, part.scan.files, selection.read, first, step, self.bytes_max
                )
                if not rows.num_rows:
                    break
                budget.spend(rows)
                numbers = selection.chosen(rows)
                bound = all_of([behind, firsts.bound(definition)])
                if bound is not None:
                    numbers = numbers[matches(bound, rows)[numbers]]
                firsts.add(rows, numbers, part.scan.file_group, first)
                first += rows.num_rows
                if end is None and rows.num_rows < step and rows.nbytes < self.bytes_max:
                    break


@dataclass(kw_only=True, slots=True)
class _Budget:
    """What a request has read."""

    files: int = 0
    rows: int = 0
    size: int = 0

    def open(self, files: int) -> None:
        """Counts files that are about to be opened. Raises OrderTooLarge."""
        self.files += files
        self._check()

    def spend(self, rows: pa.Table) -> None:
        """Counts rows that were read. Raises OrderTooLarge."""
        self.rows += rows.num_rows
        self.size += rows.nbytes
        self._check()

    def _check(self) -> None:
        if self.files > FILES_MAX or self.rows > ROWS_MAX or self.size > _BYTES_MAX:
            raise _too_large(f"more than {FILES_MAX} files or {ROWS_MAX:,} rows would be read")


@dataclass(kw_only=True, slots=True)
class _FirstRows:
    """The first rows, of those that were added: one more than the limit, as far as their bytes have room."""

    schema: pa.Schema
    order: Sequence[ReadOrder]
    names: Sequence[str]
    limit: int
    bytes_max: int
    ranks: RowRanks | None
    # Rows and their keys; the keys are also those of rows that are still to be sorted in.
    _rows: list[pa.Table] = field(default_factory=list)
    _keys: list[pa.Table] = field(default_factory=list)
    _waiting: tuple[int, int] = (0, 0)
    _mark: pa.Table | None = None
    # Whether rows were found behind those that are kept, and whether no more are kept.
    _more: bool = False
    _full: bool = False
    _bound: Filter | None = None
    _bound_value: Any = None

    def begin_behind(self, row: pa.Table, place: RowPlace) -> None:
        """Only rows behind this one count."""
        mark = self._keys_of(row, np.array([place.row]), place.file_group)
        at = mark.schema.get_field_index(_ROW)
        self._mark = mark.set_column(at, _ROW, pc.add(mark.column(at), 1))

    def bound(self, definition: DatasetDefinition) -> Filter | None:
        """A filter that excludes rows that are behind the last row which is kept; None while others are wanted."""
        if not self._full:
            return None
        value = _value(self._rows[0].slice(self._rows[0].num_rows - 1), self.order[0])
        if self._bound is None or value != self._bound_value:
            self._bound = at_or_before(definition.schema, self.order[0], value)
            self._bound_value = value
        return self._bound

    def add(self, rows: pa.Table, numbers: npt.NDArray[np.int64], group: str, first: int) -> None:
        """Rows with these numbers. `first`: the number of the first of the rows in its file group."""
        if not len(numbers):
            return
        part_rows = rows if len(numbers) == rows.num_rows else rows.take(pa.array(numbers))
        self._rows.append(part_rows)
        self._keys.append(self._keys_of(part_rows, first + numbers, group))
        count, size = self._waiting
        self._waiting = count + part_rows.num_rows, size + part_rows.nbytes
        if self._waiting[0] > self.limit or self._waiting[1] >= self.bytes_max:
            self._sort()

    def page(self) -> OrderedRows:
        """The rows of the page."""
        self._sort()
        rows = self._rows[0] if self._rows else self.schema.empty_table()
        count = min(rows.num_rows, self.limit)
        if count == rows.num_rows and not self._more:
            return OrderedRows(rows=rows, last=None)
        keys = self._keys[0].slice(count - 1, 1)
        place = RowPlace(
            file_group=self.names[keys.column(_GROUP)[0].as_py()], row=keys.column(_ROW)[0].as_py() // 2
        )
        return OrderedRows(rows=rows.slice(0, count), last=place)

    def _sort(self) -> None:
        if not self._waiting[0]:
            return
        rows, keys = pa.concat_tables(self._rows), pa.concat_tables(self._keys)
        indices = self._sorted(keys)
        heads = indices[: self.limit + 1]
        rows_in_order = rows.take(pa.array(heads)).combine_chunks()
        sizes = np.cumsum(row_bytes(rows_in_order, with_names=True))
        # A row that fits no page is a page of its own.
        fits = max(int(np.searchsorted(sizes, self.bytes_max, side="right")), 1)
        cut = fits < len(heads)
        self._more = self._more or cut or len(heads) < len(indices)
        self._full = self._full or cut or len(heads) == self.limit + 1
        self._rows = [rows_in_order.slice(0, fits)]
        self._keys = [keys.take(pa.array(heads[:fits])).combine_chunks()]
        self._waiting = 0, 0

    def _sorted(self, keys: pa.Table) -> npt.NDArray[np.int64]:
        """The indexes of the rows behind the mark, in order."""
        if self._mark is not None:
            keys = pa.concat_tables([self._mark, keys])
        by = [
            *((f"k{number}", "descending" if key.descending else "ascending") for number, key in
              enumerate(self.order)),
            *([] if self.ranks is None else [(_RANK, "ascending")]),
            (_GROUP, "ascending"),
            (_ROW, "ascending"),
        ]  # fmt: skip
        indices: npt.NDArray[np.int64] = pc.sort_indices(keys, sort_keys=by).to_numpy().astype(np.int64)
        if self._mark is None:
            return indices
        behind = int(np.flatnonzero(indices == 0)[0]) + 1
        return indices[behind:] - 1

    def _keys_of(self, rows: pa.Table, numbers: npt.NDArray[np.int64], group: str) -> pa.Table:
        columns = {f"k{number}": column_of(rows, key.column) for number, key in enumerate(self.order)}
        if self.ranks is not None:
            columns[_RANK] = pa.array(self.ranks(group, numbers), pa.uint64())
        place = np.full(rows.num_rows, self.names.index(group), dtype=np.int64)
        return pa.table({**columns, _GROUP: pa.array(place), _ROW: pa.array(2 * numbers, pa.int64())})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """Live rows [first, end) of a file group: those of a base file, or of a group with logs, whose end is None.

    `statistics`: what is known of all its rows. `rows`: how many are stored. `files`: how many files have them.
    """

    scan: GroupScan
    first: int
    end: int | None
    statistics: Sequence[_Statistics]
    rows: int
    files: int = 1

    def may_have(self, target: Filter, definition: DatasetDefinition) -> bool:
        """Whether one of the rows may be wanted."""
        return all(may_match(target, each, definition.schema, self.rows) for each in self.statistics)


def _listed(scans: Iterable[GroupScan]) -> list[GroupScan]:
    groups, files = [], 0
    for scan in scans:
        groups.append(scan)
        files += len(scan.files)
        if files > LISTED_FILES_MAX:
            raise _too_large(f"more than {LISTED_FILES_MAX:,} files may have the rows")
    return groups


def _likeliest_first(
    definition: DatasetDefinition, groups: Sequence[GroupScan], key: ReadOrder
) -> Iterator[_Part]:
    """The parts of the groups by their first possible value; those without one, or without bounds, last."""
    column = definition.schema.field(key.column)
    by_value: list[tuple[Any, _Part]] = []
    others: list[_Part] = []
    for scan in groups:
        for part in _parts(definition, scan):
            bounds = [each[str(column.id)] for each in part.statistics if str(column.id) in each]
            ends = [each.maximum if key.descending else each.minimum for each in bounds]
            values = [comparable_bound(each, column.data_type()) for each in ends if each is not None]
            values = [each for each in values if each is not None]
            if values:
                # All of them hold.
                by_value.append((min(values) if key.descending else max(values), part))
            else:
                others.append(part)
    by_value.sort(key=lambda each: each[0], reverse=key.descending)
    yield from (part for _, part in by_value)
    yield from others


def _parts(definition: DatasetDefinition, scan: GroupScan) -> Iterator[_Part]:
    if any(file.kind is FileKind.LOG for file in scan.files):
        # The values of rows in logs are only known after the merge, and a group may have rows of several partitions.
        paths = {file.slot.partition_path for file in scan.files}
        bounds = _of_partition(definition, scan.files[0]) if len(paths) == 1 else {}
        rows = sum(file.row_count for file in scan.files)
        yield _Part(scan=scan, first=0, end=None, statistics=[bounds], rows=rows, files=len(scan.files))
        return
    first = 0
    for file in scan.files:
        end = first + file.live_rows
        if file.live_rows and _is_scanned(scan, first):
            bounds = _of_partition(definition, file)
            yield _Part(
                scan=scan, first=first, end=end, statistics=[bounds, file.statistics], rows=file.row_count
            )
        first = end


def _of_partition(definition: DatasetDefinition, file: DataFile) -> _Statistics:
    return partition_statistics(file.slot.partition_path, definition.partition_by, definition.schema)


def _is_scanned(scan: GroupScan, row: int) -> bool:
    """Whether the plan has the file whose first live row this is; no range of a plan ends within a file."""
    return any(first <= row and (end is None or row < end) for first, end in scan.row_ranges)


def _value(row: pa.Table, key: ReadOrder) -> Any:
    return column_of(row, key.column)[0].as_py()


def _too_large(reason: str) -> OrderTooLarge:
    return OrderTooLarge(
        f"too many rows may be the first in this order: {reason}. Start a read job (POST …/reads) with the same "
        "order_by and limit, select fewer rows by where or partitions, or cluster the dataset by the column",
        files_max=FILES_MAX,
        rows_max=ROWS_MAX,
    )
