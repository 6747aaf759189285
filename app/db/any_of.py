"""Membership in a list of any length."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Column, ColumnElement, any_, literal
from sqlalchemy.dialects.postgresql import ARRAY


def any_of(column: Column[Any], values: Collection[str] | Collection[int]) -> ColumnElement[bool]:
    """`column = ANY(values)`: one parameter, where IN has one per value and is limited to 65,535."""
    return column == any_(literal(list(values), ARRAY(column.type)))
