"""The formats of files that rows are given away in."""

from __future__ import annotations

from enum import Enum
from typing import Final


class FileFormat(str, Enum):
    """How a file is written; also what its name ends with."""

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
