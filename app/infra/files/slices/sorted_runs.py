"""Sorts more rows than fit into memory: sorted runs on storage, and ranges of them in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

import pyarrow as pa
import pyarrow.ipc as ipc

from app.infra.files.checksums import HashingSink, buffered
from app.infra.files.errors import CorruptFile
from app.infra.files.storage import Storage
from app.infra.outages import fault_of_disk
from app.kernel.sql.read_order import (
    ReadOrder,
    RunRange,
    RunSlice,
    SortedRun,
    first_keys,
    in_order,
    order_of_range,
)

_OPTIONS: Final = ipc.IpcWriteOptions(compression="lz4")
# A range reads at most one extra batch at each of its ends in each run.
_BATCH_BYTES: Final = 256 * 1024
_BATCH_ROWS_MAX: Final = 8 * 1024
# The rows are in memory as buffered, with their keys, and as sorted.
_COPIES: Final = 4
_STEP_ROWS: Final = 64 * 1024


def run_bytes(memory_bytes: int) -> int:
    """The bytes of rows that can be sorted at once with this memory."""
    return max(memory_bytes // _COPIES, 1)


class RunWriter(AbstractContextManager["RunWriter"]):
    """Sorts rows. Returns them if they fit into memory, else writes runs `{prefix}-{n}.arrow`.

    On an exception, no file is left.
    """

    def __init__(
        self,
        storage: Storage,
        prefix: str,
        order: Sequence[ReadOrder],
        *,
        memory_bytes: int,
        limit: int | None = None,
    ) -> None:
        """`limit`: the number of rows to keep, the first in the order."""
        self._storage = storage
        self._prefix = prefix
        self._order = order
        self._bytes_max = run_bytes(memory_bytes)
        self._limit = limit
        self._gathered: list[pa.Table] = []
        self._bytes = 0
        self._runs: list[SortedRun] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._storage.delete([run.path for run in self._runs])

    def add(self, rows: pa.Table) -> None:
        """Adds rows. Raises StorageFull."""
        self._gathered.append(rows)
        self._bytes += rows.nbytes
        if self._bytes < self._bytes_max:
            return
        if self._limit is not None:
            self._gathered = [self._sorted()]
            self._bytes = self._gathered[0].nbytes
        if self._bytes > self._bytes_max // 2:
            self._flush()

    def rows(self) -> pa.Table | None:
        """All added rows, sorted; None if they did not fit into memory, or without rows."""
        return None if self._runs or not self._gathered else self._sorted()

    def finish(self) -> tuple[SortedRun, ...]:
        """All added rows, as runs. Raises StorageFull."""
        self._flush()
        return tuple(self._runs)

    def _sorted(self) -> pa.Table:
        return in_order(pa.concat_tables(self._gathered), self._order, limit=self._limit)

    def _flush(self) -> None:
        if not self._gathered:
            return
        rows = self._sorted()
        self._gathered, self._bytes = [], 0
        if rows.num_rows:
            self._runs.append(self._write(rows))

    def _write(self, rows: pa.Table) -> SortedRun:
        path = f"{self._prefix}-{len(self._runs):05d}.arrow"
        row_bytes = max(rows.nbytes // rows.num_rows, 1)
        batch_rows = min(max(_BATCH_BYTES // row_bytes, 1), _BATCH_ROWS_MAX)
        with (
            self._storage.create(path) as file,
            buffered(HashingSink(file)) as out,
            ipc.new_file(out, rows.schema, options=_OPTIONS) as writer,
        ):
            writer.write_table(rows.combine_chunks(), max_chunksize=batch_rows)
        return SortedRun(
            path=path,
            row_count=rows.num_rows,
            batch_rows=batch_rows,
            memory_bytes=rows.nbytes,
            keys=first_keys(rows, self._order, batch_rows),
        )


def range_rows(storage: Storage, run_range: RunRange, order: Sequence[ReadOrder]) -> Iterator[pa.Table]:
    """The rows of a range in order, all in memory at once. Raises CorruptFile."""
    batches = [batch for part in run_range.slices for batch in _batches(storage, part)]
    if not batches:
        return
    row_numbers = order_of_range(batches, order, run_range)
    rows = pa.concat_tables([table for _, _, table in batches]).combine_chunks()
    del batches
    for start in range(0, len(row_numbers), _STEP_ROWS):
        yield rows.take(pa.array(row_numbers[start : start + _STEP_ROWS]))


def _batches(storage: Storage, part: RunSlice) -> Iterator[tuple[RunSlice, int, pa.Table]]:
    try:
        reader = ipc.open_file(storage.open(part.path))
        for number in range(part.first_batch, part.end_batch):
            yield part, number, pa.Table.from_batches([reader.get_batch(number)])
    except (pa.ArrowInvalid, OSError) as error:
        raise fault_of_disk(error, part.path) or CorruptFile(
            f"{part.path} does not have the written contents: {error}", path=part.path
        ) from error
