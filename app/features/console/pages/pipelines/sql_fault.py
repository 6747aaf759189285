"""Where the SQL of a view is wrong, as lines of text with a caret below the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_AROUND: Final = 120
"""The most characters of a line before and after the place."""


class SqlFault(NamedTuple):
    """A place in a text: its line and column, from 1, and the line with a caret below it."""

    line: int
    column: int
    excerpt: str


def sql_fault(sql: str, members: Mapping[str, Any]) -> SqlFault | None:
    """The place that a problem of type `invalid-view` has; None without one."""
    position = members.get("position")
    if not isinstance(position, int) or not 0 <= position <= len(sql):
        return None
    before = sql[:position]
    begin = before.rfind("\n") + 1
    end = sql.find("\n", position)
    line = sql[begin : len(sql) if end < 0 else end].rstrip("\r")
    column = position - begin
    shift = max(column - _AROUND, 0)
    shown = line[shift : column + _AROUND]
    indent = "".join("\t" if each == "\t" else " " for each in line[shift:column])
    return SqlFault(before.count("\n") + 1, column + 1, f"{shown}\n{indent}^")
