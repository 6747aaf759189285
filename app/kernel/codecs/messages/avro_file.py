"""Avro object container files: blocks of records after a schema. The memory that a file takes has a bound.

https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Final

import fastavro
import pyarrow as pa

from app.kernel.codecs.messages.avro_schema import AvroSchema
from app.kernel.codecs.messages.reading import BadMessage, MessageColumn, UnsupportedSchema

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_META: Final = {"type": "map", "values": "bytes"}
_HEADER_BYTES_MAX: Final = 1024 * 1024
# Of a block, as stored and decompressed. Writers end a block after kilobytes, unless one record is larger.
_BLOCK_BYTES_MAX: Final = 64 * 1024 * 1024
_VARINT_BYTES_MAX: Final = 10
_CHECKSUM_BYTES: Final = 4


class AvroFile:
    """The records of a file, in order."""

    def __init__(self, file: BinaryIO) -> None:
        """Reads the header. Raises BadMessage, UnsupportedSchema."""
        self._source = _Source(file)
        meta, self._sync = self._header()
        codec = meta.get("avro.codec", b"null").decode(errors="replace")
        if codec not in _CODECS:
            raise UnsupportedSchema(f"compressed with {codec[:50]!r}; expected one of {', '.join(_CODECS)}")
        self._decompress = _CODECS[codec]
        self._schema = AvroSchema(meta.get("avro.schema", b"").decode(errors="replace"))
        if self._schema.members is None:
            raise UnsupportedSchema("its schema is not a record")
        if self._schema.is_empty:
            # A few bytes would be any number of records.
            raise UnsupportedSchema("its records take no bytes")

    @property
    def members(self) -> Mapping[str, MessageColumn]:
        """The fields of the records, by name."""
        return self._schema.members or {}

    def records(self) -> Iterator[tuple[bytes, dict[str, Any] | BadMessage]]:
        """Each record: its bytes, and its JSON value, or why it cannot be one.

        Raises BadMessage where the file cannot be read further.
        """
        while (count := self._source.long(ends=True)) is not None:
            size = self._source.long() or 0
            if count < 0 or not 0 <= size <= _BLOCK_BYTES_MAX:
                raise BadMessage(
                    f"a block of {count} records and {size} bytes; at most {_BLOCK_BYTES_MAX} are read"
                )
            block = self._source.take(size)
            if self._source.take(_SYNC_BYTES) != self._sync:
                raise BadMessage("a block does not end with the marker of the file")
            yield from self._block(self._decompress(block), count)

    def _block(self, content: bytes, count: int) -> Iterator[tuple[bytes, dict[str, Any] | BadMessage]]:
        source = io.BytesIO(content)
        for _ in range(count):
            start = source.tell()
            value = self._schema.read(source)
            payload = content[start : source.tell()]
            try:
                yield payload, self._schema.converted(value)
            except BadMessage as error:
                yield payload, error
        if source.tell() != len(content):
            raise BadMessage("there are bytes after the last record of a block")

    def _header(self) -> tuple[dict[str, bytes], bytes]:
        """The metadata, and the marker that ends each block."""
        start = self._source.peek(_HEADER_BYTES_MAX)
        source = io.BytesIO(start)
        if source.read(len(_MAGIC)) != _MAGIC:
            raise BadMessage("it is not an Avro file: it does not begin with Obj and 1")
        try:
            meta = fastavro.schemaless_reader(source, _META, None)
        except (EOFError, ValueError, IndexError, OverflowError, MemoryError):
            raise BadMessage(f"its header is cut off, or has more than {_HEADER_BYTES_MAX} bytes") from None
        sync = source.read(_SYNC_BYTES)
        if len(sync) < _SYNC_BYTES or not isinstance(meta, dict):
            raise BadMessage(f"its header is cut off, or has more than {_HEADER_BYTES_MAX} bytes")
        self._source.take(source.tell())
        return meta, sync


class _Source:
    """Bytes of a file, of which no more are held than a block has."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._ahead = b""

    def peek(self, size_max: int) -> bytes:
        """The next bytes, which stay."""
        while len(self._ahead) < size_max and (more := self._file.read(size_max - len(self._ahead))):
            self._ahead += more
        return self._ahead[:size_max]

    def take(self, size: int) -> bytes:
        """The next bytes. Raises BadMessage if there are fewer."""
        content = self.peek(size)
        if len(content) < size:
            raise BadMessage("it is cut off")
        self._ahead = self._ahead[size:]
        return content

    def long(self, *, ends: bool = False) -> int | None:
        """The next integer. With `ends`, None at the end of the file. Raises BadMessage."""
        if ends and not self.peek(1):
            return None
        number = self.unsigned()
        return (number >> 1) ^ -(number & 1)

    def unsigned(self) -> int:
        """The next integer without sign. Raises BadMessage."""
        start = self.peek(_VARINT_BYTES_MAX)
        number = 0
        for place, byte in enumerate(start):
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                self.take(place + 1)
                return number
        raise BadMessage("it is cut off, or a number in it is too long")


def _bounded(content: bytes) -> bytes:
    if len(content) > _BLOCK_BYTES_MAX:
        raise BadMessage(f"a block has more than {_BLOCK_BYTES_MAX} bytes decompressed")
    return content


def _deflate(block: bytes) -> bytes:
    decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
    return _bounded(decompressor.decompress(block, _BLOCK_BYTES_MAX + 1))


def _bzip2(block: bytes) -> bytes:
    return _bounded(bz2.BZ2Decompressor().decompress(block, _BLOCK_BYTES_MAX + 1))


def _xz(block: bytes) -> bytes:
    decompressor = lzma.LZMADecompressor(memlimit=2 * _BLOCK_BYTES_MAX)
    return _bounded(decompressor.decompress(block, _BLOCK_BYTES_MAX + 1))


def _snappy(block: bytes) -> bytes:
    """Snappy without frames: the size in front, and a checksum of the content behind."""
    body, checksum = block[:-_CHECKSUM_BYTES], block[-_CHECKSUM_BYTES:]
    size = _Source(io.BytesIO(body)).unsigned()
    if size > _BLOCK_BYTES_MAX:
        raise BadMessage(f"a block has more than {_BLOCK_BYTES_MAX} bytes decompressed")
    content: bytes = pa.Codec("snappy").decompress(body, size, asbytes=True)
    if zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise BadMessage("the checksum of a block differs")
    return content


def _zstandard(block: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return _bounded(stream.read(_BLOCK_BYTES_MAX + 1))


def _reported(decompress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def run(block: bytes) -> bytes:
        try:
            return decompress(block)
        except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError, pa.ArrowException) as error:
            raise BadMessage(f"a block cannot be decompressed: {error}") from None

    return run


_CODECS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": _bounded,
    "deflate": _reported(_deflate),
    "snappy": _reported(_snappy),
    "zstandard": _reported(_zstandard),
    "bzip2": _reported(_bzip2),
    "xz": _reported(_xz),
}
