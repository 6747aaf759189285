"""Arrow streams and Parquet files that are cut off, damaged, or far larger inside than outside."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pytest

from app.kernel.codecs import Format, iter_tables, plan_splits
from app.kernel.format.errors import BodyTooLarge, MalformedBody, RowTooLarge, SchemaMismatch
from tests.kernel.codecs.samples import (
    PARQUET_WRITERS,
    PLACES,
    arrow_file,
    arrow_stream,
    compressed_stream,
    parquet,
    places,
    schema_of,
)

BODIES = {
    "stream": (Format.ARROW, arrow_stream(places(40), max_chunksize=16)),
    "file": (Format.ARROW, arrow_file(places(40), max_chunksize=16)),
    "compressed stream": (Format.ARROW, compressed_stream(places(40))),
    "stream of dictionaries": (
        Format.ARROW,
        arrow_stream(places(40).set_column(1, "name", places(40)["name"].dictionary_encode())),
    ),
    "stream of views": (
        Format.ARROW,
        arrow_stream(places(40).set_column(1, "name", places(40)["name"].cast(pa.string_view()))),
    ),
    **{
        f"parquet {number}": (Format.PARQUET, parquet(places(40), **options))
        for number, options in enumerate(PARQUET_WRITERS)
    },
}


@pytest.mark.parametrize("name", BODIES)
def test_truncated_body_is_refused(name):
    form, data = BODIES[name]
    assert sum(table.num_rows for table in iter_tables(form, io.BytesIO(data), PLACES)) == 40
    step = max(1, len(data) // 150)
    for length in [*range(0, len(data), step), *range(max(0, len(data) - 12), len(data))]:
        with pytest.raises(MalformedBody):
            for _ in iter_tables(form, io.BytesIO(data[:length]), PLACES):
                pass


def is_read(form: Format, data: bytes) -> bool:
    """Whether the input is taken; it must either give sound tables or be refused as it is documented."""
    try:
        for table in iter_tables(form, io.BytesIO(data), PLACES):
            table.validate(full=True)
    except (MalformedBody, SchemaMismatch, BodyTooLarge):
        return False
    return True


@pytest.mark.parametrize("name", BODIES)
def test_damaged_body_is_refused_or_harmless(name):
    form, data = BODIES[name]
    randomness = random.Random(name)
    refused = 0
    for _ in range(250):
        damaged = bytearray(data)
        for _ in range(randomness.choice((1, 1, 3))):
            # Where lengths and offsets are: the metadata is at the end of Parquet and all over a stream.
            first = max(0, len(data) - 1500) if form is Format.PARQUET and randomness.random() < 0.5 else 0
            place = randomness.randrange(first, len(data))
            damaged[place] = randomness.choice((0, 1, 127, 128, 255, randomness.randrange(256)))
        refused += not is_read(form, bytes(damaged))
    assert refused > 25


def test_footer_of_an_arrow_file_is_not_used():
    """It may name a batch twice, or one of which the size was not checked."""
    form, data = BODIES["file"]
    length = int.from_bytes(data[-10:-6], "little")
    damaged = data[: -10 - length] + bytes(length) + data[-10:]
    assert sum(table.num_rows for table in iter_tables(form, io.BytesIO(damaged), PLACES)) == 40


@pytest.mark.parametrize(
    ("form", "data", "reason"),
    [
        (Format.ARROW, b"", "the body is empty"),
        (Format.ARROW, b"ARROW1\x00\x00rest", "the Arrow file cannot be read"),
        (Format.ARROW, b"not arrow at all", "the Arrow stream cannot be read"),
        (Format.ARROW, BODIES["stream"][1] + b"\x00", "bytes follow the end of the Arrow stream"),
        (Format.ARROW, BODIES["stream"][1][:-8], "its end-of-stream mark is missing"),
        (Format.PARQUET, b"", "it does not start with PAR1"),
        (Format.PARQUET, b"PARE" + b"\x00" * 100 + b"PARE", "the Parquet file is encrypted"),
        (Format.PARQUET, b"PAR1" + b"\x00" * 100, "the Parquet file cannot be read"),
        (Format.PARQUET, b"PAR1PAR1", "the Parquet file cannot be read"),
        (Format.CSV, b"", "the body is empty"),
        (Format.NDJSON, b"", "the body is empty"),
        (Format.JSON_ROWS, b"", "the body is empty"),
    ],
)
def test_body_of_another_format_is_named(form, data, reason):
    with pytest.raises(MalformedBody) as caught:
        list(iter_tables(form, io.BytesIO(data), PLACES))
    assert reason in caught.value.detail
    if not data:
        with pytest.raises(MalformedBody, match="the body is empty"):
            plan_splits(form, io.BytesIO(data), 0, 1)


def test_columns_are_checked_before_rows_are_read():
    wrong = pa.table({"id": pa.array([], pa.string()), "z": pa.array([], pa.int8())})
    for form, data in ((Format.ARROW, arrow_stream(wrong)), (Format.PARQUET, parquet(wrong))):
        with pytest.raises(SchemaMismatch) as caught:
            list(iter_tables(form, io.BytesIO(data), PLACES))
        details = [error["detail"] for error in caught.value.facts["errors"]]
        assert details == [
            'column "id": expected int64, got Arrow type string, which cannot be converted without loss; cast it to '
            "int64, which writes with merge_schema and explicit_cast do themselves",
            'column "z": the schema has no field "z"',
        ]


def test_body_without_rows_is_checked_and_yields_no_table():
    empty = PLACES.to_arrow().empty_table()
    for form, data in (
        (Format.ARROW, arrow_stream(empty)),
        (Format.PARQUET, parquet(empty)),
        (Format.JSON_ROWS, b"[]"),
        (Format.CSV, b"id\n"),
    ):
        assert list(iter_tables(form, io.BytesIO(data), PLACES)) == []
    (split,) = plan_splits(Format.PARQUET, io.BytesIO(parquet(empty)), 500, 100)
    assert list(iter_tables(Format.PARQUET, io.BytesIO(parquet(empty)), PLACES, split=split)) == []


LARGE = "x" * 400_000


@pytest.mark.parametrize(
    ("form", "data"),
    [
        (
            Format.ARROW,
            arrow_stream(pa.table({"name": pa.DictionaryArray.from_arrays(pa.array([0] * 5000), [LARGE])})),
        ),
        (Format.PARQUET, parquet(pa.table({"name": [LARGE] * 600}), store_schema=False, compression="zstd")),
        (
            Format.PARQUET,
            parquet(
                pa.table({"name": [LARGE] * 600}),
                use_dictionary=False,
                column_encoding={"name": "DELTA_BYTE_ARRAY"},
                compression="zstd",
            ),
        ),
    ],
    ids=["arrow dictionary", "parquet dictionary", "parquet prefixes"],
)
def test_small_body_that_expands_is_read_in_small_steps(form, data):
    assert len(data) < 1 << 20
    rows = 0
    before = pa.total_allocated_bytes()
    for table in iter_tables(form, io.BytesIO(data), schema_of({"name": "string"})):
        rows += table.num_rows
        assert table.nbytes <= 24 << 20
        assert pa.total_allocated_bytes() - before < 512 << 20
    assert rows >= 600


def test_single_row_that_expands_beyond_its_bound_is_refused():
    lists = pa.array([["x"], None, ["x" * 4_000] * 5_000])
    data = parquet(pa.table({"l": lists}), store_schema=False, compression="zstd")
    del lists
    assert len(data) < 100_000
    with pytest.raises(RowTooLarge, match="row 2 has more than") as refusal:
        list(iter_tables(Format.PARQUET, io.BytesIO(data), schema_of({"l": "list<string>"})))
    assert refusal.value.facts == {"limit_bytes": 16 << 20, "row": 2, "pointer": "/rows/2"}


def test_compressed_stream_with_an_impossible_length_is_refused():
    data = bytearray(compressed_stream(pa.table({"id": range(1000)})))
    # A compressed buffer starts with its uncompressed size, 8,000 bytes here.
    place = data.index((8000).to_bytes(8, "little"))
    data[place : place + 8] = (1 << 60).to_bytes(8, "little")
    with pytest.raises(MalformedBody, match="the Arrow stream cannot be read"):
        list(iter_tables(Format.ARROW, io.BytesIO(bytes(data)), PLACES))
