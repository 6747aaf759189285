"""Rows of an engine compared with those of the service, cell by cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from tests.open.engines import Engine

Row = tuple[Any, ...]


def check_equal(engine: Engine, found: pa.Table, expected: pa.Table) -> None:
    """Raises AssertionError that names rows which only one of the two tables has. The order of rows is free."""
    assert set(found.column_names) == set(expected.column_names), (found.schema, expected.schema)
    _check_rows(_rows(found, expected.schema, engine, filled=False), engine, expected)


def check_folds(engine: Engine, added: pa.Table, removed: pa.Table, expected: pa.Table) -> None:
    """Raises AssertionError unless the rows that changes added, without those that they removed, are the expected."""
    rows = _rows(added, expected.schema, engine, filled=False)
    rows.subtract(_rows(removed, expected.schema, engine, filled=False))
    never_added = [row for row, count in rows.items() if count < 0]
    assert not never_added, f"{len(never_added)} rows were removed and never added: {never_added[:3]}"
    _check_rows(+rows, engine, expected)


def _check_rows(found_rows: Counter[Row], engine: Engine, expected: pa.Table) -> None:
    expected_rows = _rows(expected, expected.schema, engine, filled=engine.fills_nulls)
    more, less = found_rows - expected_rows, expected_rows - found_rows
    assert not more, f"{sum(more.values())} rows more: {_few(more)}; {sum(less.values())} less: {_few(less)}"
    assert not less, f"{sum(less.values())} rows less: {_few(less)}"


def _few(rows: Counter[Row]) -> list[Row]:
    return list(rows)[:3]


def _rows(table: pa.Table, schema: pa.Schema, engine: Engine, *, filled: bool) -> Counter[Row]:
    columns = [
        [_cell(value, field.type, engine, filled=filled) for value in _values(table.column(field.name))]
        for field in schema
    ]
    return Counter(zip(*columns, strict=True))


def _values(column: pa.ChunkedArray) -> Iterable[Any]:
    # A time in nanoseconds is no value of Python.
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz))
    return column.to_pylist()


def _cell(value: Any, kind: pa.DataType, engine: Engine, *, filled: bool) -> Any:
    """A value that can be hashed, and is equal for equal cells. `filled`: null lists, maps and structs have values."""
    types = pa.types
    filled = filled or (engine.fills_nulls_of_nested_types and _is_nested(kind))
    if types.is_list(kind) or types.is_large_list(kind):
        items = ([] if filled else None) if value is None else value
        return (
            items
            if items is None
            else tuple(_cell(item, kind.value_type, engine, filled=filled) for item in items)
        )
    if types.is_map(kind):
        entries = ([] if filled else None) if value is None else value
        return entries if entries is None else _entries(entries, kind, engine, filled=filled)
    if types.is_struct(kind):
        members = ({} if filled else None) if value is None else value
        if members is None:
            return None
        assert filled or set(members) == {field.name for field in kind}, (members, kind)
        return tuple(_cell(members.get(each.name), each.type, engine, filled=filled) for each in kind)
    return None if value is None else _flat(kind, engine)(value)


def _is_nested(kind: pa.DataType) -> bool:
    """Whether it is a list or a map of values that have a nested type themselves."""
    if pa.types.is_map(kind):
        return pa.types.is_nested(kind.item_type)
    return pa.types.is_list(kind) and pa.types.is_nested(kind.value_type)


def _entries(entries: Any, kind: pa.MapType, engine: Engine, *, filled: bool) -> frozenset[Any]:
    pairs = entries.items() if isinstance(entries, dict) else entries
    return frozenset(
        (
            _cell(key, kind.key_type, engine, filled=filled),
            _cell(item, kind.item_type, engine, filled=filled),
        )
        for key, item in pairs
    )


def _flat(kind: pa.DataType, engine: Engine) -> Callable[[Any], Any]:
    types = pa.types
    if types.is_timestamp(kind):
        return _zoned if kind.tz is not None else (_as_utc if engine.zoned else _unzoned)
    if types.is_boolean(kind):
        return lambda value: _of(bool, value)
    if types.is_integer(kind):
        return _integer
    if types.is_floating(kind):
        return lambda value: float.hex(float(value))
    if types.is_decimal(kind):
        return lambda value: _of(Decimal, value)
    if types.is_date(kind):
        return lambda value: _of(date, value)
    if isinstance(kind, pa.UuidType) or types.is_fixed_size_binary(kind):
        return _uuid
    if types.is_binary(kind) or types.is_large_binary(kind):
        return lambda value: _of(bytes, value)
    return lambda value: value.decode() if isinstance(value, bytes) else _of(str, value)


def _of(kind: type, value: Any) -> Any:
    assert isinstance(value, kind), f"{value!r} is no {kind.__name__}"
    return value


def _integer(value: Any) -> int:
    assert isinstance(value, int), f"{value!r} is no integer"
    assert not isinstance(value, bool), f"{value!r} is no integer"
    return value


def _zoned(value: datetime) -> datetime:
    assert value.tzinfo is not None, f"{value!r} has no time zone"
    return value.astimezone(UTC)


def _unzoned(value: datetime) -> datetime:
    assert value.tzinfo is None, f"{value!r} has a time zone"
    return value


def _as_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _uuid(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.bytes if isinstance(value, UUID) else UUID(value).bytes
