"""Times of Parquet's type INT96 in its whole range: days of 32 bits, and nanoseconds.

PyArrow reads them in one unit, without a check: in nanoseconds, times outside the years 1677–2262 wrap around, and in
any other unit the digits beyond it are lost. Times are therefore read in milliseconds, which no day exceeds, and again
in nanoseconds. Modulo 2^64 the difference is the rest, below a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from app.kernel.codecs.arrow.arrow_casts import map_entries, packed_offsets
from app.kernel.format.schema.types import timestamp_bounds

_MICROS: Final = pa.timestamp("us")
# Milliseconds that are certainly within the range of nanoseconds.
_NANOS_MILLIS_MAX: Final = 2**63 // 1_000_000 - 1


def int96_columns(file: pq.ParquetFile) -> list[str]:
    """The columns of a file that have such times, at any depth."""
    columns = (file.schema.column(number) for number in range(file.metadata.num_columns))
    names = {column.path.partition(".")[0] for column in columns if column.physical_type == "INT96"}
    # The first part of a path is that of a name which has points itself.
    return [name for name in file.schema_arrow.names if name in names or name.partition(".")[0] in names]


def with_whole_times(
    batches: Iterator[pa.RecordBatch], nanos: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The batches, whose times of INT96 are in milliseconds, with these in microseconds.

    `nanos`: the columns with such times, in nanoseconds, in batches of any size. Times that are beyond the years
    0001–9999 stay so. A column is in nanoseconds in a batch with times that are finer than a microsecond, and has texts
    if nanoseconds do not reach all of its times.
    """
    pending = pa.table({})
    for batch in batches:
        while pending.num_rows < batch.num_rows and (more := next(nanos, None)) is not None:
            parts = [pending] if pending.num_rows else []
            pending = pa.concat_tables([*parts, pa.Table.from_batches([more])])
        for name in pending.column_names:
            number = batch.schema.get_field_index(name)
            part = pending.column(name).slice(0, batch.num_rows).combine_chunks()
            values = _combined(batch.column(number), part)
            batch = batch.set_column(number, batch.schema.field(number).with_type(values.type), values)
        pending = pending.slice(batch.num_rows)
        yield batch


def _combined(millis: pa.Array, nanos: pa.Array) -> pa.Array:
    kind = millis.type
    if kind == nanos.type:
        return millis
    if pa.types.is_timestamp(kind):
        return _times(millis, nanos)
    if pa.types.is_struct(kind):
        pairs = zip(millis.flatten(), nanos.flatten(), strict=True)
        members = [_combined(one, other) for one, other in pairs]
        names = [field.name for field in kind]
        return pa.StructArray.from_arrays(members, names=names, mask=millis.is_null())
    if pa.types.is_map(kind):
        entries, others = map_entries(millis), map_entries(nanos)
        pairs = zip(entries.flatten().flatten(), others.flatten().flatten(), strict=True)
        keys, items = (_combined(one, other) for one, other in pairs)
        return pa.MapArray.from_arrays(packed_offsets(entries), keys, items, mask=millis.is_null())
    elements = _combined(millis.flatten(), nanos.flatten())
    return pa.ListArray.from_arrays(packed_offsets(millis), elements, mask=millis.is_null())


def _times(millis: pa.Array, nanos: pa.Array) -> pa.Array:
    whole = millis.view(pa.int64()).fill_null(0).to_numpy()
    wrapped = nanos.view(pa.int64()).fill_null(0).to_numpy().view(np.uint64)
    rest = (wrapped - whole.view(np.uint64) * np.uint64(1_000_000)).view(np.int64)
    low, high = timestamp_bounds("ms")
    within = (whole >= low) & (whole <= high)
    fine = np.flatnonzero(within & (rest % 1_000 != 0))
    if not fine.size:
        micros = np.clip(whole, low - 1, high + 1) * 1_000 + np.where(within, rest // 1_000, 0)
        return pa.array(micros, pa.int64(), mask=millis.is_null().to_numpy(zero_copy_only=False)).view(
            _MICROS
        )
    if (np.abs(whole) <= _NANOS_MILLIS_MAX).all():
        return nanos
    return _texts(whole, rest, millis)


def _texts(whole: npt.NDArray[np.int64], rest: npt.NDArray[np.int64], millis: pa.Array) -> pa.StringArray:
    """The times with all digits, for the error of a row."""
    texts = np.datetime_as_string(whole.astype("datetime64[ms]")).tolist()
    digits = (f"{text}{nanos:06d}" for text, nanos in zip(texts, rest.tolist(), strict=True))
    valid = millis.is_valid().to_pylist()
    return pa.array([text if each else None for text, each in zip(digits, valid, strict=True)], pa.string())
