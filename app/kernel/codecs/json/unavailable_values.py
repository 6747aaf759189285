"""Values that Debezium has not read: an update of PostgreSQL leaves out large values that it has not changed.

The envelope then has the default of `unavailable.value.placeholder` in their place: the text itself, its bytes for
binary, and in arrays one such element, of integers each of its bytes, of UUIDs the UUID that Java makes of it. A map
has it as its only key and value, also if it is a text of JSON.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import uuid
from collections.abc import Iterable
from typing import Any, Final

from app.kernel.codecs.faults import below
from app.kernel.codecs.value_parser import JsonNumber, Members
from app.kernel.format.schema.types import BINARY, DataType, FlatType, List, Map, Struct

PLACEHOLDER: Final = "__debezium_unavailable_value"
PLACEHOLDER_BYTES: Final = PLACEHOLDER.encode()
_BASE64: Final = base64.b64encode(PLACEHOLDER_BYTES).decode()
PLACEHOLDER_UUID: Final = str(
    uuid.UUID(bytes=hashlib.md5(PLACEHOLDER_BYTES, usedforsecurity=False).digest(), version=3)
)
JSON_MAP: Final = f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}'
_NUMBERS: Final = [str(byte) for byte in PLACEHOLDER_BYTES]
# The texts without what encoders of JSON escape, such as "=".
_MARKS: Final = (PLACEHOLDER_BYTES, _BASE64.rstrip("=").encode(), PLACEHOLDER_UUID.encode())
_ESCAPE: Final = b"\\u00"
# An escaped character of one of these texts.
_ESCAPED: Final = re.compile(rb"\\u00(?:2[dD]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA])")
_ARRAY: Final = re.compile(r"\[\s*{}\s*\]".format(r"\s*,\s*".join(_NUMBERS)).encode())
UNAVAILABLE: Final = (
    "Debezium has sent no value, since the update has not changed it, and no row before the update that has it; the "
    "stored value cannot be kept here: set REPLICA IDENTITY FULL for the table"
)
UNAVAILABLE_MEMBER: Final = (
    "Debezium has sent no value for this part of a column, and a part cannot be kept: set REPLICA IDENTITY FULL for "
    "the table"
)


def may_be_unavailable(text: bytes) -> bool:
    """Whether JSON may have a placeholder somewhere, in any spelling. False is certain."""
    if any(mark in text for mark in _MARKS) or _ARRAY.search(text):
        return True
    return _ESCAPE in text and _ESCAPED.search(text) is not None


def is_unavailable(value: Any, data_type: DataType) -> bool:
    """Whether a value, as `parse_json` returns it, is the placeholder in a column of the type."""
    match data_type:
        case List(element):
            if not isinstance(value, list) or isinstance(value, Members):
                return False
            if value == _NUMBERS and all(isinstance(each, JsonNumber) for each in value):
                return True
            return len(value) == 1 and (value[0] == PLACEHOLDER_UUID or is_unavailable(value[0], element))
        case Map():
            return isinstance(value, Members) and list(value) == [(PLACEHOLDER, PLACEHOLDER)]
        case Struct():
            return isinstance(value, str) and value == PLACEHOLDER
        case FlatType():
            return isinstance(value, str) and value in (
                (_BASE64,) if data_type == BINARY else (PLACEHOLDER, JSON_MAP)
            )


def unavailable_member(value: Any, data_type: DataType) -> str | None:
    """The pointer, below a value of `parse_json`, to the first placeholder in a struct; None without one."""
    parts: Iterable[tuple[str, Any, DataType]] = ()
    match data_type:
        case Struct(members) if isinstance(value, Members):
            types = dict(members)
            parts = [(name, member, types[name]) for name, member in value if name in types]
            for name, member, kind in parts:
                if is_unavailable(member, kind):
                    return below("", name)
        case List(element) if isinstance(value, list) and not isinstance(value, Members):
            parts = ((str(number), each, element) for number, each in enumerate(value))
        case Map(_, item) if isinstance(value, Members):
            parts = ((name, each, item) for name, each in value)
    for name, part, kind in parts:
        pointer = unavailable_member(part, kind) if may_have_members(kind) else None
        if pointer is not None:
            return below("", name) + pointer
    return None


@functools.cache
def may_have_members(data_type: DataType) -> bool:
    """Whether a value of the type may have a struct somewhere."""
    match data_type:
        case List(element):
            return may_have_members(element)
        case Map(_, item):
            return may_have_members(item)
    return isinstance(data_type, Struct)
