"""The bytes of Avro values and files. Entries of manifests are encoded field by field: a general writer takes ten times
as long, since it first needs every count and bound as a Python value of its own.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

ABSENT: Final = b"\x00"
"""The value of a union of null and another type that is null."""
PRESENT: Final = b"\x02"
"""What precedes the value of such a union that is not null."""
FALSE: Final = b"\x00"
TRUE: Final = b"\x01"
_END: Final = b"\x00"
_MAGIC: Final = b"Obj\x01"
_BLOCK_RECORDS: Final = 1_000
_SYNC_BYTES: Final = 16
_LEVEL: Final = 1


@lru_cache(maxsize=65_536)
def long_bytes(value: int) -> bytes:
    """An `int` or `long`: zigzag, seven bits a byte."""
    rest = (value << 1) ^ (value >> 63)
    content = bytearray()
    while rest > 0x7F:
        content.append((rest & 0x7F) | 0x80)
        rest >>= 7
    content.append(rest)
    return bytes(content)


def counted(content: bytes) -> bytes:
    """A value of type `bytes`, or the UTF-8 of a `string`."""
    return long_bytes(len(content)) + content


def text_bytes(text: str) -> bytes:
    """A `string`."""
    return counted(text.encode())


def optional_long(value: int | None) -> bytes:
    """A `long`, or null."""
    return ABSENT if value is None else PRESENT + long_bytes(value)


def optional_text(text: str | None) -> bytes:
    """A `string`, or null."""
    return ABSENT if text is None else PRESENT + text_bytes(text)


def array_bytes(items: Sequence[bytes]) -> bytes:
    """An array of encoded items."""
    return long_bytes(len(items)) + b"".join(items) + _END if items else _END


def avro_file(schema: Mapping[str, Any], facts: Mapping[str, str], records: Sequence[bytes]) -> bytes:
    """An Avro file of encoded records, compressed. The same arguments give the same bytes.

    `facts`: its metadata beside Avro's own.
    """
    metadata = {"avro.codec": "deflate", "avro.schema": json_text(schema), **facts}
    items = [text_bytes(name) + text_bytes(value) for name, value in metadata.items()]
    header = _MAGIC + array_bytes(items)
    # Any 16 bytes that blocks do not contain by chance do.
    sync = hashlib.sha256(header).digest()[:_SYNC_BYTES]
    return b"".join([header, sync, *_blocks(records, sync)])


def _blocks(records: Sequence[bytes], sync: bytes) -> Iterator[bytes]:
    for start in range(0, len(records), _BLOCK_RECORDS):
        block = records[start : start + _BLOCK_RECORDS]
        content = zlib.compress(b"".join(block), _LEVEL, -zlib.MAX_WBITS)
        yield long_bytes(len(block)) + counted(content) + sync


def json_text(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
