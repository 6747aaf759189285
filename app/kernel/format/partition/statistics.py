"""Statistics of a partition's rows that follow from its path."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.index.column_bounds import stored_bound
from app.kernel.format.partition.fields import PartitionField, Transform, parse_partition, partition_name
from app.kernel.format.partition.segments import read_segment
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import STRING, DataType, FlatType, Timestamp

_Bounds = tuple[Any, Any]
_LAST_CODE_POINT: Final = 0x10FFFF
# No text contains these code points.
_SURROGATES: Final = range(0xD800, 0xE000)


def partition_statistics(path: str, fields: Sequence[str], schema: Schema) -> dict[str, ColumnStatistics]:
    """Bounds of the source columns that hold for every row of the partition at `path`, by field id.

    `fields`: the entries of `partition_by`. The forms are those of a file's statistics. There are no bounds for members
    of structs, null partitions, values of which the path has only a hash, and an empty path.
    """
    if not path:
        return {}
    bounds_by_field: dict[str, _Bounds] = {}
    types: dict[str, DataType] = {}
    for segment, text in zip(path.split("/"), fields, strict=True):
        field = parse_partition(text)
        value = read_segment(segment, partition_name(field))
        if value is None or len(field.path) > 1:
            continue
        source = schema.field(field.path[0])
        bounds = _bounds(value, field, source.data_type())
        if bounds is not None:
            number = str(source.id)
            bounds_by_field[number] = (
                _both(bounds_by_field[number], bounds) if number in bounds_by_field else bounds
            )
            types[number] = source.data_type()
    # A transform maps only null to null, so rows of other partitions have a value.
    return {
        number: ColumnStatistics(
            minimum=stored_bound(low, types[number]), maximum=stored_bound(high, types[number]), null_count=0
        )
        for number, (low, high) in bounds_by_field.items()
    }


def _both(one: _Bounds, other: _Bounds) -> _Bounds:
    """The intersection of two bounds; None is no bound."""
    highs = [high for high in (one[1], other[1]) if high is not None]
    return max(one[0], other[0]), min(highs, default=None)


def _bounds(text: str, field: PartitionField, source: DataType) -> _Bounds | None:
    match field.transform:
        case Transform.IDENTITY if isinstance(source, FlatType):
            value = source.path_value(text)
            return value, value
        case Transform.TRUNCATE if source == STRING:
            return text, text if len(text) < (field.argument or 0) else _after_prefix(text)
        case Transform.TRUNCATE:
            return int(text), int(text) + (field.argument or 1) - 1
        case Transform.BUCKET | Transform.IDENTITY:
            return None
        case _:
            return _period(text, source)


def _after_prefix(prefix: str) -> str | None:
    """The first text after all texts that start with `prefix`, by code points; None if there is no such text."""
    stem = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


def _period(text: str, source: DataType) -> _Bounds:
    """The first and last value of a year, month, day or hour."""
    first = [int(part) for part in text.split("-")]
    last = [*first, *(12, 31, 23)[len(first) - 1 :]]
    if len(first) < 3:
        last[2] = calendar.monthrange(last[0], last[1])[1]
    first += [1, 1, 0][len(first) - 1 :]
    if not isinstance(source, Timestamp):
        return dt.date(*first[:3]), dt.date(*last[:3])
    zone = dt.UTC if source.zoned else None
    microsecond = 999_999 if source.unit == "us" else 999_000
    return (
        dt.datetime(first[0], first[1], first[2], first[3], tzinfo=zone),
        dt.datetime(last[0], last[1], last[2], last[3], 59, 59, microsecond, tzinfo=zone),
    )
