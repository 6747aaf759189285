"""Small bodies that try to take memory, time or the process, and a program that decodes each in a limited process.

Each body goes the way of a large body, through the tasks of Spark, and text also the way of a small one, in the API.
The program writes a line of JSON for each process: how its bodies ended, its peak memory and its time.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import resource
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import xxhash

from app.infra.files.storage import LocalStorage
from app.kernel.codecs.csv.csv_rows import decode_csv
from app.kernel.codecs.gzip_stream import gunzip_stream
from app.kernel.codecs.json.json_rows import decode_json_rows, decode_ndjson
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.operation import Operation, input_schema
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput
from tests.kernel.codecs.samples import arrow_stream, compressed_stream, parquet
from tests.support.examples import examples
from tests.support.service import TasksInProcess

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 20
INLINE_BYTES = 8 << 20
TOGETHER = 40
TOGETHER_BYTES = 300_000
_DECODERS = {Format.NDJSON: decode_ndjson, Format.CSV: decode_csv, Format.JSON_ROWS: decode_json_rows}
Case = tuple[Format, bytes, bool]


def packed(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=9)


def notes(count: int, note: str) -> pa.Table:
    return pa.table({"id": pa.array(range(count)), "note": pa.array([note] * count)})


def footer_of(data: bytes) -> int:
    """Where the footer of a Parquet file starts."""
    return len(data) - 8 - int(struct.unpack("<I", data[-8:-4])[0])


def varint(number: int) -> bytes:
    """A number as the footer of Parquet has it: zigzag, seven bits a byte."""
    number, out = number << 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def lying_footers() -> Iterator[tuple[str, bytes]]:
    """A file whose footer has other numbers: of rows, of values, sizes, places of pages."""
    data = parquet(notes(12_345, "n" * 50), use_dictionary=["note"], compression="none")
    metadata = pq.read_metadata(io.BytesIO(data))
    start = footer_of(data)
    column = metadata.row_group(0).column(1)
    numbers = {
        "rows": metadata.num_rows,
        "total size": metadata.row_group(0).total_byte_size,
        "compressed size": column.total_compressed_size,
        "uncompressed size": column.total_uncompressed_size,
        "data page": column.data_page_offset,
        "dictionary page": column.dictionary_page_offset,
    }
    for name, number in numbers.items():
        for lie in (0, 1, len(data) - 8, 2**31 - 1, 2**40, 2**62):
            footer = data[start:-8].replace(varint(number), varint(lie))
            yield f"{name} {lie}", data[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1"
    for length in (0, 2**31 - 1, 2**32 - 1):
        yield f"footer of {length}", data[:-8] + struct.pack("<I", length) + b"PAR1"


def lying_streams() -> Iterator[tuple[str, bytes]]:
    """A stream whose messages have other lengths, offsets and sizes of buffers."""
    count = 12_345
    for name, data in (
        ("plain", arrow_stream(notes(count, "n"))),
        ("packed", compressed_stream(notes(count, "n"))),
    ):
        numbers = {"length": count, "offsets": 4 * (count + 1), "values": 8 * count}
        for what, number in numbers.items():
            for lie in (-1, 0, 2**31 - 1, 2**40, 2**63 - 1):
                old, new = struct.pack("<q", number), struct.pack("<q", lie)
                yield f"{name} {what} {lie}", data.replace(old, new)
        yield f"{name} message", data[:4] + struct.pack("<i", 2**31 - 1) + data[8:]


def damaged(seed: str) -> Iterator[tuple[str, Format, bytes]]:
    """Sound files with some bytes changed."""
    sound = [
        (Format.PARQUET, parquet(notes(500, "note"), compression="zstd")),
        (Format.PARQUET, parquet(notes(500, "note"), data_page_version="2.0", compression="snappy")),
        (Format.ARROW, arrow_stream(notes(500, "note"))),
        (Format.ARROW, compressed_stream(notes(500, "note"))),
    ]
    randomness = random.Random(seed)
    for number in range(examples(40)):
        form, data = sound[number % len(sound)]
        changed = bytearray(data)
        for _ in range(randomness.choice((1, 2, 8))):
            changed[randomness.randrange(len(changed))] = randomness.choice((0, 1, 0x7F, 0x80, 0xFF))
        yield f"damaged {number}", form, bytes(changed)


def nulls_stream(length: int) -> bytes:
    """A stream of one batch that claims any number of nulls, which take no bytes."""
    shown = 2**31 - 1
    nulls = pa.Array.from_buffers(pa.null(), shown, [None])
    batch = pa.RecordBatch.from_arrays([nulls, nulls], ["id", "note"])
    out = io.BytesIO()
    with ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    return out.getvalue().replace(struct.pack("<q", shown), struct.pack("<q", length))


def cases(seed: str) -> Iterator[tuple[str, Case]]:
    """All bodies, by name."""
    yield from ((f"ndjson {name}", (Format.NDJSON, data, False)) for name, data in texts().items())
    yield from (
        (f"json {name}", (Format.JSON_ROWS, b"[" + data.replace(b"\n", b",") + b"]", False))
        for name, data in texts().items()
        if len(data) < 17 << 20
    )
    blank = packed(b" " * (64 << 20))
    rows = packed(b'{"id":1,"note":"' + b"x" * (64 << 20) + b'"}')
    yield "gzip of blanks", (Format.NDJSON, blank, True)
    yield "gzip of a long line", (Format.NDJSON, rows, True)
    yield "gzip of gzip", (Format.NDJSON, packed(packed(blank)), True)
    yield "gzip members", (Format.NDJSON, packed(b'{"id":1}\n') * 20_000, True)
    yield "gzip members of blanks", (Format.NDJSON, blank * 8, True)
    yield "gzip truncated", (Format.NDJSON, rows[:-9], True)
    yield "csv with an endless cell", (Format.CSV, b'id,note\n1,"' + b"x\n," * (9 << 20), False)
    yield "csv with an endless line", (Format.CSV, b"id,note\n1," + b"x" * (33 << 20), False)
    yield "csv of quotes", (Format.CSV, b"id,note\n" + b'"' * (4 << 20), False)
    yield "csv with many columns", (Format.CSV, b",".join(b"c%d" % n for n in range(100_000)) + b"\n1", False)
    yield "csv with a long header", (Format.CSV, b"x" * (4 << 20), False)
    wide = pa.table({f"c{n}": pa.array([n]) for n in range(20_000)})
    yield "arrow with many columns", (Format.ARROW, arrow_stream(wide), False)
    yield "parquet with many columns", (Format.PARQUET, parquet(wide.select(range(3_000))), False)
    for form in Format:
        for size in (1, 7, 8, 4_096):
            yield f"{form.value} of {size} zero bytes", (form, bytes(size), False)
    for name, data in lying_footers():
        yield f"parquet {name}", (Format.PARQUET, data, False)
    for name, data in lying_streams():
        yield f"arrow {name}", (Format.ARROW, data, False)
    for length in (2**31 - 1, 2**40, 2**62):
        yield f"arrow of {length} nulls", (Format.ARROW, nulls_stream(length), False)
    for name, count in (("nearly a GiB", 4_000), ("over a GiB", 4_096)):
        bomb = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * (1 << 18)]))
        bombs = pa.table({"id": pa.array(range(count)), "note": bomb})
        yield f"arrow dictionary of {name}", (Format.ARROW, compressed_stream(bombs), False)
        yield f"parquet dictionary of {name}", (Format.PARQUET, parquet(bombs, compression="zstd"), False)
    lists = pa.array([[None] * 100_000], pa.list_(pa.null())).take(pa.array([0] * 300))
    nested = pa.table({"id": pa.array(range(300)), "lists": lists})
    yield "arrow lists of nulls", (Format.ARROW, compressed_stream(nested), False)
    for name, form, data in damaged(seed):
        yield name, (form, data, False)


def texts() -> dict[str, bytes]:
    """Lines of JSON."""
    return {
        "deep lists": b'{"id":1,"note":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
        "deep objects": b'{"id":1,"note":' + b'{"a":' * 300_000,
        "huge integer": b'{"id":' + b"9" * 1_000_000 + b"}",
        "huge exponent": b'{"id":1e999999999}\n{"id":-1E+2147483648}',
        "huge string": b'{"id":1,"note":"' + b"x" * (4 << 20) + b'"}',
        "escapes": b'{"id":1,"note":"' + b"\\u0000" * 500_000 + b'"}',
        "many members": b'{"id":1,' + b",".join(b'"m%d":1' % n for n in range(100_000)) + b"}",
        "one member many times": b'{"id":1' + b',"id":1' * 200_000 + b"}",
        "no line end": b'{"id":1,"note":"' + b"x" * (40 << 20),
        "empty objects": b"{}\n" * 200_000,
    }


def dataset() -> DatasetDefinition:
    fields = (
        CreateField(name="id", type="int64", nullable=False),
        CreateField(name="note", type="string"),
        CreateField(name="lists", type="list<list<string>>"),
    )
    return define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=fields), record_key=["id"]))


def in_api(case: Case) -> str:
    form, data, packed_body = case
    if packed_body:
        data = b"".join(gunzip_stream(iter((data,)), expanded_bytes_max=INLINE_BYTES))
    rows = _DECODERS[form](data, input_schema(Operation.UPSERT, dataset()))
    rows.validate(full=True)
    return f"{rows.num_rows} rows"


def in_tasks(case: Case) -> str:
    form, data, packed_body = case
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "body").write_bytes(data)
        checksum = xxhash.xxh3_128(data).hexdigest()
        raw = RawInput(path="body", size_bytes=len(data), checksum=checksum, format=form, gzip=packed_body)
        decoded = TasksInProcess(LocalStorage(Path(folder))).decode(
            [raw], dataset(), Operation.UPSERT, prefix="staged/x", tag="x"
        )
        return f"{sum(file.rows for file in decoded.files)} rows"


def outcome(way: str, case: Case) -> str:
    """The number of rows, or the code of the problem. Any other exception is the end of the process."""
    try:
        return in_api(case) if way == "API" else in_tasks(case)
    except HeadwaterError as error:
        return error.code


def limited(group: list[tuple[str, str, Case]]) -> dict[str, object]:
    """How the decoding of bodies ended in a child process with little memory and time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            data_bytes = next(
                int(line.split()[1]) * 1024
                for line in Path("/proc/self/status").read_text().splitlines()
                if line.startswith("VmData:")
            )
            resource.setrlimit(resource.RLIMIT_DATA, (data_bytes + MEMORY_BYTES,) * 2)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            for name, way, case in group:
                os.write(writing, f"{way}, {name}: ".encode())
                os.write(writing, f"{outcome(way, case)}\n".encode())
            status = 0
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}"[:500].encode())
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read().decode()
    _, status, used = os.wait4(child, 0)
    ended = text.splitlines()
    bodies = [f"{way}, {name}" for name, way, _ in group]
    return {
        "status": status,
        "bodies": bodies,
        "ended": ended,
        "kib": used.ru_maxrss,
        "seconds": used.ru_utime,
    }


def groups(seed: str) -> Iterator[list[tuple[str, str, Case]]]:
    """The bodies to decode in one process: small ones together, large ones alone."""
    together = []
    for name, case in cases(seed):
        ways = ["tasks"]
        if case[0] in _DECODERS and len(case[1]) <= 2 * INLINE_BYTES:
            ways.append("API")
        some = [(name, way, case) for way in ways]
        if len(case[1]) > TOGETHER_BYTES or case[2]:
            yield from ([each] for each in some)
            continue
        together += some
        if len(together) >= TOGETHER:
            yield together
            together = []
    yield together


def main(seed: str) -> None:
    """Decodes all bodies."""
    for group in groups(seed):
        print(json.dumps(limited(group)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
