"""Avro schemas: their values as JSON values, and their fields as those of a dataset.

https://avro.apache.org/docs/1.12.0/specification/

    boolean int long float double string bytes enum    boolean int32 int64 float double string binary string
    record, array, map, fixed                          struct, list, map<string, …>, binary
    [null, T]; [int, long]; [float, double]            T, nullable; the wider of both
    decimal, date, uuid                                decimal(p, s), date, uuid
    timestamp-millis, timestamp-micros                 timestamp(ms), timestamp; local ones are timestamp_ntz
    time-millis, time-micros                           string
    Debezium's Date, Timestamp, MicroTimestamp,        date, timestamp_ntz(ms), timestamp_ntz,
    NanoTimestamp, ZonedTimestamp                      timestamp_ntz, timestamp
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

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

_PRIMITIVES: Final = {
    "boolean": MessageColumn(type="boolean"),
    "int": MessageColumn(type="int32"),
    "long": MessageColumn(type="int64"),
    "float": MessageColumn(type="float", convert=finite),
    "double": MessageColumn(type="double", convert=finite),
    "string": MessageColumn(type="string"),
    "bytes": MessageColumn(type="binary"),
}
_LOGICAL: Final = {
    ("int", "date"): MessageColumn(type="date"),
    ("long", "timestamp-millis"): MessageColumn(type="timestamp(ms)"),
    ("long", "timestamp-micros"): MessageColumn(type="timestamp"),
    ("long", "local-timestamp-millis"): MessageColumn(type="timestamp_ntz(ms)"),
    ("long", "local-timestamp-micros"): MessageColumn(type="timestamp_ntz"),
    ("int", "time-millis"): MessageColumn(type="string"),
    ("long", "time-micros"): MessageColumn(type="string"),
    ("string", "uuid"): MessageColumn(type="uuid"),
}
_WIDER: Final = ({"int", "long"}, {"float", "double"})
_EPOCH_DAY: Final = dt.date(1970, 1, 1)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - wall-clock times have no zone
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
                fastavro.parse_schema(json.loads(reference), named_schemas=self._named)
            self._schema = fastavro.parse_schema(json.loads(text), named_schemas=self._named)
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
                return MessageColumn(type="string")
            case "fixed":
                return self._decimal(schema, place) if _is_decimal(schema) else MessageColumn(type="binary")
            case "array":
                return self._array(schema, place, depth, outer)
            case "map":
                values = self._column(schema["values"], below(place, "{}", depth), depth + 1, outer)
                return MessageColumn(
                    type=checked_type(f"map<string, {values.type}>", place),
                    convert=each_value(values.convert),
                )
            case str() if kind in _PRIMITIVES:
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
        }
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
            raise UnsupportedSchema(f"{place}: it is always null")
        if len(others) == 1:
            column = self._column(others[0], place, depth, outer)
        else:
            names = {branch if isinstance(branch, str) else "" for branch in others}
            if not any(names <= wider for wider in _WIDER):
                raise UnsupportedSchema(f"{place}: a union of {len(others)} types besides null")
            column = _PRIMITIVES["long" if names <= _WIDER[0] else "double"]
        if not nullable:
            return column
        return MessageColumn(type=column.type, convert=optional(column.convert))

    def _primitive(self, schema: Mapping[str, Any], kind: str, place: str) -> MessageColumn:
        if kind not in _PRIMITIVES:
            raise UnsupportedSchema(f"{place}: values of type {kind}")
        if _is_decimal(schema):
            return self._decimal(schema, place)
        connect = _CONNECT.get((kind, str(schema.get("connect.name"))))
        return connect or _LOGICAL.get((kind, str(schema.get("logicalType")))) or _PRIMITIVES[kind]

    @staticmethod
    def _decimal(schema: Mapping[str, Any], place: str) -> MessageColumn:
        text = f"decimal({schema.get('precision', 0)}, {schema.get('scale', 0)})"
        return MessageColumn(type=checked_type(text, place))


def _is_null(branch: Any) -> bool:
    return branch == "null" or (isinstance(branch, dict) and branch.get("type") == "null")


def _is_decimal(schema: Mapping[str, Any]) -> bool:
    return schema.get("logicalType") == "decimal" and schema.get("type") in {"bytes", "fixed"}


def _moment(microseconds: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        raise BadMessage(f"a time of {microseconds} µs is not in the years 0001–9999") from None


def _day(days: int) -> dt.date:
    try:
        return _EPOCH_DAY + dt.timedelta(days=days)
    except OverflowError:
        raise BadMessage(f"the day {days} is not in the years 0001–9999") from None


def _of_milliseconds(value: int) -> dt.datetime:
    return _moment(value * 1_000)


def _of_nanoseconds(value: int) -> dt.datetime:
    if value % 1_000:
        raise BadMessage(f"a time of {value} ns is finer than a microsecond")
    return _moment(value // 1_000)


def _connect(kind: str, convert: Convert | None) -> MessageColumn:
    return MessageColumn(type=kind, convert=convert)


# The types that Debezium marks by name, where Avro has none: https://debezium.io/documentation/reference/
_CONNECT: Final = {
    ("int", "io.debezium.time.Date"): _connect("date", _day),
    ("long", "io.debezium.time.Timestamp"): _connect("timestamp_ntz(ms)", _of_milliseconds),
    ("long", "io.debezium.time.MicroTimestamp"): _connect("timestamp_ntz", _moment),
    ("long", "io.debezium.time.NanoTimestamp"): _connect("timestamp_ntz", _of_nanoseconds),
    ("string", "io.debezium.time.ZonedTimestamp"): _connect("timestamp", None),
}
