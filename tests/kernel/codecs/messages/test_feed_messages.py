"""Messages with changes of a feed, as webhooks write them to topics, are read back as changes."""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
import pytest

from app.kernel.changelog.delivery_forms import ChangeForm, in_form, json_names, symbols_of
from app.kernel.codecs import Format
from app.kernel.codecs.json.encode import change_members, encode_changes_json
from app.kernel.codecs.messages.avro_output import avro_schema, avro_values
from app.kernel.codecs.messages.avro_schema import AvroSchema
from app.kernel.codecs.messages.framing import with_frame
from app.kernel.codecs.messages.reading import BadMessage
from app.kernel.codecs.messages.records import (
    Envelope,
    Fact,
    Message,
    MessageFormat,
    RecordMaker,
    RecordRules,
)
from app.kernel.format.dataset import DEFAULT_VOCABULARY
from app.kernel.format.rows.change_schema import change_schema
from app.kernel.format.rows.changelog import OP_COLUMN
from tests.kernel.codecs.changes import stepwise
from tests.kernel.codecs.samples import schema_of
from tests.kernel.codecs.test_feed_as_input import EXPECTED, TYPES, changes_of, rows_of

SCHEMA: Final = schema_of(
    {"id": "int64!", **TYPES, "tags": "list<decimal(9, 2)>", "place": "struct<a: uuid>"}
)
FORMS: Final = [form for form in ChangeForm if form is not ChangeForm.DEBEZIUM]


def message(value: bytes | None) -> Message:
    return Message(topic="t", partition=0, offset=7, timestamp_ms=None, key=None, value=value)


def maker(form: MessageFormat, schema: str = "", **rules: Any) -> RecordMaker:
    record_rules = RecordRules(format=form, envelope=Envelope.CHANGES, changes=True, **rules)
    return RecordMaker(record_rules, lambda *_: AvroSchema(schema))


def check(made: RecordMaker, values: list[bytes], form: ChangeForm) -> None:
    records = [made.record(message(value)) for value in values]
    found = stepwise(
        Format.NDJSON, b"\n".join(text for text in records if text), change_schema(SCHEMA, ["id"])
    )
    ops, places = EXPECTED[form]
    assert found[OP_COLUMN].to_pylist() == ops
    expected = rows_of(SCHEMA).take(pa.array(places))
    for name in SCHEMA.names():
        assert found[name].to_pylist() == expected[name].to_pylist(), name


@pytest.mark.parametrize("form", FORMS)
def test_changes_in_json_are_read_in_every_form(form: ChangeForm) -> None:
    events = in_form(changes_of(SCHEMA), form, "d").table
    names = json_names(form, DEFAULT_VOCABULARY)
    text = encode_changes_json(events, as_ndjson=True, symbols=symbols_of(form), names=names)
    check(maker(MessageFormat.JSON), text.splitlines(), form)


@pytest.mark.parametrize("form", FORMS)
def test_changes_in_avro_are_read_in_every_form(form: ChangeForm) -> None:
    events = in_form(changes_of(SCHEMA), form, "d").table
    members = change_members(events, symbols_of(form))
    arrays = [column.combine_chunks() for column in members.values()]
    structs = pa.StructArray.from_arrays(arrays, list(members))
    schema = avro_schema(structs.type, "t.Change")
    values = [with_frame(1, each) for each in avro_values(structs, schema)]
    made = maker(MessageFormat.AVRO, schema)
    check(made, values, form)
    columns = made.columns()
    assert columns is not None
    assert list(columns) == SCHEMA.names()


def test_facts_are_fields_of_the_row() -> None:
    made = maker(MessageFormat.JSON, include={Fact.OFFSET: "at"})
    text = made.record(message(b'{"op":"+A","row":{"id":1},"offset":0}'))
    assert text is not None
    assert json.loads(text) == {"op": "+A", "row": {"id": 1, "at": 7}, "offset": 0}


@pytest.mark.parametrize("value", [b"1", b'{"op":"+A"}', b'{"op":"+A","row":1}'])
def test_message_without_a_row_is_bad(value: bytes) -> None:
    with pytest.raises(BadMessage):
        maker(MessageFormat.JSON, include={Fact.OFFSET: "at"}).record(message(value))


def test_message_without_a_value_is_nothing() -> None:
    assert maker(MessageFormat.JSON).record(message(None)) is None
