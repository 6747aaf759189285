"""`date`: days of the years 0001–9999, as 2026-11-21."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types.flat import (
    Converted,
    FlatType,
    OrderNumbers,
    RefusedText,
    Steps,
    faults_where,
    outside,
    refused_where,
    texts_within,
    within,
)

DATE_DAYS_MIN: Final = -719_162
DATE_DAYS_MAX: Final = 2_932_896
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_EPOCH: Final = dt.date(1970, 1, 1)
_DAY_MILLIS: Final = 86_400_000
_OUTSIDE_YEARS: Final = "which is outside the years 0001–9999"


@dataclass(frozen=True, slots=True)
class Date(FlatType):
    def __str__(self) -> str:
        return "date"

    @property
    def arrow(self) -> pa.DataType:
        return pa.date32()

    @property
    def arrow_forms(self) -> tuple[pa.DataType, ...]:
        return (pa.date32(), pa.date64())

    def converts(self, source: pa.DataType) -> bool:
        return self.accepts(source)

    def from_arrow(self, array: pa.Array) -> pa.Array:
        values, refusals = self.converted(array)
        if refusals:
            raise pa.ArrowInvalid("a time is no whole day, or out of range")
        return values

    def converted(self, array: pa.Array) -> Converted:
        if pa.types.is_date32(array.type):
            return array, {}
        millis = array.view(pa.int64())
        days = pc.divide(millis, _DAY_MILLIS)
        parts = pc.not_equal(pc.multiply(days, _DAY_MILLIS), millis)
        misfits = pc.or_(parts, pc.or_(pc.less(days, DATE_DAYS_MIN), pc.greater(days, DATE_DAYS_MAX)))
        _, refusals = refused_where(millis, misfits, _refusal)
        whole = pc.if_else(misfits, pa.scalar(None, pa.int64()), days)
        return pc.cast(whole, pa.int32()).view(pa.date32()), refusals

    def range_faults(self, array: pa.Array) -> Mapping[int, str]:
        return faults_where(array, outside(array, DATE_DAYS_MIN, DATE_DAYS_MAX), self._range_texts)

    def _range_texts(self, array: pa.Array) -> list[str]:
        return [f"got {text}, {_OUTSIDE_YEARS}" for text in self.json_values(array)]

    def parse(self, texts: pa.StringArray) -> pa.Array:
        return within(pc.cast(texts, pa.date32()), DATE_DAYS_MIN, DATE_DAYS_MAX)

    def read(self, text: str) -> dt.date:
        match = _DATE.fullmatch(text)
        if match is None:
            raise RefusedText("which is not written as YYYY-MM-DD")
        try:
            return dt.date(*(int(part) for part in match.groups()))
        except ValueError as fault:
            raise RefusedText(f"which is not a date: {fault}") from None

    def json_values(self, array: pa.Array) -> list[Any]:
        return texts_within(self, array, DATE_DAYS_MIN, DATE_DAYS_MAX, "days")

    @property
    def avro(self) -> dict[str, Any]:
        return {"type": "int", "logicalType": "date"}

    def key_bytes(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return pc.cast(pc.cast(pc.cast(column, pa.int32()), pa.large_string()), pa.large_binary())

    def order_numbers(self, array: pa.Array) -> OrderNumbers:
        numbers: OrderNumbers = array.view(pa.int32()).to_numpy().astype(np.int64)
        return numbers

    def path_value(self, text: str) -> dt.date:
        return dt.date.fromisoformat(text)

    def comparable(self, bound: Any) -> int | None:
        return (dt.date.fromisoformat(bound) - _EPOCH).days if isinstance(bound, str) else None

    @property
    def steps(self) -> Steps:
        return Steps(low=DATE_DAYS_MIN, high=DATE_DAYS_MAX)

    def sql_literal(self, value: dt.date) -> str:
        return f"DATE '{value.isoformat()}'"

    @property
    def literal_example(self) -> str:
        return "a date such as DATE '2026-11-21'"

    @property
    def widening(self) -> str:
        return "it may become a timestamp, with explicit_cast"


def _refusal(millis: int) -> RefusedText:
    days, rest = divmod(millis, _DAY_MILLIS)
    within_years = DATE_DAYS_MIN <= days <= DATE_DAYS_MAX
    reason = "which is no whole day" if rest and within_years else _OUTSIDE_YEARS
    return RefusedText(reason, got=f"{millis} ms since 1970-01-01")


DATE: Final = Date()
