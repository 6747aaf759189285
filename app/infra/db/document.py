"""Values of the table format as JSON columns."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import JSON, Dialect
from sqlalchemy.types import TypeDecorator

_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
"""Error facts may have any type; values without a JSON form are stored as their text."""


def dumped(value: Any) -> str:
    """What an engine stores in JSON columns: its `json_serializer`."""
    return _ENCODER.encode(value).decode()


def undecoded(stored: bytes) -> bytes:
    """What an engine reads from JSON columns: its `json_deserializer`. The type of the column decodes the text."""
    return stored


class Document(TypeDecorator[Any]):
    """A msgspec value of one type, stored as JSON and checked against the type whenever it is read.

    Its engines have `dumped` and `undecoded`, so that a value is encoded and decoded once.

    The column is `json`, not `jsonb`: column bounds and error facts quote users' strings, and jsonb refuses
    the NUL character that a string may hold. Nothing is ever searched inside a document.
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def __init__(self, type_: Any) -> None:
        super().__init__()
        self.type_ = type_
        self._decoder = msgspec.json.Decoder(type_)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else self._decoder.decode(value)
