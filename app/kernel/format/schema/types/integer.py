"""`int8` … `int64`, `uint8` … `uint32`: whole numbers.

Texts are canonical: no sign but a minus, no leading zeros. There are no unsigned numbers of 64 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta

from app.kernel.format.schema.types.flat import (
    Converted,
    FlatType,
    JsonForm,
    OrderNumbers,
    RefusedText,
    Steps,
    refused_where,
    require,
)
from app.kernel.format.schema.types.real import ARROW_INTEGERS, DOUBLE, FLOAT, beyond

INTEGER_TEXT: Final = re.compile(r"0|-?[1-9][0-9]*")
# Every 64-bit integer has at most twenty characters; Python takes long to parse a million digits.
_CHARACTERS_MAX: Final = 20
_SYNONYMS: Final = {
    "int8": ("byte",),
    "int16": ("short",),
    "int32": ("int", "integer"),
    "int64": ("long", "bigint"),
}
_HIVE: Final = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
_DELTA: Final = {8: "byte", 16: "short", 32: "integer", 64: "long"}


@dataclass(frozen=True, slots=True)
class Integer(FlatType):
    bits: int
    signed: bool

    is_number: ClassVar[bool] = True
    json_form: ClassVar[JsonForm] = JsonForm.INTEGER

    def __str__(self) -> str:
        return f"{'' if self.signed else 'u'}int{self.bits}"

    @property
    def synonyms(self) -> tuple[str, ...]:
        return _SYNONYMS.get(str(self), ())

    @property
    def low(self) -> int:
        """The least value."""
        return -(2 ** (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The greatest value."""
        return (1 << (self.bits - self.signed)) - 1

    @property
    def arrow(self) -> pa.DataType:
        return pa.type_for_alias(str(self))

    def accepts(self, source: pa.DataType) -> bool:
        if source not in ARROW_INTEGERS:
            return False
        low, high = ARROW_INTEGERS[source]
        return self.holds_integers(low, high)

    def converts(self, source: pa.DataType) -> bool:
        return source in ARROW_INTEGERS

    def converted(self, array: pa.Array) -> Converted:
        try:
            return pc.cast(array, self.arrow), {}
        except pa.ArrowInvalid:
            low, high = ARROW_INTEGERS[array.type]
            kept, refusals = refused_where(
                array,
                beyond(array, max(low, self.low), min(high, self.high)),
                lambda value: self.refusal(str(value)),
            )
            return pc.cast(kept, self.arrow), refusals

    def parse(self, texts: pa.StringArray) -> pa.Array:
        values = pc.cast(texts, self.arrow)
        # Arrow also reads 007 and 0x1F; a canonical text equals the formatted value.
        require(pc.equal(pc.cast(values, pa.string()), texts))
        return values

    def read(self, text: str) -> int:
        if not INTEGER_TEXT.fullmatch(text):
            raise RefusedText("which is not written as an integer")
        if len(text) > _CHARACTERS_MAX or not self.low <= int(text) <= self.high:
            raise RefusedText(f"which is out of range ({self.low} to {self.high})")
        return int(text)

    @property
    def json_type(self) -> Any:
        return Annotated[int, Meta(ge=self.low, le=self.high)]

    def json_values(self, array: pa.Array) -> list[Any]:
        values: list[Any] = array.to_pylist()
        return values

    @property
    def avro(self) -> str:
        return "int" if INT32.holds_integers(self.low, self.high) else "long"

    def order_numbers(self, array: pa.Array) -> OrderNumbers | None:
        if not self.signed:
            return None
        numbers: OrderNumbers = array.to_numpy().astype(np.int64)
        return numbers

    def path_value(self, text: str) -> int:
        return int(text)

    def comparable(self, bound: Any) -> int | None:
        return bound if isinstance(bound, int) else None

    @property
    def steps(self) -> Steps:
        return Steps(low=self.low, high=self.high)

    def sql_literal(self, value: int) -> str:
        return str(value)

    @property
    def literal_example(self) -> str:
        return "a number"

    @property
    def wider(self) -> tuple[FlatType, ...]:
        unsigned_types = [other for other in UNSIGNED if other.bits > self.bits and not self.signed]
        signed_types = [other for other in SIGNED if other.bits > self.bits]
        reals = [real for real in (FLOAT, DOUBLE) if real.holds_integers(self.low, self.high)]
        return (*unsigned_types, *signed_types, *reals)

    def holds_integers(self, low: int, high: int) -> bool:
        return self.low <= low and high <= self.high

    @property
    def cast_kind(self) -> str:
        return "integer"

    @property
    def hive(self) -> str:
        return _HIVE[self._signed_type.bits]

    @property
    def delta(self) -> str:
        """Data files have 32 or 64 bits; one without a sign is read as either."""
        if self.signed:
            return _DELTA[self.bits]
        return "integer" if INT32.holds_integers(self.low, self.high) else "long"

    @property
    def iceberg(self) -> str:
        return "int" if INT32.holds_integers(self.low, self.high) else "long"

    @property
    def relation(self) -> Integer:
        return self._signed_type

    @property
    def spark(self) -> str:
        return _HIVE[self.bits].upper()

    @property
    def _signed_type(self) -> Integer:
        """The narrowest type with a sign that holds all values."""
        return self if self.signed else Integer(self.bits * 2, signed=True)


INT8: Final = Integer(8, signed=True)
INT16: Final = Integer(16, signed=True)
INT32: Final = Integer(32, signed=True)
INT64: Final = Integer(64, signed=True)
SIGNED: Final = (INT8, INT16, INT32, INT64)
UINT8: Final = Integer(8, signed=False)
UINT16: Final = Integer(16, signed=False)
UINT32: Final = Integer(32, signed=False)
UNSIGNED: Final = (UINT8, UINT16, UINT32)
