"""Changes of a feed as Parquet files."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clients.export.values import FeedRange
from headwater_client import DamagedDownload, Dataset, Headwater

PAGE_CHANGES: Final = 10_000
FILE_BYTES: Final = 256 * 1024 * 1024
_GROUP_ROWS: Final = 128 * 1024
_GROUP_BYTES: Final = 64 * 1024 * 1024


def write_changes(
    client: Headwater, dataset: Dataset, wanted: FeedRange, path: Path
) -> tuple[FeedRange, int]:
    """Writes changes from the start of a range on to a file. Returns the range that the file has, and its changes.

    The file ends with the range, at about `FILE_BYTES`, or before rows of another schema. Raises Problem,
    DamagedDownload.
    """
    position, changes = wanted.since, 0
    pages = client.change_tables(dataset, since=wanted.since, limit=PAGE_CHANGES)
    with ExitStack() as stack:
        stack.enter_context(closing(pages))
        writer: _GroupWriter | None = None
        for page in pages:
            table = page.table
            # The first column is the offset, whatever its name is.
            table = table.slice(0, pc.sum(pc.less(table.column(0), wanted.next_since)).as_py() or 0)
            if writer is None:
                writer = stack.enter_context(_GroupWriter(path, table.schema))
            elif not writer.schema.equals(table.schema):
                break
            writer.write(table)
            changes += table.num_rows
            position = min(int(page.next_since), wanted.next_since)
            if position == wanted.next_since or path.stat().st_size >= FILE_BYTES:
                break
    if position == wanted.since:
        raise DamagedDownload(f"the feed of {dataset.name} ends before {wanted.next_since}")
    return FeedRange(since=wanted.since, next_since=position), changes


class _GroupWriter:
    """Writes tables to a file in row groups of a bounded size."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._tables: list[pa.Table] = []

    def __enter__(self) -> _GroupWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()

    def write(self, table: pa.Table) -> None:
        self._tables.append(table)
        rows = sum(each.num_rows for each in self._tables)
        if rows >= _GROUP_ROWS or sum(each.nbytes for each in self._tables) >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._tables:
            self._writer.write_table(pa.concat_tables(self._tables))
            self._tables = []
