"""Changes as JSON messages of a topic: each as the feed has it, or its row alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from app.core.changes.values import DeliveryFormat
from app.features.webhooks.values import ChangeMessage, TopicValue
from app.kernel.changelog.delivery_forms import ChangeForm, json_names
from app.kernel.format.dataset import DEFAULT_VOCABULARY
from app.kernel.format.partition.members import member_path

_NULL: Final = b"null"
_Members = dict[str, msgspec.Raw]


def json_messages(
    changes: bytes, delivery_format: DeliveryFormat, record_key: Sequence[str], value: TopicValue
) -> Iterator[ChangeMessage]:
    """The messages of the changes in a JSON array, in their order."""
    names = json_names(delivery_format.form, delivery_format.vocabulary or DEFAULT_VOCABULARY)
    for change in msgspec.json.decode(changes, type=list[msgspec.Raw]):
        members = msgspec.json.decode(change, type=_Members)
        row, facts = members.get("row"), members
        version, offset = names.get("version", "version"), names.get("offset", "offset")
        if delivery_format.form is ChangeForm.DEBEZIUM:
            row = members["before"] if bytes(members["after"]) == _NULL else members["after"]
            facts = msgspec.json.decode(members["source"], type=_Members)
            version, offset = "version", "offset"
        elif delivery_format.form is ChangeForm.DELTA:
            version = "_commit_version"
        content: bytes | None = bytes(change)
        if value is TopicValue.ROW:
            is_deletion = msgspec.json.decode(members[names.get("op", "op")]) == "-R"
            content = None if is_deletion or row is None else bytes(row)
        yield ChangeMessage(
            key=_key(row, record_key),
            value=content,
            version=bytes(facts[version]) if version in facts else None,
            offset=bytes(facts[offset]) if offset in facts else None,
        )


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
