"""Column statistics as the counts and bounds of a manifest's entries, encoded column by column.

A file has the counts and both bounds of a column, or nothing of it: readers leave out rows of files with a part. Values
are encoded as the type that the file has them in, which readers promote. Bounds that they do not promote are left out.
"""

from __future__ import annotations

import base64
import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.partition.members import roots
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    STRING,
    Decimal,
    FlatType,
    Integer,
    Real,
    Timestamp,
)
from app.kernel.format.schema.types.uuids import UUID
from app.kernel.iceberg.avro import ABSENT, PRESENT, array_bytes, long_bytes
from app.kernel.iceberg.schemas import promotes

FIRST_COLUMNS: Final = 32
"""How many columns have bounds, beside those of the key, the partition and the order."""
_ZONE: Final = "+00:00"
_EXACT: Final = decimal.Context(prec=100)
_UUID_BYTES: Final = 16
_Encoder = Callable[[Sequence[Any]], list[bytes]]


class MeasuredFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a file's metrics are made of. `schema_id`: of the schema that it was written under."""

    row_count: int
    schema_id: int
    statistics: Mapping[str, ColumnStatistics]


def bounded_fields(definition: DatasetDefinition) -> frozenset[int]:
    """The ids of the columns whose statistics are published: of the key, the partition, the order, and the first 32."""
    names = definition.schema.names()
    ordering = [definition.ordering_field] if definition.ordering_field else []
    needed = {*roots([*definition.record_key, *ordering], names), *partition_sources(definition)}
    return frozenset(
        field.id
        for number, field in enumerate(definition.schema.fields)
        if number < FIRST_COLUMNS or field.name in needed
    )


def encoded_values(kind: FlatType, values: Sequence[Any]) -> list[bytes | None]:
    """Stored bounds in Iceberg's binary form of the type; None for a bound that is not of the type."""
    encoder = _encoder(kind)
    try:
        return list(encoder(values))
    except (ValueError, ArithmeticError, TypeError, AttributeError):
        return [_single(encoder, value) for value in values]


def _single(encoder: _Encoder, value: Any) -> bytes | None:
    try:
        return encoder([value])[0]
    except (ValueError, ArithmeticError, TypeError, AttributeError):
        return None


def _encoder(kind: FlatType) -> _Encoder:
    match kind:
        case Integer():
            return lambda values: _packed(_whole(values), "<i4" if kind.iceberg == "int" else "<i8")
        case Real():
            return lambda values: _reals(values, "<f4" if kind == FLOAT else "<f8")
        case Timestamp():
            return _moments
        case Decimal():
            return lambda values: [_unscaled(text, kind.scale) for text in values]
    return _ENCODERS[kind]


def _whole(values: Sequence[Any]) -> Sequence[Any]:
    if any(type(value) is not int for value in values):
        raise ValueError("expected whole numbers")
    return values


def _packed(values: Any, form: str) -> list[bytes]:
    array = np.array(values, dtype=form)
    content, width = array.tobytes(), array.itemsize
    return [content[start : start + width] for start in range(0, len(content), width)]


def _reals(values: Sequence[Any], form: str) -> list[bytes]:
    with np.errstate(over="ignore"):
        array = np.array([_real(value) for value in values], dtype=form)
    if not np.isfinite(array).all():
        raise ValueError("expected finite numbers")
    return _packed(array, form)


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return float(value)


def _moments(values: Sequence[Any]) -> list[bytes]:
    texts = [value.removesuffix(_ZONE) for value in values]
    return _packed(np.array(texts, dtype="datetime64[us]").view("<i8"), "<i8")


def _days(values: Sequence[Any]) -> list[bytes]:
    return _packed(np.array(_texts(values), dtype="datetime64[D]").view("<i8"), "<i4")


def _texts(values: Sequence[Any]) -> Sequence[str]:
    if any(type(value) is not str for value in values):
        raise ValueError("expected texts")
    return values


def _unscaled(text: Any, scale: int) -> bytes:
    """A decimal without its point: two's complement, the most significant byte first, with as few bytes as hold it."""
    if not isinstance(text, str):
        raise ValueError("expected a decimal as a text")
    return minimal_bytes(int(decimal.Decimal(text).scaleb(scale, context=_EXACT)))


def minimal_bytes(value: int) -> bytes:
    """The two's complement of a whole number with as few bytes as hold it, the most significant first."""
    magnitude = ~value if value < 0 else value
    return value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _truths(values: Sequence[Any]) -> list[bytes]:
    if any(type(value) is not bool for value in values):
        raise ValueError("expected booleans")
    return [b"\x01" if value else b"\x00" for value in values]


def _uuid(text: str) -> bytes:
    content = bytes.fromhex(text.replace("-", ""))
    if len(content) != _UUID_BYTES:
        raise ValueError("expected a UUID")
    return content


_ENCODERS: Final[dict[FlatType, _Encoder]] = {
    BOOLEAN: _truths,
    DATE: _days,
    STRING: lambda values: [text.encode() for text in values],
    BINARY: lambda values: [base64.b64decode(text, validate=True) for text in values],
    UUID: lambda values: [_uuid(text) for text in values],
}


class _Metrics:
    """The encoded items of one file's four maps."""

    __slots__ = ("counts", "file", "highs", "lows", "nulls", "rows")

    def __init__(self, file: MeasuredFile) -> None:
        self.file = file
        self.rows = long_bytes(file.row_count)
        self.counts: list[bytes] = []
        self.nulls: list[bytes] = []
        self.lows: list[bytes] = []
        self.highs: list[bytes] = []

    def encoded(self) -> bytes:
        """The fields `value_counts` to `upper_bounds` of an entry."""
        return b"".join(
            [_present(self.counts), _present(self.nulls), ABSENT, _present(self.lows), _present(self.highs)]
        )


NO_METRICS: Final = ABSENT * 5
"""The fields `value_counts` to `upper_bounds` of an entry without statistics."""


def _present(items: list[bytes]) -> bytes:
    return PRESENT + array_bytes(items) if items else ABSENT


def encoded_metrics(
    files: Sequence[MeasuredFile], schema: Schema, schemas: Mapping[int, Schema], fields: Iterable[int]
) -> list[bytes]:
    """The fields `value_counts` to `upper_bounds` of the entry of each file.

    `schema`: the one that the manifest is for; `schemas`: those that files were written under, by id; `fields`: the ids
    of the columns whose statistics are published.
    """
    metrics = [_Metrics(file) for file in files]
    types = {field.id: field.data_type() for field in schema.fields}
    for number in sorted(fields):
        kind = types.get(number)
        if isinstance(kind, FlatType):
            for file_type, ids in _readable_types(number, kind, schemas).items():
                _add_column([each for each in metrics if each.file.schema_id in ids], number, file_type)
    return [each.encoded() for each in metrics]


def _readable_types(number: int, kind: FlatType, schemas: Mapping[int, Schema]) -> dict[FlatType, set[int]]:
    """The types that files have the column in and that readers promote, with the ids of the schemas of these files."""
    types: dict[FlatType, set[int]] = {}
    for schema_id, schema in schemas.items():
        for field in schema.fields:
            file_type = field.data_type() if field.id == number else None
            if isinstance(file_type, FlatType) and promotes(file_type, kind):
                types.setdefault(file_type, set()).add(schema_id)
    return types


def _add_column(metrics: Sequence[_Metrics], number: int, kind: FlatType) -> None:
    """Adds what is published of a column that the files have in this type."""
    text, key = str(number), long_bytes(number)
    pairs = [(each, each.file.statistics[text]) for each in metrics if text in each.file.statistics]
    _add_bounds([pair for pair in pairs if _is_whole(pair[1])], key, kind)
    for each, statistics in pairs:
        if _is_null(statistics, each.file.row_count):
            each.counts.append(key + each.rows)
            each.nulls.append(key + each.rows)


def _is_whole(statistics: ColumnStatistics) -> bool:
    return (
        statistics.minimum is not None
        and statistics.maximum is not None
        and statistics.null_count is not None
    )


def _is_null(statistics: ColumnStatistics, row_count: int) -> bool:
    return statistics.null_count == row_count and statistics.minimum is None and statistics.maximum is None


def _add_bounds(pairs: Sequence[tuple[_Metrics, ColumnStatistics]], key: bytes, kind: FlatType) -> None:
    lows = _signed(kind, encoded_values(kind, [each.minimum for _, each in pairs]), low=True)
    highs = _signed(kind, encoded_values(kind, [each.maximum for _, each in pairs]), low=False)
    for (each, statistics), low, high in zip(pairs, lows, highs, strict=True):
        if low is not None and high is not None:
            each.counts.append(key + each.rows)
            each.nulls.append(key + long_bytes(statistics.null_count or 0))
            each.lows.append(key + long_bytes(len(low)) + low)
            each.highs.append(key + long_bytes(len(high)) + high)


def _signed(kind: FlatType, bounds: list[bytes | None], *, low: bool) -> list[bytes | None]:
    """Bounds that are zero as -0.0 below and 0.0 above: files of floats may have both, and -0.0 is the lesser."""
    if not isinstance(kind, Real):
        return bounds
    width = kind.bits // 8
    zeros, negative = bytes(width), bytes(width - 1) + b"\x80"
    return [(negative if low else zeros) if bound in (zeros, negative) else bound for bound in bounds]
