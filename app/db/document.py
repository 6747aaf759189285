"""Values of the table format as JSON columns."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import JSON, Dialect
from sqlalchemy.types import TypeDecorator

ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
"""Error facts may have any type; values without a JSON form are stored as their text."""


class Document(TypeDecorator[Any]):
    """A msgspec value of one type, stored as JSON and checked against the type whenever it is read.

    The column is `json`, not `jsonb`: column bounds and error facts quote users' strings, and jsonb refuses
    the NUL character that a string may hold. Nothing is ever searched inside a document.
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def __init__(self, type_: Any) -> None:
        super().__init__()
        self.type_ = type_

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else msgspec.to_builtins(value, enc_hook=str)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else msgspec.convert(value, self.type_)
