"""Rows that are joined by key, in parts that fit into memory.

Rows are buffered in memory while they fit. Otherwise they are split by the hash of their keys over files in a scratch
folder: equal keys are in the same part, and one part at a time is returned.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

HashFunction = Callable[[pa.Table], np.ndarray]
_PARTS_MAX: Final = 256
# A merge has its rows in memory several times: as buffered, in its pool, and as its result.
_COPIES: Final = 4
_OPTIONS: Final = ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpilledPart:
    """The rows of some keys; None for a side without rows."""

    live: pa.Table | None = None
    incoming: pa.Table | None = None
    tombstones: pa.Table | None = None


_SIDES: Final = tuple(field.name for field in fields(SpilledPart))


class SpillBuffer(AbstractContextManager["SpillBuffer"]):
    """The sides of a merge: live rows, incoming rows and tombstones, each in the order in which it was added."""

    def __init__(
        self,
        hashes: HashFunction,
        *,
        memory_bytes: int,
        expected_rows: int,
        scratch: Path | None,
        form: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:
        """`hashes` returns uint64 per row. `scratch`: the folder of the parts, the system's default if None. `form`:
        adds the columns that only some of the incoming tables have, at places of their own.
        """
        self._hashes = hashes
        self._form = form
        self._budget_bytes = max(memory_bytes // _COPIES, 1)
        self._expected_rows = expected_rows
        self._scratch = scratch
        self._sides: dict[str, list[pa.Table]] = {side: [] for side in _SIDES}
        self._bytes = self._rows = 0
        self._parts: _Parts | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._parts is not None:
            self._parts.close()

    @property
    def spilled(self) -> bool:
        """Whether the rows did not fit into memory."""
        return self._parts is not None

    def add_live(self, rows: pa.Table) -> None:
        self._add("live", rows)

    def add_incoming(self, rows: pa.Table) -> None:
        self._add("incoming", rows)

    def add_tombstones(self, rows: pa.Table) -> None:
        self._add("tombstones", rows)

    def _add(self, side: str, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        if self._parts is not None:
            self._write(side, rows)
            return
        self._sides[side].append(rows)
        self._bytes += rows.nbytes
        self._rows += rows.num_rows
        if self._bytes > self._budget_bytes:
            self._spill()

    def _spill(self) -> None:
        expected_bytes = self._bytes * max(self._expected_rows / self._rows, 1)
        count = min(max(math.ceil(expected_bytes / self._budget_bytes) + 1, 2), _PARTS_MAX)
        self._parts = _Parts(count, self._scratch)
        for side, tables in self._sides.items():
            for rows in tables:
                self._write(side, rows)
            tables.clear()

    def _write(self, side: str, rows: pa.Table) -> None:
        assert self._parts is not None
        # All rows of a file have the same columns.
        whole = self._form(rows) if side == "incoming" and self._form is not None else rows
        self._parts.add(side, whole, self._hashes(rows))

    def parts(self) -> Iterator[SpilledPart]:
        """The rows of each part."""
        if self._parts is None:
            yield SpilledPart(**{side: _joined(tables) for side, tables in self._sides.items() if tables})
            return
        yield from self._parts.read()


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of the rows; null where a table lacks a column."""
    return pa.concat_tables(tables, promote_options="default")


class _Parts:
    """Temporary files: one per part and side."""

    def __init__(self, count: int, scratch: Path | None) -> None:
        self._count = count
        self._stack = ExitStack()
        if scratch is not None:
            scratch.mkdir(parents=True, exist_ok=True)
        self._folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="spill-", dir=scratch))
        )
        self._writers: dict[tuple[str, int], ipc.RecordBatchStreamWriter] = {}

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._stack.close()

    def add(self, side: str, rows: pa.Table, hashes: np.ndarray) -> None:
        # The low bits already determine the bucket.
        parts = ((hashes >> np.uint64(32)) % np.uint64(self._count)).astype(np.int64)
        for part in np.unique(parts):
            part_rows = rows.filter(pa.array(parts == part))
            self._writer(side, int(part), rows.schema).write_table(part_rows)

    def _writer(self, side: str, part: int, schema: pa.Schema) -> ipc.RecordBatchStreamWriter:
        writer = self._writers.get((side, part))
        if writer is None:
            writer = ipc.new_stream(str(self._path(side, part)), schema, options=_OPTIONS)
            self._writers[side, part] = writer
        return writer

    def _path(self, side: str, part: int) -> Path:
        return self._folder / f"{side}-{part}.arrows"

    def read(self) -> Iterator[SpilledPart]:
        for writer in self._writers.values():
            writer.close()
        side_parts = set(self._writers)
        self._writers.clear()
        for part in range(self._count):
            sides = {side: self._one(side, part) for side in _SIDES if (side, part) in side_parts}
            if sides:
                yield SpilledPart(**sides)

    def _one(self, side: str, part: int) -> pa.Table:
        path = self._path(side, part)
        with ipc.open_stream(pa.OSFile(str(path))) as reader:
            table = reader.read_all()
        path.unlink()
        return table
