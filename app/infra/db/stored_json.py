"""The stored form of values: JSON columns of Postgres.

A stored row outlives the release that wrote it, so its members have names of their own: a member whose attribute is
renamed keeps its stored name by `msgspec.field(name=…)`. A name that the value does not have is refused, since a value
that drops it would be written back without it. So every struct of a stored value forbids unknown members, which
`Document` checks when a table is defined, and rows that the previous release wrote are read in a test
(`tests/infra/db/test_stored_forms.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from sqlalchemy import JSON, Dialect
from sqlalchemy.types import TypeDecorator

from app.kernel.format.struct_types import struct_types

_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
"""Error facts may have any type; values without a JSON form are stored as their text."""


class UnreadableDocument(RuntimeError):
    """A stored value has a member or a form that this release does not have.

    A later release has written it, or one of its members was renamed without keeping its stored name. It is an error of
    the deployment, never of a request.
    """


def dumped(value: Any) -> str:
    """What an engine stores in JSON columns: its `json_serializer`."""
    return _ENCODER.encode(value).decode()


def undecoded(json_bytes: bytes) -> bytes:
    """What an engine reads from JSON columns: its `json_deserializer`. The type of the column decodes the text."""
    return json_bytes


class Document(TypeDecorator[Any]):
    """A msgspec value of one type, stored as JSON and checked against the type whenever it is read.

    Its engines have `dumped` and `undecoded`, so that a value is encoded and decoded once. A value that has an unknown
    member, or lacks one, is refused with UnreadableDocument.

    The column is `json`, not `jsonb`: column bounds and error facts quote users' strings, and jsonb refuses
    the NUL character that a string may hold. Nothing is searched inside a document but the bounds of columns, as text
    (`app/core/timeline/repository/pruning.py`).
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def __init__(self, type_: Any, stored: Callable[[Any], Any] | None = None) -> None:
        """`stored` gives the form of a value that is encoded; by default it is the value.

        Raises TypeError for a type that would drop unknown members.
        """
        super().__init__()
        self.type_ = type_
        self.stored = stored
        self._decoder = msgspec.json.Decoder(type_)
        if forgetful := forgetful_structs(type_):
            raise TypeError(f"stored structs need forbid_unknown_fields=True: {', '.join(forgetful)}")

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        return value if value is None or self.stored is None else self.stored(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        if value is None:
            return None
        try:
            return self._decoder.decode(value)
        except msgspec.ValidationError as error:
            raise UnreadableDocument(f"a stored {self.type_} is not of this release: {error}") from error


def forgetful_structs(type_: Any) -> list[str]:
    """The structs of a type that drop unknown members when they are decoded, by name."""
    return sorted(
        class_.__qualname__
        for class_ in struct_types(type_)
        if issubclass(class_, msgspec.Struct) and not class_.__struct_config__.forbid_unknown_fields
    )
