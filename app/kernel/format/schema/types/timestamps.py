"""`timestamp`: points in time in UTC; `timestamp_ntz`: wall-clock times. In microseconds, or with `(ms)` milliseconds.

2026-11-21T10:00:00.123456Z or with an offset (+01:00); `T` may be a space. `timestamp_ntz` has no zone. Fractional
digits beyond the unit must be zero. Years 0001–9999 in UTC, no leap seconds.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types.dates import DATE_DAYS_MAX, DATE_DAYS_MIN
from app.kernel.format.schema.types.flat import (
    Converted,
    FlatType,
    OrderNumbers,
    RefusedText,
    Steps,
    faults_where,
    outside,
    require,
    texts_within,
    within,
)

TICKS: Final = {"ms": 1_000, "us": 1_000_000}
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_UNIT_NAMES: Final = {"ms": "milliseconds", "us": "microseconds"}
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
OUTSIDE_YEARS: Final = "which is outside the years 0001–9999 in UTC"
_ACCEPTED_UNITS: Final = {"ms": {"s", "ms"}, "us": {"s", "ms", "us"}}
_AVRO_UNITS: Final = {"ms": "millis", "us": "micros"}
_ZONED: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$"
_LOCAL: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?$"
_SURPLUS_ZEROS: Final = {unit: rf"(\.\d{{{digits}}})0+([Z+-]|$)" for unit, digits in (("ms", 3), ("us", 6))}
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]+))?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Timestamp(FlatType):
    unit: str
    zoned: bool

    csv_as_text: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.cast_kind if self.unit == "us" else f"{self.cast_kind}({self.unit})"

    @property
    def arrow(self) -> pa.DataType:
        return pa.timestamp(self.unit, tz="UTC" if self.zoned else None)

    def accepts(self, source: pa.DataType) -> bool:
        same_kind = pa.types.is_timestamp(source) and (source.tz is not None) == self.zoned
        return same_kind and source.unit in _ACCEPTED_UNITS[self.unit]

    def converts(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_timestamp(source)) and (source.tz is not None) == self.zoned

    def converted(self, array: pa.Array) -> Converted:
        if pa.types.is_string(array.type):
            return self._read_all(array)
        unit = array.type.unit
        values = array.view(pa.int64()).fill_null(0).to_numpy()
        per_second = _PER_SECOND[unit]
        low, high = DATE_DAYS_MIN * 86_400 * per_second, (DATE_DAYS_MAX + 1) * 86_400 * per_second - 1
        misfits = (values < max(low, _INT64_MIN)) | (values > min(high, _INT64_MAX))
        coarser = per_second // TICKS[self.unit]
        if coarser > 1:
            misfits |= values % coarser != 0
            numbers = values // coarser
        else:
            numbers = np.where(misfits, 0, values) * (TICKS[self.unit] // per_second)
        refusals = {
            place: self._refusal(int(values[place]), unit)
            for place in np.flatnonzero(misfits).tolist()
            if array[place].is_valid
        }
        absent = misfits | array.is_null().to_numpy(zero_copy_only=False)
        return pa.array(numbers, pa.int64(), mask=absent).cast(self.arrow), refusals

    def _read_all(self, texts: pa.StringArray) -> Converted:
        """The values of texts that have the form of the type."""
        values: list[int | None] = []
        refusals = {}
        for place, text in enumerate(texts.to_pylist()):
            try:
                values.append(None if text is None else self.read(text))
            except RefusedText as error:
                values.append(None)
                refusals[place] = RefusedText(str(error), got=error.got or text)
        return pa.array(values, pa.int64()).cast(self.arrow), refusals

    def _refusal(self, tick: int, unit: str) -> RefusedText:
        days, _ = divmod(tick, 86_400 * _PER_SECOND[unit])
        if not DATE_DAYS_MIN <= days <= DATE_DAYS_MAX:
            return RefusedText(OUTSIDE_YEARS, got=f"{tick} {unit} since 1970-01-01")
        text = str(pc.cast(pa.scalar(tick, pa.timestamp(unit)), pa.string()).as_py()).replace(" ", "T")
        return self.refusal(f"{text}Z" if self.zoned else text)

    def range_faults(self, array: pa.Array) -> Mapping[int, str]:
        misfits = outside(array, *timestamp_bounds(self.unit))
        return faults_where(array, misfits, self._range_texts)

    def _range_texts(self, array: pa.Array) -> list[str]:
        return [f"got {text}, {OUTSIDE_YEARS}" for text in self.json_values(array)]

    def parse(self, texts: pa.StringArray) -> pa.Array:
        require(pc.match_substring_regex(texts, _ZONED if self.zoned else _LOCAL))
        require(pc.invert(pc.starts_with(texts, "0000")))
        return within(self._instants(texts), *timestamp_bounds(self.unit))

    def _instants(self, texts: pa.StringArray) -> pa.Array:
        try:
            return pc.cast(texts, self.arrow)
        except pa.ArrowInvalid:
            # Arrow accepts no more digits than the unit has; many clients send zeros there.
            short_texts = pc.replace_substring_regex(
                texts, pattern=_SURPLUS_ZEROS[self.unit], replacement=r"\1\2"
            )
            return pc.cast(short_texts, self.arrow)

    def read(self, text: str) -> int:
        """Ticks since 1970 in the type's unit."""
        match = _TIMESTAMP.fullmatch(text)
        if match is None:
            zone = "Z" if self.zoned else ""
            raise RefusedText(f"which is not written as YYYY-MM-DDTHH:MM:SS[.fraction]{zone}")
        *clock, fraction, zone = match.groups()
        if self.zoned and zone is None:
            raise RefusedText("which lacks a zone: end it with Z or an offset such as +01:00")
        if not self.zoned and zone is not None:
            raise RefusedText("which has a zone, but a wall-clock time without a zone is expected")
        digits = 3 if self.unit == "ms" else 6
        fraction = fraction or ""
        if fraction[digits:].strip("0"):
            raise RefusedText(
                f"which has more than {digits} fractional digits; round it to {_UNIT_NAMES[self.unit]}"
            )
        try:
            moment = dt.datetime(*(int(part) for part in clock), tzinfo=dt.UTC)  # type: ignore[misc, arg-type]
            offset = _offset(zone or "Z")
        except ValueError as fault:
            raise RefusedText(f"which is not a time: {fault}") from None
        seconds: int = (moment - _EPOCH) // dt.timedelta(seconds=1) - offset
        ticks = seconds * TICKS[self.unit] + int(fraction[:digits].ljust(digits, "0"))
        low, high = timestamp_bounds(self.unit)
        if not low <= ticks <= high:
            raise RefusedText(OUTSIDE_YEARS)
        return ticks

    def texts(self, array: pa.Array) -> pa.Array:
        """RFC 3339 texts, without the Z where the type has no zone."""
        # Arrow looks up the zone for every value; in UTC the wall clock is the same.
        local = array.view(pa.int64()).view(pa.timestamp(self.unit))
        seconds = pc.cast(local, pa.timestamp("s"), safe=False)
        whole = pc.equal(pc.cast(seconds, local.type), local)
        if pc.all(whole, min_count=0).as_py():
            texts = pc.cast(seconds, pa.string())
        elif not pc.any(whole, min_count=0).as_py():
            texts = pc.cast(local, pa.string())
        else:
            texts = pc.if_else(whole, pc.cast(seconds, pa.string()), pc.cast(local, pa.string()))
        texts = pc.binary_replace_slice(texts, 10, 11, "T")
        return pc.binary_join_element_wise(texts, "Z", "") if self.zoned else texts

    def json_values(self, array: pa.Array) -> list[Any]:
        return texts_within(self, array, *timestamp_bounds(self.unit), self.unit)

    @property
    def avro(self) -> dict[str, Any]:
        local = "" if self.zoned else "local-"
        return {"type": "long", "logicalType": f"{local}timestamp-{_AVRO_UNITS[self.unit]}"}

    def key_bytes(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return pc.cast(pc.cast(pc.cast(column, pa.int64()), pa.large_string()), pa.large_binary())

    def order_numbers(self, array: pa.Array) -> OrderNumbers:
        numbers: OrderNumbers = array.view(pa.int64()).to_numpy().astype(np.int64)
        return numbers

    def path_value(self, text: str) -> dt.datetime:
        return dt.datetime.fromisoformat(text)

    def comparable(self, bound: Any) -> int | None:
        if not isinstance(bound, str):
            return None
        moment = dt.datetime.fromisoformat(bound)
        microseconds = (moment.replace(tzinfo=moment.tzinfo or dt.UTC) - _EPOCH) // dt.timedelta(
            microseconds=1
        )
        return microseconds * TICKS[self.unit] // TICKS["us"]

    @property
    def steps(self) -> Steps:
        low, high = timestamp_bounds(self.unit)
        return Steps(low=low, high=high, per_unit=TICKS[self.unit])

    def sql_literal(self, value: dt.datetime) -> str:
        return f"TIMESTAMP '{value.isoformat().replace('+00:00', 'Z')}'"

    @property
    def literal_example(self) -> str:
        clock = "T10:00:00Z" if self.zoned else " 10:00:00"
        return f"a time such as TIMESTAMP '2026-11-21{clock}'"

    @property
    def wider(self) -> tuple[FlatType, ...]:
        return (Timestamp("us", self.zoned),) if self.unit == "ms" else ()

    @property
    def cast_kind(self) -> str:
        return "timestamp" if self.zoned else "timestamp_ntz"

    @property
    def hive(self) -> str:
        """Hive's has no zone; a point in time is written in UTC."""
        return "timestamp"

    @property
    def delta(self) -> str:
        return self.cast_kind

    @property
    def iceberg(self) -> str:
        return "timestamptz" if self.zoned else "timestamp"

    @property
    def relation(self) -> Timestamp:
        return Timestamp("us", self.zoned)

    @property
    def spark(self) -> str:
        return self.cast_kind.upper()


def timestamp_bounds(unit: str) -> tuple[int, int]:
    """The first and last tick of the years 0001–9999."""
    ticks = TICKS[unit]
    return DATE_DAYS_MIN * 86_400 * ticks, (DATE_DAYS_MAX + 1) * 86_400 * ticks - 1


def _offset(zone: str) -> int:
    """Seconds east of UTC."""
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError("the zone offset is out of range")
    return (hours * 3_600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


TIMESTAMP: Final = Timestamp("us", zoned=True)
TIMESTAMP_NTZ: Final = Timestamp("us", zoned=False)
