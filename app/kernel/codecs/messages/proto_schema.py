"""Protobuf schemas: their values as JSON values, and their fields as those of a dataset.

https://protobuf.dev/programming-guides/proto3/

The table of types (`app.kernel.format.schema.types.foreign`) has the type of each kind. Structs, values and lists of
JSON are their text. A field without presence (a scalar of proto3) is never null. The members of a `oneof` are fields
of their own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from app.kernel.codecs.messages.framing import message_indexes
from app.kernel.codecs.messages.reading import (
    BadMessage,
    Convert,
    MessageColumn,
    MessageReader,
    UnsupportedSchema,
    below,
    checked_type,
    each,
    finite,
    struct_of,
)
from app.kernel.format.schema.types import FINER_THAN_MICROS, OUTSIDE_YEARS, Form, foreign_types

_STANDARD: Final = tuple(
    module.DESCRIPTOR.serialized_pb
    for module in (
        any_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
)
_TYPES: Final = foreign_types(Form.PROTOBUF)
_REALS: Final = ("float", "double")
# FieldDescriptor has the kinds as TYPE_BOOL and so on.
_SCALARS: Final = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): MessageColumn(
        type=text, convert=finite if name in _REALS else None
    )
    for name, text in _TYPES.items()
    if hasattr(FieldDescriptor, f"TYPE_{name.upper()}") and name not in ("enum", "message")
}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class ProtoSchema:
    """A file of message types, of which a message names one by its path."""

    def __init__(self, file: bytes, references: Sequence[tuple[str, bytes]] = ()) -> None:
        """`file`: a serialized `FileDescriptorProto`. `references`: the files that it imports, each after those that it
        imports itself, with the names under which they are imported. Raises UnsupportedSchema.
        """
        pool = DescriptorPool()
        names = set()
        try:
            for content in _STANDARD:
                names.add(pool.AddSerializedFile(content).name)
            for name, content in references:
                if name not in names:
                    _add(pool, name, content)
                    names.add(name)
            self._file = _add(pool, "message.proto", file)
        except (DecodeError, TypeError, ValueError, KeyError, RecursionError) as error:
            raise UnsupportedSchema(f"it is not a Protobuf file: {error}") from None
        self._readers: dict[tuple[int, ...], _Reader] = {}

    def reader(self, payload: bytes) -> tuple[MessageReader, bytes]:
        """See `MessageSchema.reader`. The payload begins with the path of the message type."""
        indexes, content = message_indexes(payload)
        reader = self._readers.get(indexes)
        if reader is None:
            try:
                reader = self._readers[indexes] = _Reader(self._type(indexes))
            except UnsupportedSchema as error:
                raise BadMessage(str(error)) from None
        return reader, content

    def _type(self, indexes: tuple[int, ...]) -> Descriptor:
        types = list(self._file.message_types_by_name.values())
        message_type = None
        for index in indexes:
            if not 0 <= index < len(types):
                raise BadMessage(f"its schema has no message type {list(indexes)}")
            message_type = types[index]
            types = list(message_type.nested_types)
        if message_type is None:
            raise BadMessage("it names no message type")
        return message_type


class _Reader:
    """Decodes messages of one type."""

    def __init__(self, kind: Descriptor) -> None:
        self._class = GetMessageClass(kind)
        self._name = kind.full_name
        members, self._convert = _message(kind, "", 0, ())
        self.members: dict[str, MessageColumn] | None = members
        self.type = checked_type(struct_of(members, self._name), self._name)

    def decode(self, content: bytes) -> Any:
        message = self._class()
        try:
            message.ParseFromString(content)
        except DecodeError as error:
            raise BadMessage(f"it is not a Protobuf message of type {self._name}: {error}") from None
        return self._convert(message)


def _add(pool: DescriptorPool, name: str, content: bytes) -> Any:
    """Adds a file under the name by which others import it, which the registry knows and the file may not."""
    file = descriptor_pb2.FileDescriptorProto.FromString(content)
    file.name = name
    return pool.AddSerializedFile(file.SerializeToString())


def _message(
    kind: Descriptor, place: str, depth: int, outer: tuple[str, ...]
) -> tuple[dict[str, MessageColumn], Convert]:
    """The columns of a message type, and its converter to a dict."""
    if kind.full_name in outer:
        raise UnsupportedSchema(f"{place}: the message {kind.full_name} contains itself")
    around = (*outer, kind.full_name)
    members: dict[str, MessageColumn] = {}
    present: dict[str, bool] = {}
    for field in kind.fields:
        members[field.name] = _field(field, below(place, field.name, depth), depth + 1, around)
        present[field.name] = field.has_presence
    readers = [(name, column.convert, present[name]) for name, column in members.items()]

    def convert(message: Any) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, converter, optional in readers:
            if optional and not message.HasField(name):
                values[name] = None
            else:
                value = getattr(message, name)
                values[name] = value if converter is None else converter(value)
        return values

    return members, convert


def _field(field: FieldDescriptor, place: str, depth: int, outer: tuple[str, ...]) -> MessageColumn:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map(field.message_type, place, depth, outer)
    single = _single(field, place, depth, outer)
    if field.is_repeated:
        convert = each(single.convert) or list
        return MessageColumn(type=checked_type(f"list<{single.type}>", place), convert=convert)
    return single


def _single(field: FieldDescriptor, place: str, depth: int, outer: tuple[str, ...]) -> MessageColumn:
    """The column of one value of a field."""
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return MessageColumn(type=_TYPES["enum"], convert=lambda number: names.get(number, str(number)))
    if field.message_type is None:
        return _SCALARS[field.type]
    column = _KNOWN.get(field.message_type.full_name)
    if column is not None:
        return column
    value_field = field.message_type.fields_by_name.get("value")
    if field.message_type.file.name == wrappers_pb2.DESCRIPTOR.name and value_field is not None:
        return _wrapper(_SCALARS[value_field.type])
    members, convert = _message(field.message_type, place, depth, outer)
    return MessageColumn(type=checked_type(struct_of(members, place), place), convert=convert)


def _map(entry: Descriptor, place: str, depth: int, outer: tuple[str, ...]) -> MessageColumn:
    key = _SCALARS[entry.fields_by_name["key"].type]
    value = _single(entry.fields_by_name["value"], below(place, "{}", depth), depth + 1, outer)
    value_convert = value.convert or (lambda single: single)

    def convert(values: Any) -> dict[str, Any]:
        return {_text(name): value_convert(values[name]) for name in values}

    return MessageColumn(type=checked_type(f"map<{key.type}, {value.type}>", place), convert=convert)


def _text(key: Any) -> str:
    """A key of a map as the member of an object."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _wrapper(inner: MessageColumn) -> MessageColumn:
    finish = inner.convert or (lambda value: value)
    return MessageColumn(type=inner.type, convert=lambda message: finish(message.value))


def _timestamp(message: Any) -> dt.datetime:
    if message.nanos % 1_000:
        raise BadMessage(f"a time with {message.nanos} ns {FINER_THAN_MICROS}")
    try:
        return _EPOCH + dt.timedelta(seconds=message.seconds, microseconds=message.nanos // 1_000)
    except OverflowError:
        raise BadMessage(f"a time of {message.seconds} s since 1970-01-01, {OUTSIDE_YEARS}") from None


def _json_text(message: Any) -> str:
    try:
        text: str = json_format.MessageToJson(message, indent=None, ensure_ascii=False)
    except (ValueError, json_format.Error) as error:
        raise BadMessage(f"a value of type {message.DESCRIPTOR.full_name}: {error}") from None
    return text


def _duration(message: Any) -> str:
    return _json_text(message).strip('"')


_KNOWN: Final = {
    name: MessageColumn(type=_TYPES[name], convert=convert)
    for name, convert in {
        "google.protobuf.Timestamp": _timestamp,
        "google.protobuf.Duration": _duration,
        "google.protobuf.FieldMask": _duration,
        "google.protobuf.Struct": _json_text,
        "google.protobuf.Value": _json_text,
        "google.protobuf.ListValue": _json_text,
    }.items()
}
