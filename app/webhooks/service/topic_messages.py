"""The messages of a topic: one for each change, with the record key of its row as key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from app.changelog.forms import ChangeForm, json_names
from app.changes.values import DeliveryFormat
from app.format.dataset import DEFAULT_VOCABULARY
from app.format.partition.members import member_path
from app.kafka.writer import OutMessage
from app.webhooks.values import TopicValue

DELIVERY_HEADER: Final = "headwater-delivery"
VERSION_HEADER: Final = "headwater-version"
OFFSET_HEADER: Final = "headwater-offset"
_NULL: Final = b"null"
_Members = dict[str, msgspec.Raw]


def topic_messages(
    delivery_id: str,
    delivery_format: DeliveryFormat,
    changes: bytes,
    *,
    record_key: Sequence[str],
    value: TopicValue,
) -> list[OutMessage]:
    """The messages of the changes in a JSON array, in their order. Rows without a record key have messages without key.

    The form `delta` has no offsets, so its messages have no header with one.
    """
    names = json_names(delivery_format.form, delivery_format.vocabulary or DEFAULT_VOCABULARY)
    messages = []
    for number, change in enumerate(msgspec.json.decode(changes, type=list[msgspec.Raw])):
        members = msgspec.json.decode(change, type=_Members)
        row, facts = members.get("row"), members
        version, offset = names.get("version", "version"), names.get("offset", "offset")
        if delivery_format.form is ChangeForm.DEBEZIUM:
            row = members["before"] if bytes(members["after"]) == _NULL else members["after"]
            facts = msgspec.json.decode(members["source"], type=_Members)
            version, offset = "version", "offset"
        elif delivery_format.form is ChangeForm.DELTA:
            version = "_commit_version"
        headers = [(DELIVERY_HEADER, f"{delivery_id}/{number}".encode())]
        for header, name in ((VERSION_HEADER, version), (OFFSET_HEADER, offset)):
            if name in facts:
                headers.append((header, bytes(facts[name])))
        content: bytes | None = bytes(change)
        if value is TopicValue.ROW:
            gone = msgspec.json.decode(members[names.get("op", "op")]) == "-R"
            content = None if gone or row is None else bytes(row)
        messages.append(OutMessage(key=_key(row, record_key), value=content, headers=tuple(headers)))
    return messages


def _key(row: msgspec.Raw | None, record_key: Sequence[str]) -> bytes | None:
    if row is None or not record_key:
        return None
    members = msgspec.json.decode(row, type=_Members)
    return msgspec.json.encode({name: _member(members, member_path(name, members)) for name in record_key})


def _member(members: _Members, path: Sequence[str]) -> msgspec.Raw:
    *structs, last = path
    for name in structs:
        members = msgspec.json.decode(members[name], type=_Members)
    return members[last]
