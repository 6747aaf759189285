"""Rebases the files of a table service on rows that were deleted since it started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import FrozenBitMap

from app.infra.files.deletion_vector_file import VectorReader, write_vectors
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.storage import Storage
from app.infra.identifiers import random_hex
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.rebase import Rewritten, rebased
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.deletion_vector import positions_of, positions_set
from app.kernel.format.paths import Folder, written_path
from app.kernel.format.rows.meta_columns import META_FIELDS, META_NAMES, OFFSET_COLUMN, resolved

_EMPTY_BITMAP = FrozenBitMap()


@dataclass(frozen=True, slots=True)
class RebaseFiles:
    """Adds deletion vectors for rows that were deleted since to the files of a rewrite."""

    storage: Storage

    def rebase(
        self, task: MergeTask, message: CommitMessage, live: Mapping[str, DataFile], attempt: str
    ) -> CommitMessage | None:
        """The result of the task, as if the rows that the `live` files by path have lost had been deleted before it
        started.

        `live`: the current entries of the files that the task rewrote; one without an entry has lost all its rows, as
        far as they are not in other files now. Large vectors go to a file of the `attempt`. The task keeps all rows.
        None if it has changed their order and they have no known offsets, which would identify them, if deleted rows
        are live again, or if tombstones have ended since. Raises CorruptFile, StorageFull.
        """
        reader = VectorReader(self.storage)
        if any(_has_changed(file, live) for file in task.files if not file.kind.holds_rows):
            return None
        rewritten = [
            Rewritten(file=file, before=_gone(reader, file), now=_now(reader, file, live.get(file.path)))
            for file in task.files
            if file.kind.holds_rows
        ]
        row_files = [file for file in message.added if file.kind.holds_rows]
        if any((each.before or _EMPTY_BITMAP) - (each.now or _EMPTY_BITMAP) for each in rewritten):
            return None
        if task.cluster is None:
            deleted_positions = rebased(rewritten, row_files)
        else:
            moved_positions = self._moved(rewritten, row_files)
            if moved_positions is None:
                return None
            deleted_positions = moved_positions
        bitmaps = {path: positions_set(positions) for path, positions in deleted_positions.items()}
        rows = {file.path: file.row_count for file in message.added}
        # A file without live rows is not listed.
        empty_paths = {path for path, positions in bitmaps.items() if len(positions) == rows[path]}
        vector_bitmaps = {path: positions for path, positions in bitmaps.items() if path not in empty_paths}
        name = written_path(task.data_prefix, Folder.DELETES, task.slot, attempt, random_hex(4))
        vectors = write_vectors(self.storage, name, vector_bitmaps)
        new_files = [
            msgspec.structs.replace(file, deletion_vector=vectors.get(file.path))
            for file in message.added
            if file.path not in empty_paths
        ]
        removed_paths = tuple(path for path in message.removed if path in live)
        return msgspec.structs.replace(message, removed=removed_paths, added=tuple(new_files))

    def _moved(
        self, rewritten: Sequence[Rewritten], new_files: Sequence[DataFile]
    ) -> Mapping[str, npt.NDArray[np.int64]] | None:
        """By path of the written files, the positions of deleted rows: those with the same offsets in the feed."""
        reader = ParquetReader(self.storage)
        deleted_offsets = [
            _offsets(
                reader, each.file, positions_of((each.now or _EMPTY_BITMAP) - (each.before or _EMPTY_BITMAP))
            )
            for each in rewritten
        ]
        all_offsets = np.concatenate([np.zeros(0, dtype=np.int64), *deleted_offsets])
        if (all_offsets < 0).any():
            return None
        positions_by_path = {
            file.path: np.flatnonzero(np.isin(_offsets(reader, file), all_offsets)) for file in new_files
        }
        if sum(len(positions) for positions in positions_by_path.values()) != len(all_offsets):
            return None
        return {path: positions for path, positions in positions_by_path.items() if len(positions)}


def _has_changed(file: DataFile, live: Mapping[str, DataFile]) -> bool:
    now = live.get(file.path)
    return now is None or now.deletion_vector != file.deletion_vector


def _offsets(
    reader: ParquetReader, file: DataFile, positions: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """The offsets of the changes that gave these rows of a file (all, if None) their values; -1 if unknown."""
    if positions is not None and not len(positions):
        return np.zeros(0, dtype=np.int64)
    column = pa.schema([META_FIELDS[META_NAMES.index(OFFSET_COLUMN)]])
    rows = resolved(
        reader.read_slice(file, column, 0, file.row_count), file.written_version, file.first_offset
    )
    offsets: npt.NDArray[np.int64] = pc.fill_null(rows.column(OFFSET_COLUMN), -1).to_numpy()
    return offsets if positions is None else offsets[positions]


def _now(reader: VectorReader, file: DataFile, live: DataFile | None) -> FrozenBitMap | None:
    return FrozenBitMap(range(file.row_count)) if live is None else _gone(reader, live)


def _gone(reader: VectorReader, file: DataFile) -> FrozenBitMap | None:
    return None if file.deletion_vector is None else reader.read(file.deletion_vector)
