"""Merges changelog files: the rows of several, in order and unchanged, in one file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from app.infra.files.parquet_file import CHANGELOG_ROW_GROUP_ROWS, ParquetReader, ParquetSink, create_parquet
from app.infra.files.storage import Storage
from app.kernel.format.file_format import FileCompression
from app.kernel.format.file_group import StoredFile
from app.kernel.format.rows.file_columns import as_stored, file_schema


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedChangelog:
    """A file with the rows of the first `inputs` of the files to merge."""

    file: StoredFile
    inputs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangelogMerger:
    """Writes the rows of changelog files to a new one. It begins to read no more files after `seconds_max` seconds."""

    storage: Storage
    reader: ParquetReader
    seconds_max: float = 20.0
    clock: Callable[[], float] = time.monotonic

    def merge(
        self, files: Sequence[StoredFile], path: str, compression: FileCompression
    ) -> MergedChangelog | None:
        """The new file; None, and no file is left, if fewer than two can be merged.

        A file that another release wrote with other columns ends the merged one. Files whose members have no ids merge
        with files where they have: the merged one has them if the last file has. Raises CorruptFile, StorageFull,
        StorageUnavailable.
        """
        deadline = self.clock() + self.seconds_max
        schema, inputs = self._schema(files), 0
        with create_parquet(
            self.storage,
            path,
            schema,
            row_group_rows=CHANGELOG_ROW_GROUP_ROWS,
            compression=compression,
        ) as sink:
            for file in files:
                parquet = self.reader.open(file)
                if not _are_same(file_schema(parquet.schema_arrow), schema):
                    break
                _copy(parquet, sink)
                inputs += 1
                if self.clock() >= deadline:
                    break
            if inputs < 2:
                return None
            sink.finish()
        return MergedChangelog(file=sink.stored(files[0].schema_id), inputs=inputs)

    def _schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        """The columns of the merged file: those of the last file if the first has the same."""
        first, last = (file_schema(self.reader.open(file).schema_arrow) for file in (files[0], files[-1]))
        return last if _are_same(first, last) else first


def _are_same(one: pa.Schema, other: pa.Schema) -> bool:
    """Whether both have the same columns with the same ids, whether or not members have ids, too."""
    return bool(one.equals(other)) and [each.metadata for each in one] == [each.metadata for each in other]


def _copy(parquet: pq.ParquetFile, sink: ParquetSink) -> None:
    for number in range(parquet.metadata.num_row_groups):
        sink.write(as_stored(parquet.read_row_group(number, use_threads=False), sink.schema))
