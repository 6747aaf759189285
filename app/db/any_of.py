"""Membership in a list of any length, and names that match a pattern."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from sqlalchemy import Column, ColumnElement, Text, any_, literal
from sqlalchemy.dialects.postgresql import ARRAY


def any_of(column: Column[Any], values: Collection[str] | Collection[int]) -> ColumnElement[bool]:
    """`column = ANY(values)`: one parameter, where IN has one per value and is limited to 65,535."""
    return column == any_(literal(list(values), ARRAY(column.type)))


def matches_any(column: ColumnElement[str], patterns: Collection[str]) -> ColumnElement[bool]:
    """Whether one of the patterns fits: `*` stands for any characters, every other character for itself."""
    escaped = [re.sub(r"([%_\\])", r"\\\1", pattern).replace("*", "%") for pattern in patterns]
    return column.op("LIKE", is_comparison=True)(any_(literal(escaped, ARRAY(Text))))
