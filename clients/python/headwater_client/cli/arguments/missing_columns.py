"""The columns that rows of a file lack."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, Final, cast

import msgspec

from headwater_client.cli.arguments.input_file import RowsFile

_ROWS_MAX: Final = 1_000
_LINE_BYTES_MAX: Final = 1024 * 1024


def missing_columns(content: RowsFile, columns: Sequence[str]) -> list[str]:
    """Those of `columns` that one of the first 1,000 rows lacks, in their order.

    Only the text formats are read: the result is empty for Arrow and Parquet.
    """
    if content.format not in ("ndjson", "csv"):
        return []
    opened = cast("IO[bytes]", gzip.GzipFile(content.path)) if content.gzip else content.path.open("rb")
    with opened as file:
        lines = iter(lambda: file.readline(_LINE_BYTES_MAX), b"")
        rows = _header(lines) if content.format == "csv" else _members(lines)
        found = list(rows)
    return [name for name in columns if any(name not in row for row in found)]


def _header(lines: Iterator[bytes]) -> Iterator[Iterable[str]]:
    yield from csv.reader([next(lines, b"").decode("utf-8-sig", errors="replace")])


def _members(lines: Iterator[bytes]) -> Iterator[Iterable[str]]:
    """The names of each row. Lines that are no objects are left out: the service says what is wrong with them."""
    rows = map(_row, islice(lines, _ROWS_MAX))
    return (row for row in rows if row is not None)


def _row(line: bytes) -> Iterable[str] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
