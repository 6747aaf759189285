"""Data files whose rows are in the order of a clustering."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Final

import numpy as np
import pyarrow as pa

from app.infra.files.data_sink import DataSink
from app.infra.files.parquet_file import ParquetReader, read_row_group, row_groups_with
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.sorted_runs import RunWriter, range_rows, run_bytes
from app.infra.files.storage import LocalStorage
from app.kernel.format.clustering import CURVE_FIELD, ClusterBy, Curve
from app.kernel.format.file_group import DataFile, Slot
from app.kernel.format.policies import ClusterOrder
from app.kernel.sql.read_order import ReadOrder, cut_ranges

_SLOT_FIELD: Final = pa.field("_hw_slot", pa.int32(), nullable=False)
_SAMPLED_GROUPS: Final = 32
_SAMPLED_ROWS: Final = 64 * 1024


class OrderedSink(AbstractContextManager["OrderedSink"]):
    """Sorts rows by slot, and passes those of each slot on in order. On an exception, no file is left.

    Rows that do not fit into memory go to sorted runs in a scratch folder, which are read range by range.
    """

    def __init__(self, sink: DataSink, by: ClusterBy, curve: Curve | None, memory: MemoryBudget) -> None:
        """`curve`: the curve that determines a row's place, or None."""
        self._sink = sink
        self._by = by
        self._curve = curve
        self._memory = memory
        self._slots: dict[Slot, int] = {}
        self._stack = ExitStack()
        self._runs: RunWriter | None = None
        names = [_SLOT_FIELD.name, *(by.columns if curve is None else [CURVE_FIELD.name])]
        self._order = [ReadOrder(column=name) for name in names]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._sink.discard()

    def write(self, slot: Slot, rows: pa.Table) -> None:
        """Adds rows of a slot. Raises StorageFull."""
        if rows.num_rows == 0:
            return
        at = self._slots.setdefault(slot, len(self._slots))
        if self._runs is None:
            self._begin()
        number = pa.repeat(pa.scalar(at, _SLOT_FIELD.type), rows.num_rows)
        run_rows = rows.append_column(_SLOT_FIELD, number)
        if self._curve is not None:
            run_rows = run_rows.append_column(CURVE_FIELD, self._curve.places(rows.select(self._by.columns)))
        assert self._runs is not None
        self._runs.add(run_rows)

    def _begin(self) -> None:
        if self._memory.scratch is not None:
            self._memory.scratch.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix="cluster-", dir=self._memory.scratch)
        self._scratch = LocalStorage(Path(self._stack.enter_context(folder)))
        self._runs = self._stack.enter_context(
            RunWriter(self._scratch, "run", self._order, memory_bytes=self._memory.bytes_max)
        )

    def finish(self) -> tuple[DataFile, ...]:
        """Writes the rows in order and returns the files, which are kept. Raises StorageFull."""
        if self._runs is not None:
            whole = self._runs.rows()
            for rows in self._of_runs(self._runs) if whole is None else [whole]:
                self._hand_on(rows)
        return self._sink.finish()

    def _of_runs(self, writer: RunWriter) -> Iterator[pa.Table]:
        runs = writer.finish()
        for run_range in cut_ranges(runs, self._order, bytes_max=run_bytes(self._memory.bytes_max)):
            yield from range_rows(self._scratch, run_range, self._order)

    def _hand_on(self, rows: pa.Table) -> None:
        slots = list(self._slots)
        numbers = rows.column(_SLOT_FIELD.name).to_numpy()
        sort_columns = [_SLOT_FIELD.name] if self._curve is None else [_SLOT_FIELD.name, CURVE_FIELD.name]
        rows = rows.drop_columns(sort_columns)
        starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, end in pairwise(starts):
            if start < end:
                self._sink.write(slots[int(numbers[start])], rows.slice(start, end - start))


def curve_through(
    reader: ParquetReader, files: Sequence[DataFile], by: ClusterBy, schema: pa.Schema
) -> Curve | None:
    """The Z-order curve of the rows of these files; None for another order. `schema`: of the dataset's columns.

    It is based on a sample: some rows of some row groups from all files. Raises CorruptFile.
    """
    if by.order is not ClusterOrder.Z_ORDER:
        return None
    columns = pa.schema([schema.field(name).with_nullable(True) for name in by.columns])
    groups = [(file, number) for file in files for number in row_groups_with(reader.open(file))]
    step = max(len(groups) // _SAMPLED_GROUPS, 1)
    samples = [columns.empty_table()]
    for file, number in groups[::step]:
        rows = read_row_group(reader.open(file), number, columns)
        stride = max(rows.num_rows * min(len(groups), _SAMPLED_GROUPS) // _SAMPLED_ROWS, 1)
        samples.append(rows.take(pa.array(np.arange(0, rows.num_rows, stride))))
    return Curve(pa.concat_tables(samples))
