"""Values that Debezium has not read: an update of PostgreSQL leaves out large values that it has not changed.

The envelope then has the default of `unavailable.value.placeholder` in their place: the text itself, its bytes for
binary, and in arrays one such element, of integers each of its bytes, of UUIDs the UUID that Java makes of it. A map
has it as its only key and value, also if it is a text of JSON.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from typing import Any, Final

from app.kernel.codecs.value_parser import JsonNumber, Members
from app.kernel.format.schema.types import BINARY, DataType, FlatType, List, Map

PLACEHOLDER: Final = "__debezium_unavailable_value"
_BYTES: Final = PLACEHOLDER.encode()
_BASE64: Final = base64.b64encode(_BYTES).decode()
_UUID: Final = str(uuid.UUID(bytes=hashlib.md5(_BYTES, usedforsecurity=False).digest(), version=3))
_JSON_MAP: Final = f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}'
_NUMBERS: Final = [str(byte) for byte in _BYTES]
_MARKS: Final = (_BYTES, _BASE64.encode(), _UUID.encode(), ",".join(_NUMBERS).encode())
UNAVAILABLE: Final = (
    "Debezium has sent no value, since the update has not changed it, and no row before the update that has it; the "
    "stored value cannot be kept here: set REPLICA IDENTITY FULL for the table"
)


def may_be_unavailable(text: bytes) -> bool:
    """Whether compact JSON has a placeholder somewhere."""
    return any(mark in text for mark in _MARKS)


def is_unavailable(value: Any, data_type: DataType) -> bool:
    """Whether a value, as `parse_json` returns it, is the placeholder in a column of the type."""
    match data_type:
        case List(element):
            if not isinstance(value, list) or isinstance(value, Members):
                return False
            if value == _NUMBERS and all(isinstance(each, JsonNumber) for each in value):
                return True
            return len(value) == 1 and (value[0] == _UUID or is_unavailable(value[0], element))
        case Map():
            return isinstance(value, Members) and list(value) == [(PLACEHOLDER, PLACEHOLDER)]
        case FlatType():
            return isinstance(value, str) and value in (
                (_BASE64,) if data_type == BINARY else (PLACEHOLDER, _JSON_MAP)
            )
    return False
