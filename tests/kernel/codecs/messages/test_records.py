"""Messages become rows, or changes of rows."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from app.kernel.codecs.messages.avro_schema import AvroSchema
from app.kernel.codecs.messages.framing import framed
from app.kernel.codecs.messages.reading import BadMessage, MessageSchema
from app.kernel.codecs.messages.records import (
    Envelope,
    Fact,
    Message,
    MessageFormat,
    RecordMaker,
    RecordRules,
)

ROW = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": "int"}, {"name": "v", "type": "string"}],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "row"]},
        {"name": "op", "type": "string"},
        {"name": "source", "type": {"type": "map", "values": "string"}},
    ],
}
SCHEMAS = {1: ROW, 2: ENVELOPE, 3: "string"}


def schemas(form: MessageFormat, number: int) -> MessageSchema:
    assert form is MessageFormat.AVRO
    if number not in SCHEMAS:
        raise BadMessage(f"no schema {number}")
    return AvroSchema(json.dumps(SCHEMAS[number]))


def avro(number: int, value: Any) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(SCHEMAS[number]), value)
    return b"\x00" + number.to_bytes(4, "big") + file.getvalue()


def record(value: bytes | None, *, key: bytes | None = None, **rules: Any) -> Any:
    """The parsed record of a message; None for a message without effect."""
    form = rules.pop("format", MessageFormat.JSON)
    message = Message(topic="t", partition=3, offset=17, timestamp_ms=1_795_255_200_250, key=key, value=value)
    text = RecordMaker(RecordRules(format=form, **rules), schemas).record(message)
    assert text is None or b"\n" not in text
    return None if text is None else json.loads(text)


def test_json_value_is_the_row() -> None:
    assert record(b' {"id": 1,\r\n "v": "a\\nb"} ') == {"id": 1, "v": "a\nb"}
    assert record(b'{"id": 1}', changes=True) == {"op": "+A", "row": {"id": 1}}


def test_numbers_of_json_keep_their_digits() -> None:
    rules = RecordRules(format=MessageFormat.JSON, include={Fact.OFFSET: "o"})
    message = Message(
        topic="t",
        partition=0,
        offset=1,
        timestamp_ms=None,
        key=None,
        value=b'{"d": 1.10, "e": 9007199254740993}',
    )
    assert RecordMaker(rules, schemas).record(message) == b'{"d":1.10,"e":9007199254740993,"o":1}'


@pytest.mark.parametrize("value", [b"", b"{", b'{"id": 1}, "op": "-R"', b'{"id": 1} {"id": 2}', b"nul"])
def test_value_that_is_not_one_json_value_is_rejected(value: bytes) -> None:
    for changes in (False, True):
        with pytest.raises(BadMessage, match="not JSON"):
            record(value, changes=changes)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (rb'{"id": 1, "v": ["a", "b\uD83D"]}', "/v/1: the text has"),
        (rb'{"\udc00": 1}', "/: a member's name has"),
    ],
)
def test_half_of_a_surrogate_pair_is_named(value: bytes, place: str) -> None:
    for rules in ({}, {"changes": True}):
        with pytest.raises(BadMessage) as caught:
            record(value, **rules)
        assert f"{place} the escape \\ud" in str(caught.value)
    with pytest.raises(BadMessage) as caught:
        record(b'{"id": 1}', key=value, key_format=MessageFormat.JSON)
    assert f"its key is not JSON: {place} the escape \\ud" in str(caught.value)


def test_text_is_a_field() -> None:
    assert record("ł".encode(), format=MessageFormat.STRING, value_field="line") == {"line": "ł"}
    with pytest.raises(BadMessage, match="not UTF-8"):
        record(b"\xff", format=MessageFormat.STRING)


def test_avro_value_is_the_row() -> None:
    assert record(avro(1, {"id": 1, "v": "a"}), format=MessageFormat.AVRO) == {"id": 1, "v": "a"}
    for value in (
        b"",
        b"\x01" + avro(1, {"id": 1, "v": "a"})[1:],
        b"\x00\x00",
        avro(3, "text"),
        b"\x00\x00\x00\x00\x09x",
    ):
        with pytest.raises(BadMessage):
            record(value, format=MessageFormat.AVRO)


def test_facts_of_the_message_are_fields() -> None:
    include = {Fact.TOPIC: "t", Fact.PARTITION: "p", Fact.OFFSET: "o", Fact.TIMESTAMP: "at"}
    facts = {"t": "t", "p": 3, "o": 17, "at": "2026-11-21T10:00:00.250000Z"}
    assert record(b'{"id": 1}', include=include) == {"id": 1, **facts}
    envelope = b'{"op": "u", "before": {"id": 1}, "after": {"id": 1}}'
    assert record(envelope, include=include, envelope=Envelope.DEBEZIUM) == {
        "op": "u",
        "before": {"id": 1},
        "after": {"id": 1, **facts},
    }
    with pytest.raises(BadMessage, match='a field "p" itself'):
        record(b'{"p": 1}', include=include)


def test_fields_of_the_key_complete_the_row() -> None:
    assert record(b'{"v": 2}', key=b"k", key_format=MessageFormat.STRING, key_field="id") == {
        "v": 2,
        "id": "k",
    }
    assert record(b'{"v": 2, "id": 1}', key=b'{"id": 7}', key_format=MessageFormat.JSON) == {"v": 2, "id": 1}
    assert record(b'{"v": 2}', key=b"7", key_format=MessageFormat.JSON, key_field="id") == {"v": 2, "id": 7}
    assert record(b'{"v": 2}', key=avro(3, "k"), key_format=MessageFormat.AVRO, key_field="id") == {
        "v": 2,
        "id": "k",
    }
    assert record(b'{"v": 2}', key=None, key_format=MessageFormat.JSON) == {"v": 2}
    with pytest.raises(BadMessage, match="its key"):
        record(b'{"v": 2}', key=b"{", key_format=MessageFormat.JSON)


def test_tombstone_deletes_its_key() -> None:
    rules: dict[str, Any] = {"changes": True, "key_format": MessageFormat.JSON, "key_field": "id"}
    assert record(None, key=b"7", **rules) == {"op": "-R", "row": {"id": 7}}
    assert record(None, key=b'{"a": 1, "b": 2}', **rules) == {"op": "-R", "row": {"a": 1, "b": 2}}
    connect = b'{"schema": {"type": "struct"}, "payload": {"id": 7}}'
    assert record(None, key=connect, **rules) == {"op": "-R", "row": {"id": 7}}
    with pytest.raises(BadMessage, match="neither a key nor a value"):
        record(None, **rules)
    with pytest.raises(BadMessage, match="reads no keys"):
        record(None, key=b"7")


def test_json_envelope_is_the_change() -> None:
    update = {"op": "u", "before": {"id": 1}, "after": {"id": 1, "v": 2}, "source": {"lsn": 5}, "ts_ms": 1}
    assert record(json.dumps(update).encode(), envelope=Envelope.DEBEZIUM) == update
    wrapped = {"schema": {"type": "struct"}, "payload": update}
    assert record(json.dumps(wrapped).encode(), envelope=Envelope.DEBEZIUM) == update


def test_avro_envelope_is_the_change() -> None:
    rules: dict[str, Any] = {"format": MessageFormat.AVRO, "envelope": Envelope.DEBEZIUM}
    new = {"id": 1, "v": "b"}
    created = avro(2, {"before": None, "after": new, "op": "c", "source": {"db": "x"}})
    assert record(created, **rules) == {"op": "c", "before": None, "after": new}
    deleted = avro(2, {"before": new, "after": None, "op": "d", "source": {}})
    assert record(deleted, **rules) == {"op": "d", "before": new, "after": None}


def test_envelopes_without_effect_are_left_out() -> None:
    for value in (None, b"null", b'{"op": "m", "message": {}}', b'{"schema": null, "payload": {"op": "m"}}'):
        assert record(value, key=b"1", envelope=Envelope.DEBEZIUM) is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"op": "t"}', "all rows of the source were deleted"),
        (b'{"op": "x"}', "op of its envelope"),
        (b'{"id": 1}', "no op"),
        (b"[]", "not an envelope"),
    ],
)
def test_envelope_that_cannot_be_applied_is_rejected(value: bytes, reason: str) -> None:
    with pytest.raises(BadMessage, match=reason):
        record(value, envelope=Envelope.DEBEZIUM)


def test_framing_has_the_id_of_the_schema() -> None:
    assert framed(b"\x00\x00\x01\x00\x02rest") == (65538, b"rest")
    assert record(b'\x00\x00\x00\x00\x01{"id": 1}', framed_json=True) == {"id": 1}
    with pytest.raises(BadMessage, match="does not begin with a zero byte"):
        record(b'{"id": 1}', framed_json=True)
