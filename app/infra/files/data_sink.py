"""The files that a task writes: data files, each of the target size, and the changelog of the file group."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import TracebackType
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.infra.files.lookups.hot_copy import CopyWriter, HotCopies
from app.infra.files.lookups.key_index_file import KEPT_ROWS_MIN, write_index
from app.infra.files.parquet_file import (
    BASE_ROW_GROUP_ROWS,
    CHANGELOG_ROW_GROUP_ROWS,
    CLUSTERED_ROW_GROUP_ROWS,
    SHARED_ROW_GROUP_ROWS,
    ParquetSink,
    create_parquet,
)
from app.infra.files.statistics import column_statistics
from app.infra.files.storage import Storage
from app.kernel.changelog.corrections import CorrectedBounds
from app.kernel.commit.merge.outcome import appends
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import ChangelogFile, DataFile, FileKind, IndexFile, IndexKind, Slot
from app.kernel.format.index.key_hash import Hashes, hash_keys
from app.kernel.format.index.key_index import BloomFilter, KeyIndex
from app.kernel.format.paths import Folder
from app.kernel.format.rows.file_columns import LAYOUT
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, OFFSET_COLUMN
from app.kernel.format.rows.record_key import encode_keys

_ROW_GROUP_ROWS_MIN: Final = 256
SMALL_CHANGES_BYTES: Final = 16 * 1024 * 1024
"""Changes of a file group of up to this size, in memory, may share a changelog file with those of other groups."""
# A relative offset below this is already relative to the first change of the commit.
_COUNTED: Final = 2**62


class DataSink(AbstractContextManager["DataSink"]):
    """Data files of one file group, by slot. On an exception, or after `discard`, no file is left.

    A file of rows that are all new, in the order of their changes, may be their changelog file too: then it also has
    the columns of changes, and is an entry of `changelog`.
    """

    def __init__(
        self,
        storage: Storage,
        dataset: DatasetDefinition,
        *,
        file_group: str,
        path_of: Callable[[Folder, Slot], str],
        schema: pa.Schema,
        kind: FileKind = FileKind.BASE,
        index: IndexKind | None = None,
        copies: HotCopies | None = None,
        clustered_by: str | None = None,
    ) -> None:
        """`path_of` returns the path of a new file. `schema`: of the rows. `index`: the kind of key index of each file.

        `copies` keeps a hot copy of each file, for writes that soon look up rows in it. `clustered_by`: the mark of the
        order of the rows.
        """
        self._clustered_by = clustered_by
        self._copies = copies
        self._storage = storage
        self._dataset = dataset
        self._file_group = file_group
        self._path_of = path_of
        self._schema = schema
        self._kind = kind
        self._index = index
        self._open: dict[Slot, _OpenDataFile] = {}
        self._files: list[DataFile] = []
        self._changelog: list[ChangelogFile] = []

    @property
    def is_empty(self) -> bool:
        """Whether no row was written."""
        return not self._open and not self._files

    @property
    def changelog(self) -> tuple[ChangelogFile, ...]:
        """The changelog files among the finished files, in the order of their changes."""
        return tuple(self._changelog)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def write(self, slot: Slot, rows: pa.Table) -> None:
        """Adds rows to the slot's file. A new file starts when it has the target size."""
        self._write(slot, rows, None, changes=False)

    def write_changes(self, slot: Slot, rows: pa.Table, key_hashes: Hashes | None = None) -> None:
        """Adds rows whose appends are the first changes of the task, in this order; not to be combined with `write`.

        `key_hashes`: of the keys of the rows, if they are known.
        """
        self._write(slot, rows, key_hashes, changes=True)

    def _write(self, slot: Slot, rows: pa.Table, key_hashes: Hashes | None, *, changes: bool) -> None:
        start = 0
        while start < rows.num_rows:
            file = self._open.get(slot) or self._begin(slot, rows, changes=changes)
            if file.changes is not changes:
                raise ValueError(f"{file.sink.path} has either only rows of changes or none")
            # One row group at a time: the size of a group is only known after it is written.
            step = rows.slice(start, file.sink.row_group_rows)
            # A hot copy has the schema of its rows, and its columns are matched by their ids, as in the file.
            file.write(pa.Table.from_arrays(step.columns, schema=self._schema))
            if self._index is not None:
                file.hashes.append(
                    hash_keys(encode_keys(step, self._dataset.record_key))
                    if key_hashes is None
                    else key_hashes[start : start + step.num_rows]
                )
            start += step.num_rows
            if file.sink.written_bytes >= self._dataset.target_bytes:
                self._end(slot)

    def _begin(self, slot: Slot, rows: pa.Table, *, changes: bool) -> _OpenDataFile:
        path = self._path_of(Folder.DATA, slot)
        # Row groups of wide rows have fewer rows, or one group could exceed the size of a file.
        fitting = self._dataset.target_bytes * rows.num_rows // max(rows.nbytes, 1)
        if self._clustered_by is not None:
            most = CLUSTERED_ROW_GROUP_ROWS
        else:
            most = SHARED_ROW_GROUP_ROWS if changes else BASE_ROW_GROUP_ROWS
        creation = create_parquet(
            self._storage,
            path,
            appends(self._schema.empty_table()).schema if changes else self._schema,
            row_group_rows=min(max(fitting, _ROW_GROUP_ROWS_MIN), most),
            compression=self._dataset.compression,
        )
        # Few files of a load are looked up soon, and their copies would displace those of other tables.
        copy = nullcontext() if self._copies is None or changes else self._copies.creating(path)
        file = self._open[slot] = _OpenDataFile(creation, copy, changes=changes)
        return file

    def finish(self) -> tuple[DataFile, ...]:
        """Closes the open files and returns all files, which are kept."""
        for slot in list(self._open):
            self._end(slot)
        files, self._files = tuple(self._files), []
        return files

    def discard(self) -> None:
        """Deletes all files that `finish` has not returned."""
        for file in self._open.values():
            file.drop()
        self._open.clear()
        self._storage.delete([path for file in self._files for path in file.paths])
        self._files.clear()
        self._changelog.clear()

    def _end(self, slot: Slot) -> None:
        file = self._open.pop(slot)
        file.sink.finish()
        file.stack.close()
        stored_file = file.sink.stored(self._dataset.schema.id)
        self._files.append(
            DataFile(
                **msgspec.structs.asdict(stored_file),
                file_group=self._file_group,
                slot=slot,
                kind=self._kind,
                statistics=column_statistics(file.sink.metadata[0], self._dataset.schema),
                index_file=self._index_file(slot, file),
                clustered_by=self._clustered_by,
                layout=LAYOUT,
            )
        )
        if file.changes:
            self._changelog.append(
                ChangelogFile(**msgspec.structs.asdict(stored_file), file_group=self._file_group)
            )

    def _index_file(self, slot: Slot, file: _OpenDataFile) -> IndexFile | None:
        # The keys of a small file are read as fast as an index of them is opened.
        if self._index is None or file.sink.rows < KEPT_ROWS_MIN:
            return None
        path = self._path_of(Folder.INDEX, slot)
        kind = KeyIndex if self._index is IndexKind.RECORD else BloomFilter
        return write_index(self._storage, path, kind.of_hashes(np.concatenate(file.hashes)))


class _OpenDataFile:
    """An open data file, its hot copy, and the key hashes of its rows."""

    def __init__(
        self,
        creation: AbstractContextManager[ParquetSink],
        copying: AbstractContextManager[CopyWriter | None],
        *,
        changes: bool,
    ) -> None:
        self.changes = changes
        self.stack = ExitStack()
        self.copy = self.stack.enter_context(copying)
        self.sink = self.stack.enter_context(creation)
        self.hashes: list[np.ndarray] = []

    def write(self, rows: pa.Table) -> None:
        self.sink.write(appends(rows) if self.changes else rows)
        if self.copy is not None:
            self.copy.write(rows)

    def drop(self) -> None:
        """Deletes the file and its copy."""
        discard = _DiscardDataFile()
        self.stack.__exit__(_DiscardDataFile, discard, None)


class _DiscardDataFile(Exception):
    """Aborts the creation of a file."""


class ChangelogSink(AbstractContextManager["ChangelogSink"]):
    """The changelog file of a commit message; no file without changes. `rows` is the number of rows written."""

    def __init__(
        self,
        storage: Storage,
        dataset: DatasetDefinition,
        *,
        file_group: str,
        path_of: Callable[[], str],
    ) -> None:
        self._storage = storage
        self._dataset = dataset
        self._file_group = file_group
        self._path_of = path_of
        self._stack = ExitStack()
        self._sink: ParquetSink | None = None
        self._corrected = CorrectedBounds()
        self.rows = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def write(self, changes: pa.Table) -> None:
        """Adds changes in feed order. Offsets within them are relative to the first of them."""
        if changes.num_rows == 0:
            return
        # Some groups of a file have changes as they were sent, where a deleted row has only its key.
        changes = changes.cast(pa.schema([field.with_nullable(True) for field in changes.schema]))
        if self._sink is None:
            self._sink = self._stack.enter_context(
                create_parquet(
                    self._storage,
                    self._path_of(),
                    changes.schema,
                    row_group_rows=CHANGELOG_ROW_GROUP_ROWS,
                    compression=self._dataset.compression,
                )
            )
        shifted_changes = shifted(changes, CORRECTS_COLUMN, self.rows)
        self._corrected.add(shifted_changes.column(CORRECTS_COLUMN))
        self._sink.write(shifted_changes)
        self.rows += changes.num_rows

    def finish(self) -> tuple[ChangelogFile, ...]:
        """Closes the file."""
        if self._sink is None:
            return ()
        self._sink.finish()
        self._stack.close()
        stored_file = self._sink.stored(self._dataset.schema.id)
        return (
            ChangelogFile(
                **msgspec.structs.asdict(stored_file),
                file_group=self._file_group,
                corrects_min=self._corrected.minimum,
                corrects_max=self._corrected.maximum,
            ),
        )


class ChangesSection(AbstractContextManager["ChangesSection"]):
    """The changes of one file group, to be part of a file that several groups share: a `ChangelogSink` to its task.

    Many changes become a file of their own. `first_change`: the row of the shared file at which the changes begin; None
    without changes there.
    """

    def __init__(self, shared_sink: ChangelogSink, own_sink: ChangelogSink) -> None:
        """`own_sink`: where many changes go."""
        self._shared = shared_sink
        self._own = own_sink
        self._kept: list[pa.Table] = []
        self._kept_bytes = 0
        self._rows = 0
        self.first_change: int | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._own.__exit__(kind, error, trace)

    @property
    def rows(self) -> int:
        """The number of rows written."""
        return self._rows

    def write(self, changes: pa.Table) -> None:
        """Adds changes in feed order. Offsets within them are relative to the first of them."""
        if changes.num_rows == 0:
            return
        self._rows += changes.num_rows
        self._kept.append(changes)
        self._kept_bytes += changes.nbytes
        if self._kept_bytes > SMALL_CHANGES_BYTES or self._own.rows:
            self._flush(self._own)

    def finish(self) -> tuple[ChangelogFile, ...]:
        """Adds the changes to the shared file. Returns the file of their own, if there is one."""
        if self._own.rows:
            return self._own.finish()
        if self._kept:
            self.first_change = self._shared.rows
            self._flush(self._shared)
        return ()

    def _flush(self, sink: ChangelogSink) -> None:
        for changes in self._kept:
            sink.write(changes)
        self._kept.clear()
        self._kept_bytes = 0


def shifted(rows: pa.Table, column: str, by: int) -> pa.Table:
    """The rows with relative offsets shifted by `by` changes."""
    if by == 0 or column not in rows.column_names:
        return rows
    offsets = rows.column(column)
    relative = pc.and_(pc.less(offsets, 0), pc.greater_equal(offsets, -_COUNTED))
    new_offsets = pc.if_else(relative, pc.subtract(offsets, pa.scalar(by, pa.int64())), offsets)
    return _with_offsets(rows, column, _uncounted(new_offsets))


def counted(rows: pa.Table) -> pa.Table:
    """New rows whose offsets are already relative to the commit's first change, marked so that they are not shifted
    again.

    Later parts of the same task may change rows whose changes were already written.
    """
    offsets = rows.column(OFFSET_COLUMN)
    marked_offsets = pc.if_else(
        pc.less(offsets, 0), pc.subtract(offsets, pa.scalar(_COUNTED, pa.int64())), offsets
    )
    return _with_offsets(rows, OFFSET_COLUMN, marked_offsets)


def uncounted(rows: pa.Table) -> pa.Table:
    """The rows without the mark, as they are stored."""
    return _with_offsets(rows, OFFSET_COLUMN, _uncounted(rows.column(OFFSET_COLUMN)))


def _uncounted(offsets: pa.ChunkedArray) -> pa.ChunkedArray:
    mask = pc.less(offsets, -_COUNTED)
    return pc.if_else(mask, pc.add(offsets, pa.scalar(_COUNTED, pa.int64())), offsets)


def _with_offsets(rows: pa.Table, column: str, offsets: pa.ChunkedArray) -> pa.Table:
    at = rows.schema.get_field_index(column)
    return rows.set_column(at, rows.schema.field(at), offsets)


def at_offset(rows: pa.Table, by: int | None) -> pa.Table:
    """New rows whose changes start at change `by` of the commit; None: no change has them."""
    if by is not None:
        return shifted(rows, OFFSET_COLUMN, by)
    offsets = rows.column(OFFSET_COLUMN)
    known_offsets = pc.if_else(pc.less(offsets, 0), pa.scalar(None, pa.int64()), offsets)
    return _with_offsets(rows, OFFSET_COLUMN, known_offsets)
