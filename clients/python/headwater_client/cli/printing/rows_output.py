"""The forms in which rows are printed, one by one or as Arrow data."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Group, Parameter

from headwater_client.arrow import ArrowData, required
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.printing.output import (
    LONG_VALUES,
    LongText,
    cell_of,
    cell_text,
    encoded,
    on_terminal,
    plain,
    print_array,
    print_table,
    put,
    put_csv,
)

if TYPE_CHECKING:
    import pyarrow as pa

RowForm = Literal["table", "json", "ndjson", "csv", "arrow", "parquet"]
_GROUP: Final = Group("Output", sort_key=90)
_BINARY: Final = ("arrow", "parquet")
TABLE_ROWS: Final = 100
"""How many rows a table has by default."""
_EXTRA: Final = "cli"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RowOutput:
    """In which form a command prints rows."""

    output: Annotated[RowForm | None, Parameter(name=("--output", "-o"), group=_GROUP)] = None
    """By default a table on a terminal, and a line of JSON for each row elsewhere. arrow is an IPC stream."""

    @property
    def form(self) -> RowForm:
        """The form. Raises CommandError for bytes that a terminal would show."""
        if self.output in _BINARY and on_terminal():
            raise CommandError(
                f"{self.output} is binary: send it to a file, for example > rows.{self.output}",
                ExitCode.USAGE,
            )
        return self.output or ("table" if on_terminal() else "ndjson")

    @property
    def is_binary(self) -> bool:
        """Whether rows are printed as Arrow data: `print_tables` instead of `print_rows`."""
        return self.form in _BINARY

    def print_rows(
        self, rows: Iterable[Mapping[str, Any]], names: Callable[[], Sequence[str]], *, limit: int | None
    ) -> None:
        """Prints rows; of a table without `limit` the first ones, with a note if there are more.

        `names`: of the columns, for a result without rows.
        """
        bound = TABLE_ROWS if limit is None and self.form == "table" else limit
        found = iter(rows)
        shown = found if bound is None else islice(found, bound)
        match self.form:
            case "json":
                print_array(map(encoded, shown))
            case "csv":
                first = next(shown, None)
                put_csv(shown if first is None else chain([first], shown), None if first else names())
            case "table":
                _print_rows(list(shown), names)
                if limit is None and next(found, None) is not None:
                    sys.stderr.write(f"The first {bound} rows. --limit shows more.\n")
            case _:
                for row in shown:
                    put(f"{encoded(row)}\n")

    def print_tables(self, tables: Iterable[ArrowData], *, limit: int | None) -> None:
        """Prints pages of Arrow data as an IPC stream or as a Parquet file."""
        pages = (table.to_arrow() for table in tables)
        bounded = pages if limit is None else _first(pages, limit)
        (_write_stream if self.form == "arrow" else _write_parquet)(bounded)


ROW_OUTPUT: Final = RowOutput()
"""What no flag chooses."""


def _print_rows(rows: list[Mapping[str, Any]], names: Callable[[], Sequence[str]]) -> None:
    heading = list(rows[0]) if rows else names()
    cells = [[row.get(name) for name in heading] for row in rows]
    shown = [[_shown(cell) for cell in row] for row in cells]
    print_table(heading, shown)
    if any(isinstance(cell, LongText) for row in shown for cell in row):
        sys.stderr.write(LONG_VALUES)


def _shown(value: Any) -> Any:
    cell = plain(value)
    text = cell_of(cell_text(cell))
    return text if isinstance(text, LongText) else cell


def _first(pages: Iterable[pa.Table], limit: int) -> Iterator[pa.Table]:
    for page in pages:
        yield page.slice(0, limit)
        limit -= page.num_rows
        if limit <= 0:
            return


def _write_stream(pages: Iterable[pa.Table]) -> None:
    found = iter(pages)
    first = next(found)
    ipc = required("pyarrow.ipc", extra=_EXTRA)
    with _Sink() as sink, ipc.new_stream(sink, first.schema) as writer:
        for page in chain([first], found):
            writer.write_table(page)


def _write_parquet(pages: Iterable[pa.Table]) -> None:
    found = iter(pages)
    first = next(found)
    parquet = required("pyarrow.parquet", extra=_EXTRA)
    with _Sink() as sink, parquet.ParquetWriter(sink, first.schema) as writer:
        for page in chain([first], found):
            writer.write_table(page)


class _Sink(io.RawIOBase):
    """The standard output, which stays open when the writer closes this."""

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return sys.stdout.buffer.write(content)

    def flush(self) -> None:
        with suppress(BrokenPipeError):
            sys.stdout.buffer.flush()
