"""Files of Avro: what other writers write is read, and no file takes more memory than its bound."""

from __future__ import annotations

import contextlib
import io
import random
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from app.kernel.codecs.messages.avro_file import AvroFile
from app.kernel.codecs.messages.reading import BadMessage, UnsupportedSchema

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
RATIO = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "double"}]}


def written(rows: list[Any], schema: Any = SCHEMA, **more: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows, **more)
    return sink.getvalue()


def with_codec(codec: str, rows: list[Any]) -> bytes:
    """A file whose one block is compressed by pyarrow, for codecs that fastavro needs other packages for."""
    plain = written(rows, sync_marker=b"s" * 16)
    header, block = plain.split(b"s" * 16, 1)[0], plain.split(b"s" * 16, 1)[1]
    source = io.BytesIO(block)
    count, size = _long(source), _long(source)
    content = source.read(size)
    if codec == "snappy":
        stored = pa.Codec("snappy").compress(content, asbytes=True) + zlib.crc32(content).to_bytes(4, "big")
    else:
        stored = pa.Codec("zstd").compress(content, asbytes=True)
    name = codec.encode()
    header = header.replace(b"\x08null", bytes([2 * len(name)]) + name)
    return header + b"s" * 16 + _zigzag(count) + _zigzag(len(stored)) + stored + b"s" * 16


def _long(source: io.BytesIO) -> int:
    number = shift = 0
    while True:
        byte = source.read(1)[0]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1)


def _zigzag(number: int) -> bytes:
    number, found = number * 2 if number >= 0 else -2 * number - 1, bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def rows_of(content: bytes) -> list[Any]:
    return [record for _, record in AvroFile(io.BytesIO(content)).records()]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_files_of_other_writers_are_read(codec: str) -> None:
    rows = [{"id": number, "note": None if number % 3 else "x" * number} for number in range(1_000)]
    content = written(rows, codec=codec, sync_interval=1_000)
    assert rows_of(content) == rows


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_codecs_of_spark_are_read(codec: str) -> None:
    rows = [{"id": number, "note": "abc" * number} for number in range(100)]
    content = with_codec(codec, rows)
    assert rows_of(content) == rows


def test_file_without_records_has_none_and_its_columns() -> None:
    file = AvroFile(io.BytesIO(written([])))
    assert list(file.records()) == []
    assert {name: column.type for name, column in file.members.items()} == {"id": "int64", "note": "string"}


def test_record_that_cannot_be_a_row_is_returned_with_its_bytes() -> None:
    content = written([{"x": 1.0}, {"x": float("nan")}, {"x": 2.0}], RATIO)
    (_, one), (payload, bad), (_, two) = AvroFile(io.BytesIO(content)).records()
    assert (one, two) == ({"x": 1.0}, {"x": 2.0})
    assert isinstance(bad, BadMessage)
    assert fastavro.schemaless_reader(io.BytesIO(payload), RATIO, None)["x"] != 0


def test_damaged_files_are_reported_whatever_the_damage() -> None:
    """Each byte that is changed or missing gives an error, or records; nothing else, and not for long."""
    source = random.Random(76)
    for codec in ("null", "deflate"):
        content = written([{"id": number, "note": "x"} for number in range(50)], codec=codec)
        for _ in range(1_000):
            damaged = bytearray(content)
            damaged[source.randrange(len(content))] = source.randrange(256)
            end = len(content) if source.random() < 0.7 else source.randrange(len(content))
            with contextlib.suppress(BadMessage, UnsupportedSchema):
                rows_of(bytes(damaged[:end]))


def _block(codec: str, stored: bytes, count: int = 1) -> bytes:
    header = written([], sync_marker=b"s" * 16).split(b"s" * 16)[0]
    name = codec.encode()
    header = header.replace(b"\x08null", bytes([2 * len(name)]) + name)
    return header + b"s" * 16 + _zigzag(count) + _zigzag(len(stored)) + stored + b"s" * 16


def _deflated(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(bytes(size)) + packer.flush()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "does not begin with Obj"),
        (b"Obj\x01", "header is cut off"),
        (b"PAR1" + bytes(100), "does not begin with Obj"),
        (b"Obj\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + bytes(50), "header is cut off"),
        (_block("deflate", _deflated(200 * 1024 * 1024)), "more than 67108864 bytes decompressed"),
        (_block("snappy", b"\xff\xff\xff\x7f" + bytes(20)), "more than 67108864 bytes decompressed"),
        (_block("snappy", b"\x02ab" + bytes(4)), "a block"),
        (_block("zstandard", pa.Codec("zstd").compress(bytes(200 * 1024 * 1024), asbytes=True)), "more than"),
        (_block("bzip2", b"nothing"), "cannot be decompressed"),
        (_block("null", b"\x02\x00", count=-1), "a block of -1 records"),
        (_block("null", b"\x02\x00", count=2), "not Avro of its schema"),
        (_block("null", b"\x02\x00\x02\x00"), "bytes after the last record"),
        (_block("null", b"\x02\x00")[:-3], "it is cut off"),
        (_block("null", b"\x02\x00")[:-3] + b"abc", "does not end with the marker"),
    ],
)
def test_hostile_files_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(BadMessage, match=reason):
        rows_of(content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (written([1], "long"), "not a record"),
        (_block("lzo", b"x"), "compressed with 'lzo'"),
        (
            written(
                [],
                {
                    "type": "record",
                    "name": "E",
                    "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 0}}],
                },
            ),
            "take no bytes",
        ),
    ],
)
def test_files_that_have_no_rows_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnsupportedSchema, match=reason):
        rows_of(content)
