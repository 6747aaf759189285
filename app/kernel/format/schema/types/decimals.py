"""`decimal(precision, scale)`: exact decimals. A text may have any notation whose value the type holds exactly."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw

from app.kernel.format.schema.types.flat import (
    Converted,
    FlatType,
    JsonForm,
    RefusedText,
    Steps,
    quoted_text,
    require,
)
from app.kernel.format.schema.types.real import ARROW_INTEGERS, NUMBER_TEXT
from app.kernel.format.schema.types.syntax_error import TypeSyntaxError

DECIMAL_PRECISION_MAX: Final = 38
# Longer texts are not numbers that fit, and arithmetic on them is work that a hostile body must not cause.
_CHARACTERS_MAX: Final = 1_000
_INTEGER_DIGITS: Final = 20
_EXPONENT_MAX: Final = 100_000
# Wide enough to preserve every accepted text.
_WIDE: Final = decimal.Context(prec=2 * _CHARACTERS_MAX, Emin=-9_999_999, Emax=9_999_999)


@dataclass(frozen=True, slots=True)
class Decimal(FlatType):
    precision: int
    scale: int

    is_number: ClassVar[bool] = True
    json_form: ClassVar[JsonForm] = JsonForm.NUMBER_OR_TEXT

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= DECIMAL_PRECISION_MAX:
            raise TypeSyntaxError(
                f"decimal precision must be 1–{DECIMAL_PRECISION_MAX}, not {self.precision}"
            )
        if not 0 <= self.scale <= self.precision:
            raise TypeSyntaxError(
                f"decimal scale must be 0–{self.precision} (the precision), not {self.scale}"
            )

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"

    @property
    def arrow(self) -> pa.DataType:
        return pa.decimal128(self.precision, self.scale)

    def accepts(self, source: pa.DataType) -> bool:
        fewer_decimals = pa.types.is_decimal(source) and 0 <= source.scale <= self.scale
        return fewer_decimals and bool(source.precision - source.scale <= self.precision - self.scale)

    def converts(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_decimal(source)) or source in ARROW_INTEGERS

    def converted(self, array: pa.Array) -> Converted:
        if array.type in ARROW_INTEGERS:
            array = pc.cast(array, pa.decimal128(_INTEGER_DIGITS, 0))
        try:
            return pc.cast(array, self.arrow), {}
        except pa.ArrowInvalid:
            # Some value does not fit, or has zeros behind the point that Arrow cannot take away.
            pass
        values: list[decimal.Decimal | None] = []
        refusals: dict[int, RefusedText] = {}
        for place, value in enumerate(array.to_pylist()):
            try:
                values.append(None if value is None else self.read(str(value)))
            except RefusedText as error:
                values.append(None)
                refusals[place] = RefusedText(str(error), got=f"{value:f}")
        return pa.array(values, self.arrow), refusals

    def parse(self, texts: pa.StringArray) -> pa.Array:
        require(pc.match_substring_regex(texts, self._fitting_text()))
        return pc.cast(texts, self.arrow)

    def _fitting_text(self) -> str:
        """The pattern of a decimal that certainly fits, with no more than 38 digits in all.

        Arrow's cast wraps around if there are too many digits before the point, and reads 1E-400 as 0. So only texts of
        this pattern are cast; `read` handles all others.
        """
        surplus_zeros = DECIMAL_PRECISION_MAX - self.precision
        whole = self.precision - self.scale
        return rf"^[+-]?0?\d{{0,{whole}}}(\.\d{{0,{self.scale}}}0{{0,{surplus_zeros}}})?$"

    def read(self, text: str) -> decimal.Decimal:
        match = NUMBER_TEXT.fullmatch(text)
        if match is None:
            raise RefusedText("which is not a decimal number")
        exponent = match.group(2) or "e0"
        if len(text) > _CHARACTERS_MAX or abs(int(exponent[1:])) > _EXPONENT_MAX:
            raise RefusedText("which is out of range")
        value = decimal.Decimal(text)
        if value == 0:
            return decimal.Decimal(0)
        bare = value.normalize(_WIDE)
        if -int(bare.as_tuple().exponent) > self.scale:
            raise RefusedText(f"which has more than {self.scale} digits after the point")
        if bare.adjusted() >= self.precision - self.scale:
            raise RefusedText(f"which has more than {self.precision - self.scale} digits before the point")
        return bare.quantize(decimal.Decimal(1).scaleb(-self.scale), context=_WIDE)

    def texts(self, array: pa.Array) -> pa.Array:
        texts = pc.cast(array, pa.large_string())
        if pc.any(pc.match_substring(texts, "E"), min_count=0).as_py():
            # Arrow writes an exponent for values that begin with seven zeros.
            plain = [None if value is None else f"{value:f}" for value in array.to_pylist()]
            return pa.array(plain, pa.large_string())
        return texts

    @property
    def json_type(self) -> Any:
        return Raw

    @property
    def avro(self) -> dict[str, Any]:
        facts = {"logicalType": "decimal", "precision": self.precision, "scale": self.scale}
        return {"type": "bytes", **facts}

    def path_value(self, text: str) -> decimal.Decimal:
        return decimal.Decimal(text)

    def comparable(self, bound: Any) -> decimal.Decimal | None:
        return decimal.Decimal(bound) if isinstance(bound, str) else None

    def filter_value(self, literal: Any) -> decimal.Decimal:
        return decimal.Decimal(str(literal))

    @property
    def steps(self) -> Steps:
        high = 10**self.precision - 1
        return Steps(low=-high, high=high, per_unit=10**self.scale)

    def sql_literal(self, value: decimal.Decimal) -> str:
        return quoted_text(str(value))

    @property
    def literal_example(self) -> str:
        return "a number"

    def widens_to(self, other: FlatType) -> bool:
        return isinstance(other, Decimal) and other.scale == self.scale and other.precision > self.precision

    @property
    def widening(self) -> str:
        return f"it may become decimal(p, {self.scale}) with p above {self.precision}"

    @property
    def cast_kind(self) -> str:
        return "decimal"

    @property
    def hive(self) -> str:
        return f"decimal({self.precision},{self.scale})"

    @property
    def delta(self) -> str:
        return self.hive
