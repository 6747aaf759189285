"""Confluent's wire format: a zero byte, the id of the schema in four bytes, for Protobuf the path of the message type.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

from typing import Final

from app.kernel.codecs.messages.reading import BadMessage

_HEAD_BYTES: Final = 5
_INDEXES_MAX: Final = 32
_VARINT_BYTES_MAX: Final = 5


def framed(payload: bytes) -> tuple[int, bytes]:
    """The id of the schema, and the bytes after it. Raises BadMessage."""
    if len(payload) < _HEAD_BYTES or payload[0] != 0:
        raise BadMessage(
            "it does not begin with a zero byte and the id of a schema, as Confluent's wire format does"
        )
    return int.from_bytes(payload[1:_HEAD_BYTES], "big"), payload[_HEAD_BYTES:]


def with_frame(number: int, content: bytes) -> bytes:
    """The bytes of a message under the schema with an id."""
    return b"\0" + number.to_bytes(_HEAD_BYTES - 1, "big") + content


def message_indexes(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """The path of a message type in its Protobuf file, and the bytes after it. Raises BadMessage."""
    count, place = _zigzag(payload, 0)
    if count == 0:
        return (0,), payload[place:]
    if not 0 < count <= _INDEXES_MAX:
        raise BadMessage(f"the path of its message type has {count} steps")
    indexes = []
    for _ in range(count):
        index, place = _zigzag(payload, place)
        indexes.append(index)
    return tuple(indexes), payload[place:]


def _zigzag(payload: bytes, place: int) -> tuple[int, int]:
    """The integer at `place`, and where the next one begins."""
    number = 0
    for count, byte in enumerate(payload[place : place + _VARINT_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place + count + 1
    raise BadMessage("the path of its message type is cut off")
