"""The forms in which commands print what the service returns: a table for people, and forms for programs."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec
from cyclopts import Group, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headwater_client.cli.printing.text import visible, visible_json

Item = TypeVar("Item")
Form = Literal["table", "json", "ndjson", "csv"]
_GROUP: Final = Group("Output", sort_key=90)
# Wide enough for every table: where no terminal breaks the lines, nothing else may.
_WIDTH: Final = 100_000
# A longer one would fill the terminal.
_CELL_CHARACTERS_MAX: Final = 1_000
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class Bytes(NamedTuple):
    """A number of bytes, which tables show in a larger unit."""

    number: int


class PlainNumber(int):
    """An integer that tables show without separators of thousands: a value of a row, which commands accept so."""


class TableColumn(NamedTuple, Generic[Item]):
    """A column of a table: its heading, and its cell for an item."""

    heading: str
    cell: Callable[[Item], object]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Output:
    """In which form a command prints."""

    output: Annotated[Form | None, Parameter(name=("--output", "-o"), group=_GROUP)] = None
    """By default a table on a terminal, and JSON elsewhere: a line for each item of a list."""

    def is_table(self) -> bool:
        """Whether people read what is printed."""
        return self.output == "table" or (self.output is None and on_terminal())

    def items(self, found: Iterable[Item], columns: Sequence[TableColumn[Item]]) -> None:
        """Prints a list."""
        match self.output or ("table" if self.is_table() else "ndjson"):
            case "table":
                rows = ([column.cell(item) for column in columns] for item in found)
                print_table([column.heading for column in columns], rows)
            case "json":
                print_array(map(encoded, found))
            case "ndjson":
                for item in found:
                    put(f"{encoded(item)}\n")
            case "csv":
                put_csv(map(builtins, found))

    def item(self, found: Any) -> None:
        """Prints one thing: in a table its members line by line, with the path of those that are in others."""
        form = self.output or ("table" if self.is_table() else "json")
        if form == "table":
            print_table(None, members(builtins(found)))
        elif form == "csv":
            put_csv([builtins(found)])
        elif form == "ndjson":
            put(f"{encoded(found)}\n")
        else:
            put(f"{msgspec.json.format(encoded(found), indent=2)}\n")

    def row(self, found: Mapping[str, Any]) -> None:
        """Prints a row of a dataset. Its numbers have no separators of thousands."""
        if self.is_table():
            print_table(None, [(name, plain(value)) for name, value in members(found)])
        else:
            self.item(found)

    def done(self, sentence: str, found: Any) -> None:
        """Prints what a command has done: a sentence for people, what the service returned for programs."""
        if self.is_table():
            print(visible(sentence, lines=True))
        else:
            self.item(found)


def on_terminal() -> bool:
    """Whether the output is a terminal."""
    return sys.stdout.isatty()


def in_colour() -> bool:
    """Whether colours are printed: on a terminal that has them, unless the environment has NO_COLOR."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def put(text: str) -> None:
    """Writes text that may have any characters; on a terminal none of them controls it."""
    sys.stdout.write(visible_json(text) if on_terminal() else text)


def encoded(item: Any) -> str:
    """The JSON of a value of the API, as the service sent it."""
    return msgspec.json.encode(item).decode()


def builtins(item: Any) -> Any:
    """The value as dictionaries, lists and texts, with the names that the API has."""
    return msgspec.json.decode(msgspec.json.encode(item))


def put_csv(items: Iterable[Mapping[str, Any]], names: Sequence[str] | None = None) -> None:
    """Writes CSV: values in values as JSON, null as nothing. `names`: of the columns, by default of the first item."""
    found = iter(items)
    first = next(found, None)
    names = names if names is not None else list(first or {})
    text = io.StringIO()
    if names:
        _write_line(text, names)
    for item in chain([] if first is None else [first], found):
        _write_line(text, [_field(item.get(name)) for name in names])
        _flush(text)
    _flush(text)


def _flush(text: io.StringIO) -> None:
    found = text.getvalue()
    sys.stdout.write(visible(found, lines=True) if on_terminal() else found)
    text.seek(0)
    text.truncate()


def _write_line(text: io.StringIO, values: Sequence[Any]) -> None:
    """A line of CSV, in which null is nothing, and an empty text is one in quotation marks."""
    for number, value in enumerate(values):
        text.write("," if number else "")
        if value == "":
            text.write('""')
        elif value is not None:
            csv.writer(text, lineterminator="").writerow([value])
    text.write("\n")


def _field(value: Any) -> Any:
    match value:
        case bool():
            return "true" if value else "false"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value


def print_array(items: Iterable[str]) -> None:
    """Prints a JSON array of encoded items, one on a line."""
    before = "["
    for item in items:
        put(f"{before}\n  {item}")
        before = ","
    put("[]\n" if before == "[" else "\n]\n")


def members(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """The members of a value with their paths, such as `rows.inserted`. Those that are null are left out."""
    for name, member in value.items():
        if isinstance(member, dict) and member:
            yield from members(member, f"{path}{name}.")
        elif member is not None and member not in ({}, []):
            yield f"{path}{name}", member


def print_table(heading: Sequence[str] | None, rows: Iterable[Sequence[object]]) -> None:
    """Prints rows as columns. Numbers are on the right; `-` stands for null."""
    found = [[_Cell.of(cell) for cell in row] for row in rows]
    width = len(heading) if heading is not None else max(map(len, found), default=0)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=heading is not None)
    for place in range(width):
        cells = [row[place] for row in found if row[place].is_number is not None]
        numeric = bool(cells) and all(cell.is_number for cell in cells)
        name = "" if heading is None else heading[place]
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in found:
        table.add_row(*(Text(cell.text) for cell in row))
    terminal = on_terminal()
    console = Console(file=sys.stdout, width=None if terminal else _WIDTH, highlight=False)
    with console.capture() as capture:
        console.print(table)
    lines = capture.get().splitlines()
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))


class _Cell(NamedTuple):
    text: str
    is_number: bool | None
    """None for null, which is of any type."""

    @classmethod
    def of(cls, value: object) -> _Cell:
        if value is None:
            return cls("-", None)
        is_number = isinstance(value, int | float | Bytes) and not isinstance(value, bool)
        return cls(visible(cell_text(value)), is_number)


class LongText(str):
    """The beginning of a long text, and how long the whole is."""


def cell_of(text: str) -> str:
    """The text; of one that would fill the terminal its beginning, as `LongText`."""
    if len(text) <= _CELL_CHARACTERS_MAX:
        return text
    return LongText(f"{text[:_CELL_CHARACTERS_MAX]}… ({len(text):,} characters)")


def cell_text(value: object) -> str:
    """A value as tables show it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case Bytes():
            return bytes_text(value.number)
        case PlainNumber():
            return str(int(value))
        case int():
            return f"{value:,}"
        case datetime():
            return time_text(value)
        case dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def plain(value: object) -> object:
    """A value of a row, for a cell."""
    return PlainNumber(value) if isinstance(value, int) and not isinstance(value, bool) else value


def time_text(at: datetime) -> str:
    """A time in UTC, to the second: the only form of times in tables."""
    return at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def bytes_text(number: float) -> str:
    """A number of bytes, such as `12.4 MiB`."""
    unit = 0
    while abs(number) >= 1024 and unit < len(_UNITS) - 1:
        number /= 1024
        unit += 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{number:.0f} {_UNITS[0]}"


LONG_VALUES: Final = "Long values are shortened. -o json shows them as a whole.\n"
"""The note below a table with a `LongText`."""
OUTPUT: Final = Output()
"""What no flag chooses."""
