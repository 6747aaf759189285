"""`binary`: bytes. Their text is base64 of RFC 4648 with padding, canonical."""

from __future__ import annotations

import base64
import binascii
from binascii import b2a_base64
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types.first_bytes import first_bytes
from app.kernel.format.schema.types.flat import FlatType, OrderNumbers, RefusedText, Undecodable


@dataclass(frozen=True, slots=True)
class Bytes(FlatType):
    has_order: ClassVar[bool] = False
    csv_as_text: ClassVar[bool] = True

    def __str__(self) -> str:
        return "binary"

    @property
    def arrow(self) -> pa.DataType:
        return pa.binary()

    @property
    def arrow_forms(self) -> tuple[pa.DataType, ...]:
        return (pa.binary(), pa.large_binary(), pa.binary_view())

    def accepts(self, source: pa.DataType) -> bool:
        return source in self.arrow_forms or bool(pa.types.is_fixed_size_binary(source))

    def parse(self, texts: pa.StringArray) -> pa.Array:
        values = [None if text is None else _bytes(text) for text in texts.to_pylist()]
        return pa.array(values, pa.binary())

    def read(self, text: str) -> bytes:
        try:
            return _bytes(text)
        except Undecodable as fault:
            raise RefusedText(f"which is not base64: {fault}") from None

    def texts(self, array: pa.Array) -> pa.Array:
        texts = [None if value is None else b2a_base64(value, newline=False) for value in array.to_pylist()]
        return pa.array(texts, pa.large_binary()).cast(pa.large_string())

    @property
    def avro(self) -> str:
        return "bytes"

    def key_bytes(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return pc.cast(column, pa.large_binary())

    def order_numbers(self, array: pa.Array) -> OrderNumbers:
        return first_bytes(array)

    def path_texts(self, values: pa.Array) -> list[str | None]:
        return [None if value is None else value.hex() for value in values.to_pylist()]

    def path_value(self, text: str) -> bytes:
        return bytes.fromhex(text)

    def comparable(self, bound: Any) -> bytes | None:
        return base64.b64decode(bound, validate=True) if isinstance(bound, str) else None

    def filter_value(self, literal: Any) -> bytes:
        return bytes.fromhex(str(literal))

    def sql_literal(self, value: bytes) -> str:
        return f"X'{value.hex()}'"

    @property
    def literal_example(self) -> str:
        return "bytes such as X'00FF'"


def _bytes(text: str) -> bytes:
    """The bytes of canonical, padded base64. Raises Undecodable."""
    try:
        value = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as fault:
        raise Undecodable(str(fault)) from None
    # Strict mode still accepts any unused low bits in the last character.
    if b2a_base64(value, newline=False).decode("ascii") != text:
        raise Undecodable("not the canonical base64 of these bytes")
    return value


BINARY: Final = Bytes()
