"""`date`: days of the years 0001–9999, as 2026-11-21."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types.flat import (
    FlatType,
    OrderNumbers,
    RefusedText,
    Steps,
    outside,
    texts_within,
    within,
)

DATE_DAYS_MIN: Final = -719_162
DATE_DAYS_MAX: Final = 2_932_896
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_EPOCH: Final = dt.date(1970, 1, 1)


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

    def out_of_range(self, array: pa.Array) -> tuple[pa.BooleanArray, str] | None:
        return outside(array, DATE_DAYS_MIN, DATE_DAYS_MAX), "got a date outside the years 0001–9999"

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


DATE: Final = Date()
