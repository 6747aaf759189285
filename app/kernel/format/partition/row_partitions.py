"""The partition of every row. Each field is computed on whole columns; texts are made for distinct values only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.partition.fields import PartitionField, Transform, parse_partition, partition_name
from app.kernel.format.partition.segments import segment
from app.kernel.format.rows.record_key import encode_keys
from app.kernel.format.schema.types import stored_type

_Codes = npt.NDArray[np.int64]
_PERIODS: Final = {Transform.YEAR: "Y", Transform.MONTH: "M", Transform.DAY: "D", Transform.HOUR: "h"}


def partition_codes(rows: pa.Table, fields: Sequence[str]) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Each row's partition as an index (int32, shape (rows,)) into the returned distinct paths.

    `fields`: entries of `partition_by`. Null is a partition of its own; a member of a null struct is null.
    """
    if not fields:
        return np.zeros(rows.num_rows, dtype=np.int32), [""]
    columns = [_segments(rows, parse_partition(text)) for text in fields]
    codes, paths = columns[0]
    if len(columns) > 1:
        for numbers, segments in columns[1:]:
            # Renumbered with every field, the codes stay far below the limit of 64 bits.
            pair_codes = codes * len(segments) + numbers
            _, first_rows, codes = np.unique(pair_codes, return_index=True, return_inverse=True)
        paths = ["/".join(segments[numbers[row]] for numbers, segments in columns) for row in first_rows]
    return codes.astype(np.int32), paths


def _segments(rows: pa.Table, field: PartitionField) -> tuple[_Codes, list[str]]:
    """Each row's path segment as an index into the returned segments."""
    values = _transformed(values_at(rows, field.path), field)
    codes = pc.dictionary_encode(values, null_encoding="encode")
    name = partition_name(field)
    segments = [segment(name, text) for text in _texts(codes.dictionary, field)]
    return codes.indices.to_numpy(zero_copy_only=False).astype(np.int64), segments


def values_at(rows: pa.Table, path: Sequence[str]) -> pa.Array:
    """The values of a field, or of a member of structs; null where a struct on the way is null."""
    column = rows.column(path[0])
    if len(path) > 1:
        column = pc.struct_field(column, list(path[1:]))
    values = column.combine_chunks()
    return pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values


def _transformed(values: pa.Array, field: PartitionField) -> pa.Array:
    """The transformed values: for times the number of the period since 1970, for integers that of the multiple."""
    match field.transform:
        case Transform.IDENTITY:
            return values
        case Transform.BUCKET:
            return _buckets(values, _argument(field))
        case Transform.TRUNCATE if pa.types.is_string(values.type):
            return pc.utf8_slice_codeunits(values, 0, _argument(field))
        case Transform.TRUNCATE:
            # The multiple itself may be below the least 64-bit integer.
            numbers = pc.fill_null(pc.cast(values, pa.int64()), 0).to_numpy()
            return _array(np.floor_divide(numbers, _argument(field)), values)
        case transform:
            return _array(_periods(values, _PERIODS[transform]), values)


def _argument(field: PartitionField) -> int:
    if field.argument is None:
        raise ValueError(f"{field.text} lacks its argument: expected a number before the field")
    return field.argument


def _buckets(values: pa.Array, count: int) -> pa.Array:
    present = values.drop_null()
    hashes = hash_keys(encode_keys(pa.table({"value": present}), ["value"]))
    numbers = np.zeros(len(values), dtype=np.int64)
    numbers[values.is_valid().to_numpy(zero_copy_only=False)] = hashes % np.uint64(count)
    return _array(numbers, values)


def _periods(values: pa.Array, unit: str) -> _Codes:
    is_date = pa.types.is_date32(values.type)
    ticks = values.view(pa.int32()) if is_date else values.view(pa.int64())
    numbers: _Codes = pc.fill_null(ticks, 0).to_numpy().astype(np.int64)
    moments = numbers.view(f"datetime64[{'D' if is_date else values.type.unit}]")
    return moments.astype(f"datetime64[{unit}]").view(np.int64)


def _array(numbers: _Codes, values: pa.Array) -> pa.Array:
    """The numbers, null where the values are."""
    return pa.array(numbers, pa.int64(), mask=values.is_null().to_numpy(zero_copy_only=False))


def _texts(values: pa.Array, field: PartitionField) -> list[str | None]:
    """The values of partitions as they are in paths; None for null."""
    match field.transform:
        case Transform.IDENTITY:
            flat = stored_type(values.type)
            if flat is None:
                raise TypeError(f"values of type {values.type} are in no paths")
            return flat.path_texts(values)
        case Transform.BUCKET:
            return [None if number is None else str(number) for number in values.to_pylist()]
        case Transform.TRUNCATE if pa.types.is_string(values.type):
            texts: list[str | None] = values.to_pylist()
            return texts
        case Transform.TRUNCATE:
            width = _argument(field)
            return [None if number is None else str(number * width) for number in values.to_pylist()]
        case transform:
            periods = pc.fill_null(values, 0).to_numpy().view(f"datetime64[{_PERIODS[transform]}]")
            # An hour is written after its day: 2026-11-21-13.
            period_texts = [str(text).replace("T", "-") for text in np.datetime_as_string(periods)]
            return [
                text if valid else None
                for text, valid in zip(period_texts, values.is_valid().to_pylist(), strict=True)
            ]
