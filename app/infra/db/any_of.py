"""Membership in a list of any length, and names that match a pattern or begin with a text."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Text, and_, any_, false, literal, or_
from sqlalchemy.dialects.postgresql import ARRAY

# Sorts after every other ASCII character.
_LAST: Final = "~"


def any_of(
    column: Column[Any], values: Collection[str] | Collection[int] | Collection[bytes]
) -> ColumnElement[bool]:
    """`column = ANY(values)`: one parameter, where IN has one per value and is limited to 65,535."""
    return column == any_(literal(list(values), ARRAY(column.type)))


def begins_with_any(column: Column[str], prefixes: Collection[str]) -> ColumnElement[bool]:
    """Whether the text begins with one of these and continues in ASCII, before ~. An index of the column finds it."""
    return or_(false(), *(and_(column >= prefix, column < end_of_prefix(prefix)) for prefix in prefixes))


def end_of_prefix(prefix: str) -> str:
    """A text behind all that begin with the prefix and continue in ASCII, before ~."""
    return prefix + _LAST


def matches_any(column: ColumnElement[str], patterns: Collection[str]) -> ColumnElement[bool]:
    """Whether one of the patterns fits: `*` stands for any characters, every other character for itself."""
    like_patterns = [re.sub(r"([%_\\])", r"\\\1", pattern).replace("*", "%") for pattern in patterns]
    return column.op("LIKE", is_comparison=True)(any_(literal(like_patterns, ARRAY(Text))))
