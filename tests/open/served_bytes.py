"""The plain bytes of what the service sends: pages of Parquet files, records of Avro files, contents of tokens.

Compressed bytes do not have the values that a test searches. So whatever is sent is unpacked first, with all of a
file's pages and not only the values that its rows have.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import zlib
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from app.kernel.parquet.compact import Reader

_PARQUET: Final = b"PAR1"
_AVRO: Final = b"Obj\x01"
_GZIP: Final = b"\x1f\x8b"
_ARROW_FILE: Final = b"ARROW1"
_STREAM: Final = b"\xff\xff\xff\xff"
_TOKEN: Final = re.compile(rb"[A-Za-z0-9_+/-]{8,}={0,2}")
# Fields of a page's header.
_PLAIN_BYTES, _PAGE_BYTES, _SECOND_VERSION = 2, 3, 8
_DEFINITION_BYTES, _REPETITION_BYTES = 5, 6


def plain(content: bytes) -> Iterator[bytes]:
    """The bytes themselves, and what is packed in them, but for compressed pages: their bytes may be equal to a value
    that no page has.
    """
    if content.startswith(_PARQUET):
        yield from _pages(content)
        return
    yield content
    if content.startswith(_GZIP):
        yield from plain(zlib.decompress(content, wbits=31))
    elif content.startswith(_AVRO):
        yield repr(list(fastavro.reader(io.BytesIO(content)))).encode()
    elif content.startswith((_STREAM, _ARROW_FILE)):
        yield repr(pa.ipc.open_stream(content).read_all().to_pylist()).encode()
    else:
        yield unquote_to_bytes(content)
        yield from _tokens(content)


def _tokens(content: bytes) -> Iterator[bytes]:
    """What texts hold in Base64, such as names of parts and tokens of pages."""
    for token in _TOKEN.findall(content):
        bare = token.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        bare = bare[: len(bare) // 4 * 4 + (len(bare) % 4 if len(bare) % 4 > 1 else 0)]
        try:
            yield base64.b64decode(bare + b"=" * (-len(bare) % 4), validate=True)
        except binascii.Error:
            continue


def _pages(content: bytes) -> Iterator[bytes]:
    """The pages of a Parquet file. Raises AssertionError for bytes that belong to no page and not to the footer."""
    file = pq.ParquetFile(io.BytesIO(content))
    metadata = file.metadata
    ends, without_pages = {4}, bytearray(content)
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            start = min(each for each in (chunk.dictionary_page_offset, chunk.data_page_offset) if each)
            end = start + chunk.total_compressed_size
            assert start in ends, "the file has bytes between its chunks"
            ends.add(end)
            yield from _chunk(content, without_pages, start, end, chunk.compression)
    yield bytes(without_pages)
    # Behind the pages are indexes of pages and the footer, which are not compressed.
    yield repr(file.read().to_pylist()).encode()


def _chunk(content: bytes, without_pages: bytearray, start: int, end: int, codec: str) -> Iterator[bytes]:
    """The plain pages of a column. In `without_pages` they become zeros, and their headers stay."""
    reader = Reader(content, start)
    while reader.position < end:
        header, second = reader.numbers(nested=_SECOND_VERSION)
        page = content[reader.position : reader.position + header[_PAGE_BYTES]]
        without_pages[reader.position : reader.position + len(page)] = bytes(len(page))
        reader.position += header[_PAGE_BYTES]
        levels = second.get(_DEFINITION_BYTES, 0) + second.get(_REPETITION_BYTES, 0)
        yield _decompressed(page[levels:], header[_PLAIN_BYTES] - levels, codec)


def _decompressed(page: bytes, size: int, codec: str) -> bytes:
    if codec == "UNCOMPRESSED" or len(page) == size:
        return page
    kind = "lz4_raw" if codec.startswith("LZ4") else codec.lower()
    found: bytes = pa.decompress(page, decompressed_size=size, codec=kind, asbytes=True)
    return found
