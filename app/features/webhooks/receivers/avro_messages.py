"""Changes as Avro messages of a topic, under schemas that a registry has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from app.core.changes.values import DeliveryFormat
from app.features.webhooks.values import ChangeMessage, Register, TopicValue
from app.kernel.changelog.delivery_forms import ChangeForm, json_names, one_array, symbols_of
from app.kernel.codecs.json.encode import change_members
from app.kernel.codecs.messages.avro_output import avro_namespace, avro_schema, avro_values
from app.kernel.codecs.messages.framing import with_frame
from app.kernel.format.dataset import DEFAULT_VOCABULARY
from app.kernel.format.partition.members import key_rows, roots
from app.kernel.format.rows.changelog import Op

_NULLABLE: Final = ("event_time", "corrects_offset", "before", "after")


class AvroPart(NamedTuple):
    """What the keys, or the values, of messages are made of."""

    rows: pa.StructArray
    schema: str
    subject: str

    def encoded(self, register: Register) -> Iterator[bytes]:
        """Each row as a message, under the id of its schema."""
        number = register(self.subject, self.schema)
        return (with_frame(number, each) for each in avro_values(self.rows, self.schema))


def avro_messages(
    changes: pa.Table,
    delivery_format: DeliveryFormat,
    record_key: Sequence[str],
    value: TopicValue,
    topic: str,
    register: Register,
) -> Iterator[ChangeMessage]:
    """The messages of the changes of a page, in their order. Raises UnsupportedSchema, and what `register` raises."""
    key, content = avro_parts(changes, delivery_format, record_key, value, topic)
    keys: Iterable[bytes | None] = repeat(None) if key is None else key.encoded(register)
    facts: Mapping[str, pa.Array | pa.ChunkedArray] = dict(
        zip(changes.column_names, changes.columns, strict=True)
    )
    if delivery_format.form is ChangeForm.DEBEZIUM:
        facts = _members(one_array(changes.column("source")))
    version = facts["_commit_version" if delivery_format.form is ChangeForm.DELTA else "version"].to_pylist()
    offset: Iterable[int | None] = facts["offset"].to_pylist() if "offset" in facts else repeat(None)
    deletions: Iterable[bool] = repeat(False)
    if value is TopicValue.ROW:
        deletions = pc.equal(changes.column("op"), int(Op.RETRACT)).to_pylist()
    # Some of them have no end.
    parts = zip(content.encoded(register), keys, deletions, version, offset, strict=False)
    for payload, key_payload, ends, at_version, at in parts:
        yield ChangeMessage(
            key=key_payload,
            value=None if ends else payload,
            version=str(at_version).encode(),
            offset=None if at is None else str(at).encode(),
        )


def avro_parts(
    changes: pa.Table,
    delivery_format: DeliveryFormat,
    record_key: Sequence[str],
    value: TopicValue,
    topic: str,
) -> tuple[AvroPart | None, AvroPart]:
    """What keys and values are made of; no keys without a record key. Raises UnsupportedSchema."""
    rows = _rows(changes)
    namespace = avro_namespace(topic)
    key = None
    if record_key:
        fields = pa.table(_members(rows))
        whole = fields.select(roots(record_key, fields.column_names))
        keys = one_array(key_rows(whole, record_key).to_struct_array())
        key = AvroPart(keys, avro_schema(_required(keys.type), f"{namespace}.Key"), f"{topic}-key")
    if value is TopicValue.ROW:
        content, name = rows, "Row"
    else:
        names = json_names(delivery_format.form, delivery_format.vocabulary or DEFAULT_VOCABULARY)
        content, name = _changes(changes, delivery_format.form, names), "Change"
    return key, AvroPart(content, avro_schema(content.type, f"{namespace}.{name}"), f"{topic}-value")


def _rows(changes: pa.Table) -> pa.StructArray:
    """The row of each change: of an envelope the new one, or the one that is gone."""
    if "row" in changes.column_names:
        return one_array(changes.column("row"))
    before, after = one_array(changes.column("before")), one_array(changes.column("after"))
    return pc.if_else(pc.is_null(after), before, after)


def _changes(changes: pa.Table, form: ChangeForm, names: Mapping[str, str]) -> pa.StructArray:
    """The changes with the members that they have in JSON."""
    members = change_members(changes, symbols_of(form))
    fields = [
        pa.field(names.get(name, name), column.type, nullable=name in _NULLABLE)
        for name, column in members.items()
    ]
    return pa.StructArray.from_arrays([one_array(each) for each in members.values()], fields=fields)


def _members(structs: pa.StructArray) -> dict[str, pa.Array]:
    return dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))


def _required(kind: pa.DataType) -> pa.DataType:
    """The type without nulls, also within structs: no value of a key is null."""
    if not kinds.is_struct(kind):
        return kind
    return pa.struct([pa.field(field.name, _required(field.type), nullable=False) for field in kind])
