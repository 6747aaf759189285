"""Puffin files of deletion vectors: one vector in each, whose bitmap has the stored bytes.

All but the bytes themselves is known from the size and the cardinality of the bitmap and the data file's location. The
formats are those of Iceberg's Puffin specification, with the blob `deletion-vector-v1`.
"""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

CONTENT_OFFSET: Final = 4
"""Where the blob begins in the file (`content_offset` of a manifest's entry)."""

_PUFFIN_MAGIC: Final = b"PFA1"
_VECTOR_MAGIC: Final = b"\xd1\xd3\x39\x64"
# One bitmap of 32-bit positions, whose key, the upper half of its positions, is 0.
_ONE_BITMAP: Final = (1).to_bytes(8, "little") + (0).to_bytes(4, "little")
_LENGTH_BYTES: Final = 4
_CRC_BYTES: Final = 4
# The length of the footer's payload, its flags, and the magic bytes.
_TRAILER_BYTES: Final = 12
# The column of row positions in Iceberg (`_pos`), which the reference implementation states for deletion vectors.
_ROW_POSITION_ID: Final = 2147483645


def content_size(bitmap_bytes: int) -> int:
    """The size of the blob in bytes (`content_size_in_bytes` of a manifest's entry), from that of the bitmap."""
    return _LENGTH_BYTES + len(_VECTOR_MAGIC) + len(_ONE_BITMAP) + bitmap_bytes + _CRC_BYTES


def puffin_size(bitmap_bytes: int, cardinality: int, data_file: str) -> int:
    """The size of the file in bytes, from the size of the bitmap. The other parameters are those of `puffin_file`."""
    footer = len(_PUFFIN_MAGIC) + len(_payload(bitmap_bytes, cardinality, data_file)) + _TRAILER_BYTES
    return CONTENT_OFFSET + content_size(bitmap_bytes) + footer


def puffin_file(bitmap: bytes, cardinality: int, data_file: str) -> bytes:
    """The file of one deletion vector.

    `bitmap`: the stored bytes, a Roaring bitmap of 32-bit positions in its portable form. `cardinality`: the number of
    its positions. `data_file`: the location of the data file, as it is in the manifest.
    """
    payload = _payload(len(bitmap), cardinality, data_file)
    footer = _PUFFIN_MAGIC + payload + len(payload).to_bytes(4, "little") + bytes(4) + _PUFFIN_MAGIC
    return _PUFFIN_MAGIC + _blob(bitmap) + footer


def _blob(bitmap: bytes) -> bytes:
    vector = _VECTOR_MAGIC + _ONE_BITMAP + bitmap
    return (
        len(vector).to_bytes(_LENGTH_BYTES, "big") + vector + zlib.crc32(vector).to_bytes(_CRC_BYTES, "big")
    )


def _payload(bitmap_bytes: int, cardinality: int, data_file: str) -> bytes:
    blob = {
        "type": "deletion-vector-v1",
        "fields": [_ROW_POSITION_ID],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": CONTENT_OFFSET,
        "length": content_size(bitmap_bytes),
        "properties": {"referenced-data-file": data_file, "cardinality": str(cardinality)},
    }
    return msgspec.json.encode({"blobs": [blob]})
