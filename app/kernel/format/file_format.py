"""The formats of exported and read files, and how files are compressed."""

from __future__ import annotations

from enum import Enum
from typing import Final


class FileFormat(str, Enum):
    """How a file is encoded; the value is also its file name extension."""

    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"
    ARROW = "arrow"
    JSON = "json"

    @property
    def media_type(self) -> str:
        """The media type of such a file; text is UTF-8."""
        return _MEDIA_TYPES[self]


_MEDIA_TYPES: Final = {
    FileFormat.PARQUET: "application/vnd.apache.parquet",
    FileFormat.CSV: "text/csv",
    FileFormat.NDJSON: "application/x-ndjson",
    FileFormat.ARROW: "application/vnd.apache.arrow.file",
    FileFormat.JSON: "application/json",
}


class FileCompression(str, Enum):
    """How the columns of data files and changelog files are compressed."""

    ZSTD = "zstd"
    """The smallest files: zstd, and lz4 for numbers, dates and times, which are small once they are encoded."""
    LZ4 = "lz4"
    """Files that are read and written fastest: lz4 for all columns."""
