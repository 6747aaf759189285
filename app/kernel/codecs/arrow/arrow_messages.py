"""The sizes of the record batches and dictionaries of an Arrow stream, which are read without decompressing them.

PyArrow does not show them. A message is a table of FlatBuffers: at its place is the distance to the places of its
fields, in the order of the specification of Arrow.
"""

from __future__ import annotations

import struct
from typing import Final

from app.kernel.codecs.parts import LargePart
from app.kernel.format.rows.formats import Source

_CONTINUATION: Final = 0xFFFFFFFF
_METADATA_BYTES_MAX: Final = 64 << 20
# What is read of a message at once.
_HEAD_BYTES: Final = 16 << 10
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_DICTIONARY_DATA = 1
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3
_BUFFER: Final = struct.Struct("<qq")
# Zstandard makes at most 128 KiB of 4 bytes, LZ4 less.
_RATIO_MAX: Final = 1 << 15
# A smaller body is read as a whole, since a request to the storage takes longer than its bytes.
_WHOLE_BODY_BYTES: Final = 4 << 20


class MessageSizes:
    """The parts of a stream in their order, from the byte number `position` on."""

    def __init__(self, source: Source, position: int) -> None:
        self._source = source
        self._position = position
        self._row = 0

    def next_batch(self) -> list[LargePart]:
        """The compressed parts that the next record batch needs: the dictionaries before it, and the batch itself.

        Empty if the messages cannot be read. The place of the source stays.
        """
        place = self._source.tell()
        try:
            return self._parts()
        except (struct.error, LookupError, OverflowError, ValueError):
            # What is damaged or lies is for the reader to refuse.
            return []
        except OSError as fault:
            # Only errors of the system have a number.
            if fault.errno is not None:
                raise
            return []
        finally:
            self._source.seek(place)

    def _parts(self) -> list[LargePart]:
        sizes: list[tuple[str, int, int]] = []
        while (metadata := self._metadata()) is not None:
            kind, body = _header_type(metadata), self._position
            body_bytes = _long(metadata, _field(metadata, _root(metadata), _BODY_LENGTH))
            if body_bytes < 0:
                raise ValueError("a body of less than no bytes")
            self._position += body_bytes
            if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
                continue
            batch = _table(metadata, _root(metadata), _HEADER)
            if kind == _DICTIONARY_BATCH:
                batch = _table(metadata, batch, _DICTIONARY_DATA)
            values = _long(metadata, _field(metadata, batch, _LENGTH))
            if _field(metadata, batch, _COMPRESSION):
                name = "a record batch" if kind == _RECORD_BATCH else "a dictionary"
                sizes.append((name, self._decompressed_bytes(metadata, batch, body), values))
            if kind == _RECORD_BATCH:
                first_row, self._row = self._row, self._row + values
                return [
                    LargePart(
                        name=name,
                        size_bytes=size_bytes,
                        memory_bytes=size_bytes,
                        values=values_of_part,
                        first_row=first_row,
                        rows=values,
                    )
                    for name, size_bytes, values_of_part in sizes
                ]
        return []

    def _metadata(self) -> bytes | None:
        """The next message without its body; None at the end."""
        self._source.seek(self._position)
        head = self._source.read(_HEAD_BYTES)
        prefix_bytes = 4
        (size,) = struct.unpack_from("<I", head)
        if size == _CONTINUATION:
            prefix_bytes = 8
            (size,) = struct.unpack_from("<I", head, 4)
        if not 0 < size <= _METADATA_BYTES_MAX:
            return None
        end = prefix_bytes + size
        if end > len(head):
            head += self._source.read(end - len(head))
        self._position += end
        return head[prefix_bytes:end]

    def _decompressed_bytes(self, metadata: bytes, batch: int, body: int) -> int:
        """The size of all buffers. Each compressed one starts with its own, or with -1 if it is stored as it is."""
        field = _field(metadata, batch, _BUFFERS)
        if not field:
            return 0
        vector = _follow(metadata, field)
        (count,) = struct.unpack_from("<I", metadata, vector)
        buffers = [
            _BUFFER.unpack_from(metadata, vector + 4 + number * _BUFFER.size) for number in range(count)
        ]
        whole = b""
        if (body_bytes := self._position - body) <= _WHOLE_BODY_BYTES:
            self._source.seek(body)
            whole = self._source.read(body_bytes)
        total = 0
        for offset, length in buffers:
            if length <= 8:
                continue
            if whole:
                (size,) = struct.unpack_from("<q", whole, offset)
            else:
                self._source.seek(body + offset)
                (size,) = struct.unpack("<q", self._source.read(8))
            if size > length * _RATIO_MAX:
                raise ValueError("a buffer of a size that it cannot have")
            total += length - 8 if size < 0 else size
        return total


def _root(metadata: bytes) -> int:
    return _follow(metadata, 0)


def _follow(metadata: bytes, place: int) -> int:
    """What the distance at this place leads to."""
    (distance,) = struct.unpack_from("<I", metadata, place)
    return place + int(distance)


def _field(metadata: bytes, table: int, number: int) -> int:
    """The place of a field of a table; 0 if the table does not have it."""
    (distance,) = struct.unpack_from("<i", metadata, table)
    places = table - distance
    (places_bytes,) = struct.unpack_from("<H", metadata, places)
    place = 4 + 2 * number
    if place + 2 > places_bytes:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, places + place)
    return table + int(offset) if offset else 0


def _table(metadata: bytes, table: int, number: int) -> int:
    field = _field(metadata, table, number)
    if not field:
        raise ValueError("a message without its header")
    return _follow(metadata, field)


def _header_type(metadata: bytes) -> int:
    field = _field(metadata, _root(metadata), _HEADER_TYPE)
    return metadata[field] if field else 0


def _long(metadata: bytes, field: int) -> int:
    return int(struct.unpack_from("<q", metadata, field)[0]) if field else 0
