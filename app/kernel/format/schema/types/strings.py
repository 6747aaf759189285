"""`string`: Unicode text."""

from __future__ import annotations

from binascii import b2a_base64
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types.clock_texts import clock_texts, is_clock
from app.kernel.format.schema.types.first_bytes import first_bytes
from app.kernel.format.schema.types.flat import Converted, FlatType, OrderNumbers, RefusedText, quoted_text


@dataclass(frozen=True, slots=True)
class String(FlatType):
    def __str__(self) -> str:
        return "string"

    @property
    def synonyms(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def arrow(self) -> pa.DataType:
        return pa.string()

    @property
    def arrow_forms(self) -> tuple[pa.DataType, ...]:
        return (pa.string(), pa.large_string(), pa.string_view())

    def accepts(self, source: pa.DataType) -> bool:
        return source in self.arrow_forms or isinstance(source, pa.JsonType)

    def converts(self, source: pa.DataType) -> bool:
        return self.accepts(source) or is_clock(source)

    def converted(self, array: pa.Array) -> Converted:
        return clock_texts(array) if is_clock(array.type) else (self.from_arrow(array), {})

    def parse(self, texts: pa.StringArray) -> pa.Array:
        return texts

    def read(self, text: str) -> str:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise RefusedText("which is no Unicode text", got="one with a lone surrogate") from None
        return text

    def texts(self, array: pa.Array) -> pa.Array:
        return array

    def json_values(self, array: pa.Array) -> list[Any]:
        try:
            values: list[Any] = array.to_pylist()
            return values
        except UnicodeDecodeError:
            return [_text(value) for value in array.view(pa.binary()).to_pylist()]

    @property
    def avro(self) -> str:
        return "string"

    def key_bytes(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return pc.cast(column, pa.large_binary())

    def order_numbers(self, array: pa.Array) -> OrderNumbers:
        return first_bytes(array)

    def path_value(self, text: str) -> str:
        return text

    def comparable(self, bound: Any) -> str | None:
        return bound if isinstance(bound, str) else None

    def literal(self, text: str) -> str:
        return text

    def sql_literal(self, value: str) -> str:
        return quoted_text(value)

    @property
    def literal_example(self) -> str:
        return "a string such as 'text'"


def _text(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b2a_base64(value, newline=False).decode("ascii")}


STRING: Final = String()
