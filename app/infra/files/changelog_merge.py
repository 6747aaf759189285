"""Merges changelog files: the rows of several, in order and unchanged, in one file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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

        A file that another release wrote with other columns ends the merged one. Raises CorruptFile, StorageFull,
        StorageUnavailable.
        """
        deadline = self.clock() + self.seconds_max
        first = self.reader.open(files[0])
        schema, inputs = file_schema(first.schema_arrow), 0
        with create_parquet(
            self.storage,
            path,
            schema,
            row_group_rows=CHANGELOG_ROW_GROUP_ROWS,
            compression=compression,
        ) as sink:
            for file in files:
                parquet = self.reader.open(file)
                if not file_schema(parquet.schema_arrow).equals(schema, check_metadata=True):
                    break
                _copy(parquet, sink)
                inputs += 1
                if self.clock() >= deadline:
                    break
            if inputs < 2:
                return None
            sink.finish()
        return MergedChangelog(file=sink.stored(files[0].schema_id), inputs=inputs)


def _copy(parquet: pq.ParquetFile, sink: ParquetSink) -> None:
    for number in range(parquet.metadata.num_row_groups):
        sink.write(as_stored(parquet.read_row_group(number, use_threads=False), sink.schema))
