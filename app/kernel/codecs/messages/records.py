"""Messages to JSON records: rows, or changes of rows as operation `changelog` reads them.

value, no envelope        the row; as a change {"op": "+A", "row": …}
null (a tombstone)        only as a change: {"op": "-R", "row": the fields of the key}
Debezium's envelope       the envelope with op, before and after; its tombstones and messages (op m) are nothing
a change of a feed        the change, in the form in which it was written
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import Raw

from app.kernel.codecs.faults import shown
from app.kernel.codecs.json.changelog_rows import TRUNCATED
from app.kernel.codecs.messages.framing import framed
from app.kernel.codecs.messages.reading import (
    BadMessage,
    MessageColumn,
    MessageReader,
    MessageSchema,
    add_columns,
)
from app.kernel.codecs.not_json import reason_of
from app.kernel.format.schema.types import Struct, parse_type

SchemaOf = Callable[["MessageFormat", int], MessageSchema]
"""The schema of a format with an id. Raises BadMessage for an id without one, or whose schema is not supported."""


class MessageFormat(str, Enum):
    """The format of the values, or of the keys, of messages."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    STRING = "string"


REGISTERED: Final = (MessageFormat.AVRO, MessageFormat.PROTOBUF)
"""The formats that need a schema."""


class Envelope(str, Enum):
    """What the value of a message is."""

    NONE = "none"
    DEBEZIUM = "debezium"
    CHANGES = "changes"


class Fact(str, Enum):
    """What is known of a message beside its key and value."""

    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A message. `timestamp_ms`: milliseconds since 1970; None if it has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None


class RecordRules(msgspec.Struct, frozen=True, kw_only=True):
    """How messages become records.

    `key_format`: fields of the key are added to rows that lack them, and tombstones delete their key; None to ignore
    keys. `key_field`: the field of a key that is a single value. `value_field`: that of a text. `framed_json`: JSON has
    the id of a schema in front. `include`: facts of a message, and their fields in its row. `changes`: whether the
    records are changes.
    """

    format: MessageFormat
    envelope: Envelope = Envelope.NONE
    key_format: MessageFormat | None = None
    key_field: str = "key"
    value_field: str = "value"
    framed_json: bool = False
    include: dict[Fact, str] = {}
    changes: bool = False


_RAW: Final = msgspec.json.Decoder(Raw)
_RAW_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])
_VALUE: Final = msgspec.json.Decoder()
_ENCODER: Final = msgspec.json.Encoder(decimal_format="string")
_ENVELOPE_OPS: Final = ("c", "r", "u", "d")


class _EnvelopeOp(msgspec.Struct):
    op: str | None = None
    payload: _EnvelopeOp | None = None


_OP: Final = msgspec.json.Decoder(_EnvelopeOp | None)


class RecordMaker:
    """Makes the records of messages. `schemas`: those of a registry."""

    def __init__(self, rules: RecordRules, schemas: SchemaOf) -> None:
        self._rules = rules
        self._schemas = schemas
        # By identity: a schema of Protobuf has a reader for each type of messages.
        self._value_readers: dict[int, MessageReader] = {}
        self._key_readers: dict[int, MessageReader] = {}
        # The bytes of a value are its row if nothing is added to it.
        self._is_plain = rules.format is MessageFormat.JSON and rules.key_format is None and not rules.include

    def record(self, message: Message) -> bytes | None:
        """The record as one line of JSON, without its end; None for a message without effect. Raises BadMessage."""
        if self._rules.envelope is Envelope.DEBEZIUM:
            text = self._enveloped(message)
        elif self._rules.envelope is Envelope.CHANGES:
            text = self._of_feed(message)
        elif message.value is None:
            text = self._tombstone(message)
        elif self._is_plain:
            text = self._change(self._json(message.value))
        else:
            text = self._change(_ENCODER.encode(self._row(message, message.value)))
        # The line ends of JSON are between its values: within a text they are escaped.
        return text if text is None or b"\n" not in text else text.replace(b"\n", b" ")

    def columns(self) -> dict[str, str] | None:
        """The types of the columns of the rows so far, by name; None if schemas do not determine them all."""
        rules = self._rules
        if rules.format is MessageFormat.JSON or rules.key_format is MessageFormat.JSON:
            return None
        column_types: dict[str, str] = {}
        if rules.format is MessageFormat.STRING:
            column_types[rules.value_field] = "string"
        for reader in self._value_readers.values():
            members = reader.members or {}
            if rules.envelope is Envelope.DEBEZIUM:
                add_columns(column_types, _types_of_struct(members.get("after")))
            elif rules.envelope is Envelope.CHANGES:
                add_columns(column_types, _types_of_struct(members.get("row")))
            else:
                add_columns(column_types, {name: column.type for name, column in members.items()})
        for reader in self._key_readers.values():
            single = {rules.key_field: reader.type}
            key = reader.members
            types = single if key is None else {name: column.type for name, column in key.items()}
            add_columns(
                column_types, {name: text for name, text in types.items() if name not in column_types}
            )
        if rules.key_format is MessageFormat.STRING:
            column_types.setdefault(rules.key_field, "string")
        return column_types | {name: _FACT_TYPES[fact] for fact, name in rules.include.items()}

    def _registered(self, form: MessageFormat, payload: bytes, readers: dict[int, MessageReader]) -> Any:
        """The value of a payload with the id of a schema."""
        number, content = framed(payload)
        reader, content = self._schemas(form, number).reader(content)
        readers[id(reader)] = reader
        return reader.decode(content)

    def _change(self, row: bytes) -> bytes:
        return b'{"op":"+A","row":%b}' % row if self._rules.changes else row

    def _row(self, message: Message, value: bytes) -> dict[str, Any]:
        row = self._value(value)
        if not isinstance(row, dict):
            raise BadMessage(f"its value is {_kind(row)}, not an object with the fields of a row")
        if self._rules.key_format is not None and message.key is not None:
            for name, part in self._key(message.key).items():
                row.setdefault(name, part)
        return self._with_facts(row, message)

    def _with_facts(self, row: dict[str, Any], message: Message) -> dict[str, Any]:
        for fact, name in self._rules.include.items():
            if name in row:
                raise BadMessage(f"it has a field {shown(name)} itself, which is to hold the {fact.value}")
            row[name] = _fact(message, fact)
        return row

    def _tombstone(self, message: Message) -> bytes:
        if self._rules.key_format is None or not self._rules.changes:
            raise BadMessage(
                "it has no value, so it deletes its key, but the source reads no keys (key_format)"
            )
        if message.key is None:
            raise BadMessage("it has neither a key nor a value")
        return b'{"op":"-R","row":%b}' % _ENCODER.encode(self._key(message.key))

    def _value(self, value: bytes) -> Any:
        match self._rules.format:
            case MessageFormat.STRING:
                return {self._rules.value_field: _text(value)}
            case MessageFormat.JSON:
                text = self._unframed(value)
                try:
                    return _RAW_OBJECT.decode(text)
                except (msgspec.DecodeError, RecursionError) as error:
                    raise BadMessage(f"it is not a JSON object: {reason_of(text, error)}") from None
            case MessageFormat.AVRO | MessageFormat.PROTOBUF as form:
                return self._registered(form, value, self._value_readers)

    def _json(self, value: bytes) -> bytes:
        """The value, whose text is one JSON value."""
        text = self._unframed(value)
        try:
            return bytes(_RAW.decode(text))
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadMessage(f"it is not JSON: {reason_of(text, error)}") from None

    def _unframed(self, value: bytes) -> bytes:
        return framed(value)[1] if self._rules.framed_json else value

    def _key(self, key: bytes) -> dict[str, Any]:
        """The fields of a key."""
        match self._rules.key_format:
            case MessageFormat.JSON:
                text = self._unframed(key)
                try:
                    key_value = _VALUE.decode(text)
                except (msgspec.DecodeError, RecursionError) as error:
                    raise BadMessage(f"its key is not JSON: {reason_of(text, error)}") from None
                if isinstance(key_value, dict) and key_value.keys() == {"schema", "payload"}:
                    key_value = key_value["payload"]
            case MessageFormat.AVRO | MessageFormat.PROTOBUF as form:
                try:
                    key_value = self._registered(form, key, self._key_readers)
                except BadMessage as error:
                    raise BadMessage(f"its key: {error}") from None
            case _:
                key_value = _text(key)
        return key_value if isinstance(key_value, dict) else {self._rules.key_field: key_value}

    def _enveloped(self, message: Message) -> bytes | None:
        if message.value is None:
            # It follows the envelope of a delete, for the compaction of the topic.
            return None
        if self._rules.format is MessageFormat.JSON:
            return self._json_envelope(message, message.value)
        envelope = self._value(message.value)
        if not isinstance(envelope, dict) or "op" not in envelope:
            raise BadMessage("it is not an envelope of Debezium: it has no op")
        if not _has_effect(envelope["op"]):
            return None
        after = envelope.get("after")
        if isinstance(after, dict):
            self._with_facts(after, message)
        return _ENCODER.encode({"op": envelope["op"], "before": envelope.get("before"), "after": after})

    def _of_feed(self, message: Message) -> bytes | None:
        """The change of a message; None for a message without a value, which a compaction of the topic leaves."""
        if message.value is None:
            return None
        if self._rules.format is MessageFormat.JSON and not self._rules.include:
            return self._json(message.value)
        change = self._value(message.value)
        row = change.get("row") if isinstance(change, dict) else None
        if isinstance(row, Raw):
            try:
                row = _RAW_OBJECT.decode(row)
            except msgspec.DecodeError as error:
                raise BadMessage(f"its member row is not an object: {error}") from None
        if not isinstance(row, dict):
            raise BadMessage("it is not a change of a feed: it has no row")
        return _ENCODER.encode(change | {"row": self._with_facts(row, message)})

    def _json_envelope(self, message: Message, value: bytes) -> bytes | None:
        text = self._json(value)
        try:
            envelope = _OP.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadMessage(f"it is not an envelope of Debezium: {error}") from None
        if envelope is not None and envelope.op is None and envelope.payload is not None:
            envelope = envelope.payload
            text = bytes(_RAW_OBJECT.decode(text)["payload"])
        if envelope is None:
            return None
        if envelope.op is None:
            raise BadMessage("it is not an envelope of Debezium: it has no op")
        if not _has_effect(envelope.op):
            return None
        return self._included(text, message) if self._rules.include else text

    def _included(self, text: bytes, message: Message) -> bytes:
        envelope: dict[str, Any] = _RAW_OBJECT.decode(text)
        after = bytes(envelope.get("after", b"null"))
        if after != b"null":
            try:
                row: dict[str, Any] = _RAW_OBJECT.decode(after)
            except msgspec.DecodeError as error:
                raise BadMessage(f"its member after is not an object: {error}") from None
            envelope["after"] = self._with_facts(row, message)
        return _ENCODER.encode(envelope)


def json_line(row: dict[str, Any]) -> bytes:
    """A decoded row as one line of JSON, without its end."""
    return _ENCODER.encode(row)


def _types_of_struct(column: MessageColumn | None) -> dict[str, str]:
    """The types of the members of a struct, by name."""
    struct = None if column is None else parse_type(column.type)
    return {name: str(member) for name, member in struct.members} if isinstance(struct, Struct) else {}


def _has_effect(op: Any) -> bool:
    """Whether an envelope changes rows. Raises BadMessage for one that cannot be applied."""
    if op == "t":
        raise BadMessage(TRUNCATED)
    if op == "m":
        # A message that a transaction of the database has left, for other readers.
        return False
    if op not in _ENVELOPE_OPS:
        raise BadMessage(f"the op of its envelope is {shown(str(op))}, not one of {', '.join(_ENVELOPE_OPS)}")
    return True


def _fact(message: Message, fact: Fact) -> Any:
    match fact:
        case Fact.TOPIC:
            return message.topic
        case Fact.PARTITION:
            return message.partition
        case Fact.OFFSET:
            return message.offset
        case Fact.TIMESTAMP:
            if message.timestamp_ms is None:
                return None
            try:
                return _EPOCH + dt.timedelta(milliseconds=message.timestamp_ms)
            except OverflowError:
                raise BadMessage(
                    f"its time of {message.timestamp_ms} ms is not in the years 0001–9999"
                ) from None


_FACT_TYPES: Final = {
    Fact.TOPIC: "string",
    Fact.PARTITION: "int32",
    Fact.OFFSET: "int64",
    Fact.TIMESTAMP: "timestamp(ms)",
}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BadMessage(f"it is not UTF-8: {error.reason} at byte {error.start}") from None


def _kind(value: Any) -> str:
    return "null" if value is None else f"a single {type(value).__name__}"
