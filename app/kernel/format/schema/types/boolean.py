"""`boolean`: true and false."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types.flat import FlatType, JsonForm, RefusedText, require


@dataclass(frozen=True, slots=True)
class Boolean(FlatType):
    has_order: ClassVar[bool] = False
    json_form: ClassVar[JsonForm] = JsonForm.BOOLEAN

    def __str__(self) -> str:
        return "boolean"

    @property
    def synonyms(self) -> tuple[str, ...]:
        return ("bool",)

    @property
    def arrow(self) -> pa.DataType:
        return pa.bool_()

    def parse(self, texts: pa.StringArray) -> pa.Array:
        truth = pc.equal(texts, "true")
        require(pc.or_(truth, pc.equal(texts, "false")))
        return truth

    def read(self, text: str) -> bool:
        if text not in {"true", "false"}:
            raise RefusedText("booleans are true or false")
        return text == "true"

    @property
    def json_type(self) -> Any:
        return bool

    def json_values(self, array: pa.Array) -> list[Any]:
        values: list[Any] = array.to_pylist()
        return values

    @property
    def avro(self) -> str:
        return "boolean"

    def path_value(self, text: str) -> bool:
        return text == "true"

    def comparable(self, bound: Any) -> bool | None:
        return bound if isinstance(bound, bool) else None

    def sql_literal(self, value: bool) -> str:
        return "TRUE" if value else "FALSE"

    @property
    def literal_example(self) -> str:
        return "TRUE or FALSE"


BOOLEAN: Final = Boolean()
