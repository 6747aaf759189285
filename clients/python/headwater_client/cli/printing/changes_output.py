"""The forms in which changes are printed: a line for each, with the op in colour on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

from headwater_client.cli.printing.output import (
    builtins,
    cell_of,
    encoded,
    in_colour,
    print_array,
    put,
    put_csv,
    time_text,
)
from headwater_client.cli.printing.text import visible
from headwater_client.models import Change

ChangeForm = Literal["table", "json", "ndjson", "csv"]
_COLOURS: Final = {"+A": "32", "-R": "31", "-C": "2;33", "+C": "33"}
_FACTS: Final = ("offset", "op", "version", "system_time", "event_time", "corrects_offset")


def print_changes(changes: Iterable[Change], form: ChangeForm, record_key: Sequence[str]) -> None:
    """Prints changes one by one. In a table the key precedes the other columns of a row."""
    changes = _each_at_once(changes)
    match form:
        case "table":
            for change in changes:
                sys.stdout.write(f"{_line(change, record_key)}\n")
        case "json":
            print_array(encoded(_members(change)) for change in changes)
        case "csv":
            put_csv(map(_flat, changes))
        case "ndjson":
            for change in changes:
                put(f"{encoded(_members(change))}\n")


def _each_at_once(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes. What is printed of one is with the reader before the next one is awaited."""
    for change in changes:
        yield change
        sys.stdout.flush()


def _members(change: Change) -> dict[str, Any]:
    """The members that the service sent: `before` is only in other forms."""
    return {name: getattr(change, name) for name in (*_FACTS, "row")}


def _flat(change: Change) -> dict[str, Any]:
    found = builtins(change)
    row = found["row"]
    # A column that has the name of a fact keeps its name; the fact has that of the feed's columns.
    return {(f"_hw_{name}" if name in row else name): found[name] for name in _FACTS} | row


def _line(change: Change, record_key: Sequence[str]) -> str:
    op = change.op
    if in_colour() and op in _COLOURS:
        op = f"\x1b[{_COLOURS[op]}m{op}\x1b[0m"
    names = [*(name for name in record_key if name in change.row)]
    names += [name for name in change.row if name not in names]
    values = " ".join(visible(f"{name}={cell_of(_value(change.row[name]))}") for name in names)
    return f"{change.offset:>8}  {time_text(change.system_time)}  {op}  {values}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
