"""Avro schemas: their values as JSON values, and their fields as those of a dataset.

https://avro.apache.org/docs/1.12.0/specification/

The table of types (`app.kernel.format.schema.types.foreign`) has the type of each kind: of primitive types, of logical
types, and of those that Debezium marks by name. A field of type `[null, T]` is a nullable T; one of `[int, long]` or
`[float, double]` is the wider of both. A field of type `null` has no column; its nulls stay in the values.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from app.kernel.codecs.messages.avro_times import CONVERTERS, TIMES
from app.kernel.codecs.messages.reading import (
    BadMessage,
    Convert,
    MessageColumn,
    MessageReader,
    UnsupportedSchema,
    below,
    checked_type,
    each,
    each_value,
    finite,
    optional,
    record,
    struct_of,
)
from app.kernel.format.schema.types import Form, foreign_kind, foreign_types

_TYPES: Final = foreign_types(Form.AVRO)
# fastavro would make times of Python of these, which have no nanoseconds and fewer years.
_OWN_TIMES: Final = "headwater.logicalType"
_WIDER: Final = ({"int", "long"}, {"float", "double"})
# What fastavro raises for bytes that are not of the schema.
_FAULTS: Final = (
    EOFError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    OverflowError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)


class AvroSchema:
    """A parsed schema. It has a record, or a single value such as the key of a message."""

    def __init__(self, text: str, references: Sequence[str] = ()) -> None:
        """`references`: the texts of the schemas that it refers to, each after those that it refers to itself.

        Raises UnsupportedSchema.
        """
        self._named: dict[str, Any] = {}
        try:
            for reference in references:
                fastavro.parse_schema(_with_own_times(json.loads(reference)), named_schemas=self._named)
            self._schema = fastavro.parse_schema(_with_own_times(json.loads(text)), named_schemas=self._named)
        except (SchemaParseException, UnknownType, ValueError, TypeError, KeyError, RecursionError) as error:
            raise UnsupportedSchema(f"it is not an Avro schema: {error}") from None
        self.members: dict[str, MessageColumn] | None = None
        column = self._column(self._schema, "", 0, ())
        self._convert = column.convert
        self.type = column.type

    def reader(self, payload: bytes) -> tuple[MessageReader, bytes]:
        """See `MessageSchema.reader`."""
        return self, payload

    def decode(self, content: bytes) -> Any:
        """See `MessageReader.decode`."""
        source = io.BytesIO(content)
        value = self.read(source)
        if source.tell() != len(content):
            raise BadMessage("it is not Avro of its schema: there are bytes after the value")
        return self.converted(value)

    def read(self, source: io.BytesIO) -> Any:
        """The next value, as Avro has it. Raises BadMessage."""
        try:
            return fastavro.schemaless_reader(source, self._schema, None)
        except _FAULTS as error:
            raise BadMessage(f"it is not Avro of its schema: {type(error).__name__}: {error}") from None

    def converted(self, value: Any) -> Any:
        """The value as `decode` returns it. Raises BadMessage."""
        return value if self._convert is None else self._convert(value)

    @property
    def is_empty(self) -> bool:
        """Whether values take no bytes."""
        return self._is_empty(self._schema)

    def _column(self, schema: Any, place: str, depth: int, outer: tuple[str, ...]) -> MessageColumn:
        """The column of a part of the schema. `outer`: the names of the records around it."""
        if isinstance(schema, list):
            return self._union(schema, place, depth, outer)
        if isinstance(schema, str):
            if schema in self._named:
                return self._column(self._named[schema], place, depth, outer)
            return self._primitive({"type": schema}, schema, place)
        kind = schema.get("type")
        match kind:
            case "record" | "error":
                return self._record(schema, place, depth, outer)
            case "enum":
                return _column("enum")
            case "fixed":
                return self._logical(schema, "fixed", place)
            case "array":
                return self._array(schema, place, depth, outer)
            case "map":
                values = self._column(schema["values"], below(place, "{}", depth), depth + 1, outer)
                return MessageColumn(
                    type=checked_type(f"map<string, {values.type}>", place),
                    convert=each_value(values.convert),
                )
            case str() if foreign_kind(Form.AVRO, kind):
                return self._primitive(schema, kind, place)
            case _:
                return self._column(kind, place, depth, outer)

    def _record(
        self, schema: Mapping[str, Any], place: str, depth: int, outer: tuple[str, ...]
    ) -> MessageColumn:
        name = schema["name"]
        if name in outer:
            raise UnsupportedSchema(f"{place}: the record {name} contains itself")
        members = {
            field["name"]: self._column(
                field["type"], below(place, field["name"], depth), depth + 1, (*outer, name)
            )
            for field in schema["fields"]
            if not _is_null(field["type"])
        }
        if schema["fields"] and not members:
            raise UnsupportedSchema(f"{place or name}: {_refused('null')}")
        if not place:
            self.members = members
        text = struct_of(members, place or name)
        return MessageColumn(type=checked_type(text, place or name), convert=record(members))

    def _array(
        self, schema: Mapping[str, Any], place: str, depth: int, outer: tuple[str, ...]
    ) -> MessageColumn:
        items = schema["items"]
        if self._is_empty(items):
            # A few bytes would be any number of elements.
            raise UnsupportedSchema(f"{place}: elements of an array take no bytes")
        element = self._column(items, below(place, "[]", depth), depth + 1, outer)
        return MessageColumn(type=checked_type(f"list<{element.type}>", place), convert=each(element.convert))

    def _is_empty(self, schema: Any, outer: tuple[str, ...] = ()) -> bool:
        """Whether values take no bytes."""
        if isinstance(schema, str):
            return schema == "null" or (schema in self._named and self._is_empty(self._named[schema], outer))
        if isinstance(schema, list):
            return False
        match schema.get("type"):
            case "record" | "error":
                # A record that contains itself is reported when its members are read.
                around = (*outer, schema["name"])
                return schema["name"] not in outer and all(
                    self._is_empty(field["type"], around) for field in schema["fields"]
                )
            case "fixed":
                return bool(schema["size"] == 0)
            case "array" | "map" | "enum":
                return False
            case inner:
                return self._is_empty(inner, outer)

    def _union(
        self, branches: Sequence[Any], place: str, depth: int, outer: tuple[str, ...]
    ) -> MessageColumn:
        others = [branch for branch in branches if not _is_null(branch)]
        nullable = len(others) < len(branches)
        if not others:
            raise UnsupportedSchema(f"{place}: {_refused('null')}")
        if len(others) == 1:
            column = self._column(others[0], place, depth, outer)
        else:
            names = {branch if isinstance(branch, str) else "" for branch in others}
            if not any(names <= wider for wider in _WIDER):
                raise UnsupportedSchema(f"{place}: {_refused('union of several types besides null')}")
            column = _column("long" if names <= _WIDER[0] else "double")
        if not nullable:
            return column
        return MessageColumn(type=column.type, convert=optional(column.convert))

    def _primitive(self, schema: Mapping[str, Any], kind: str, place: str) -> MessageColumn:
        if kind not in _TYPES:
            raise UnsupportedSchema(f"{place}: {_refused(kind) or f'values of type {kind}'}")
        return self._logical(schema, kind, place)

    def _logical(self, schema: Mapping[str, Any], kind: str, place: str) -> MessageColumn:
        """The column of a primitive or fixed type, by its logical type or its name in Debezium, if it has one."""
        for mark in (schema.get("connect.name"), schema.get(_OWN_TIMES), schema.get("logicalType")):
            name = f"{kind} {mark}"
            if foreign_kind(Form.AVRO, name) is None:
                continue
            if name not in _TYPES:
                raise UnsupportedSchema(f"{place}: {_refused(name)}")
            if mark == "decimal":
                text = f"decimal({schema.get('precision', 0)}, {schema.get('scale', 0)})"
                return MessageColumn(type=checked_type(text, place))
            if name == "fixed uuid" and schema["size"] != _UUID_BYTES:
                continue
            return _column(name)
        return _column(kind)


def _column(name: str) -> MessageColumn:
    """The column of a kind that the table of types has under the name."""
    return MessageColumn(type=_TYPES[name], convert=_CONVERTERS.get(name))


def _refused(name: str) -> str:
    """Why the kind has no type."""
    kind = foreign_kind(Form.AVRO, name)
    return "" if kind is None else kind.refused


def _with_own_times(schema: Any) -> Any:
    """The schema whose times are read as the numbers that they are."""
    if isinstance(schema, list):
        return [_with_own_times(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _with_own_times(part) for name, part in schema.items()}
    if f"{schema.get('type')} {schema.get('logicalType')}" in TIMES:
        parts[_OWN_TIMES] = parts.pop("logicalType")
    return parts


def _is_null(schema: Any) -> bool:
    """Whether the only value is null."""
    if isinstance(schema, list):
        return bool(schema) and all(map(_is_null, schema))
    return schema == "null" or (isinstance(schema, dict) and schema.get("type") == "null")


_UUID_BYTES: Final = 16
_CONVERTERS: Final[Mapping[str, Convert]] = {
    **CONVERTERS,
    "float": finite,
    "double": finite,
    "fixed uuid": lambda octets: str(uuid.UUID(bytes=octets)),
}
