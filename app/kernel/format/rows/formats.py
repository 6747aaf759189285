"""The formats of input rows, and their media types."""

from __future__ import annotations

from email.message import Message
from enum import Enum
from typing import Final, Protocol

from app.kernel.format.errors import UnsupportedMediaType


class Source(Protocol):
    """A seekable binary file: an open one of Python's or of Arrow's."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def tell(self) -> int: ...


class Format(str, Enum):
    """The format of an input's rows. `json_rows` is one JSON array of row objects."""

    JSON_ROWS = "json_rows"
    NDJSON = "ndjson"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"

    @classmethod
    def from_content_type(cls, content_type: str) -> Format:
        """The format that a Content-Type header names. Checks the parameters.

        `application/json` is not among them: there the rows are a member of a larger document.
        Raises UnsupportedMediaType, which lists the supported media types.
        """
        header = Message()
        header["Content-Type"] = content_type
        media_type = header.get_content_type() if "/" in content_type else ""
        row_format = MEDIA_TYPES.get(media_type)
        if row_format is None:
            raise UnsupportedMediaType(
                f"rows cannot be read from {content_type!r}; send one of {', '.join(MEDIA_TYPES)}",
                accepted=list(MEDIA_TYPES),
            )
        charset = str(header.get_param("charset", "utf-8")).lower()
        if row_format in {cls.NDJSON, cls.CSV} and charset not in {"utf-8", "utf8", "us-ascii"}:
            raise UnsupportedMediaType(f"text must be UTF-8, not {charset}", accepted=list(MEDIA_TYPES))
        if row_format is cls.CSV and header.get_param("header", "present") != "present":
            raise UnsupportedMediaType(
                "CSV needs a header line that names the columns", accepted=list(MEDIA_TYPES)
            )
        return row_format


MEDIA_TYPES: Final[dict[str, Format]] = {
    "application/x-ndjson": Format.NDJSON,
    "application/ndjson": Format.NDJSON,
    "application/jsonl": Format.NDJSON,
    "application/x-jsonlines": Format.NDJSON,
    "text/csv": Format.CSV,
    "application/vnd.apache.arrow.stream": Format.ARROW,
    "application/vnd.apache.arrow.file": Format.ARROW,
    "application/vnd.apache.parquet": Format.PARQUET,
}
