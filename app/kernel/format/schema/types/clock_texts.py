"""Texts of times of day and of durations, which are strings: there is no type for them.

A time of day is `10:00:00`, with a fraction that is not zero in microseconds: `10:00:00.250000`. A duration is seconds
with `s` and 0, 3, 6 or 9 digits after the point, as in the JSON form of Protobuf: `90s`, `-1.500s`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types.flat import Converted, RefusedText, refused_where

NOT_OF_A_DAY: Final = "which is not a time of day (00:00:00 to 23:59:59.999999)"
FINER_THAN_MICROS: Final = "which has more than 6 fractional digits; round it to microseconds"
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_SECONDS: Final = 86_400
_NANO_DIGITS: Final = 9


def is_clock(kind: pa.DataType) -> bool:
    """Whether values of the Arrow type are times of day or durations."""
    return bool(pa.types.is_time(kind) or pa.types.is_duration(kind))


def clock_texts(array: pa.Array) -> Converted:
    """The texts of times of day or of durations, and the refusals of other values."""
    return (_duration_texts(array), {}) if pa.types.is_duration(array.type) else _time_texts(array)


def _time_texts(array: pa.Array) -> Converted:
    unit = array.type.unit
    per_second = _PER_SECOND[unit]
    numbers = pc.cast(array.view(pa.int32() if pa.types.is_time32(array.type) else pa.int64()), pa.int64())
    values = numbers.fill_null(0).to_numpy()
    far = (values < 0) | (values >= _DAY_SECONDS * per_second)
    fine = values % 1_000 != 0 if unit == "ns" else np.zeros(len(values), dtype=np.bool_)

    def refusal(value: int) -> RefusedText:
        is_far = not 0 <= value < _DAY_SECONDS * per_second
        return RefusedText(
            NOT_OF_A_DAY if is_far else FINER_THAN_MICROS,
            got=f"{value} {unit} since midnight"
            if is_far
            else str(pa.scalar(value, array.type).cast(pa.string())),
        )

    kept, refusals = refused_where(numbers, pa.array(far | fine), refusal)
    micros = pc.cast(
        pc.divide(kept, 1_000) if unit == "ns" else pc.multiply(kept, 1_000_000 // per_second),
        pa.time64("us"),
    )
    seconds = pc.cast(micros, pa.time32("s"), safe=False)
    whole = pc.equal(pc.cast(seconds, pa.time64("us")), micros)
    return pc.if_else(whole, pc.cast(seconds, pa.string()), pc.cast(micros, pa.string())), refusals


def _duration_texts(array: pa.Array) -> pa.Array:
    per_second = _PER_SECOND[array.type.unit]
    values = array.view(pa.int64()).fill_null(0).to_numpy()
    # The magnitude of the least number has no place among the numbers with a sign.
    magnitudes = np.abs(values).view(np.uint64)
    seconds, rest = magnitudes // np.uint64(per_second), magnitudes % np.uint64(per_second)
    nanos = pc.cast(pa.array(rest * np.uint64(_PER_SECOND["ns"] // per_second)), pa.string())
    digits = pc.replace_substring_regex(pc.utf8_lpad(nanos, _NANO_DIGITS, "0"), "(000)+$", "")
    sign = pc.if_else(pa.array(values < 0), "-", "")
    point = pc.if_else(pc.equal(digits, ""), "", ".")
    texts = pc.binary_join_element_wise(sign, pc.cast(pa.array(seconds), pa.string()), point, digits, "s", "")
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))
