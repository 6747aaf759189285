"""Data files, from their rows."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import func

from app.core.timeline.tables import files
from app.kernel.format.file_group import DataFile, FileKind, Slot, halved_slot

_STORED: Final = (
    "path", "size_bytes", "checksum", "row_count", "schema_id", "file_group", "partition_path", "bucket",
    "statistics", "kind", "added_version", "written_at", "first_offset",
    "deletion_vector", "index_file", "clustered_by", "layout",
)  # fmt: skip
FILE_COLUMNS: Final = (
    *(files.c[name] for name in _STORED),
    func.coalesce(files.c.written_version, files.c.added_version).label("written_version"),
)
_NAMES: Final = tuple(column.name for column in FILE_COLUMNS)


def data_file(row: Any) -> DataFile:
    """The file in a row of FILE_COLUMNS, and of others behind them."""
    values = dict(zip(_NAMES, row, strict=False))
    path, bucket = values.pop("partition_path"), values.pop("bucket")
    slot = halved_slot(row.file_group) or Slot(partition_path=path, bucket=bucket)
    return DataFile(slot=slot, **values | {"kind": FileKind(row.kind)})
