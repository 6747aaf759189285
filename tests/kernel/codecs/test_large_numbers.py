"""Whole numbers in columns of real numbers: exact or refused, in every form. Others are read as the nearest value."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.codecs.csv.csv_rows import decode_csv
from app.kernel.codecs.csv.encode_csv import csv_header, encode_csv
from app.kernel.codecs.json.encode import encode_rows_ndjson
from app.kernel.codecs.json.json_rows import decode_json_rows, decode_ndjson
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.schema import Schema
from tests.kernel.codecs.samples import arrow_stream, schema_of

WAYS: Final[dict[str, Callable[[str, Schema], pa.Table]]] = {
    "ndjson": lambda text, schema: decode_ndjson(f'{{"x": {text}}}'.encode(), schema),
    "json": lambda text, schema: decode_json_rows(f'[{{"x": {text}}}]'.encode(), schema),
    "csv": lambda text, schema: decode_csv(f"x\n{text}\n".encode(), schema),
}
NESTED: Final[dict[str, Callable[[str, Schema], pa.Table]]] = {
    "ndjson": lambda text, schema: decode_ndjson(f'{{"x": [1, {text}]}}'.encode(), schema),
    "csv": lambda text, schema: decode_csv(f'x\n"[1, {text}]"\n'.encode(), schema),
}
EXACT: Final = ["9007199254740992", "9007199254740994", "-9007199254740994", "1" + "0" * 22]
NOT_EXACT: Final = ["9007199254740993", "-9007199254740993", "12345678901234567891", "1" + "0" * 23]
ROUNDED: Final = ["0.1", "1e22", "1e23", "9007199254740993.0", "9007199254740993e0", "9007199254740993.5"]


def arrived(way: Callable[[str, Schema], pa.Table], text: str, kind: str) -> object:
    return way(text, schema_of({"x": kind})).column("x").to_pylist()[0]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("text", EXACT + ROUNDED)
def test_numbers_are_read_as_the_nearest_double(way: Callable[[str, Schema], pa.Table], text: str) -> None:
    assert arrived(way, text, "double") == float(text)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("text", "kind"),
    [*((text, "double") for text in NOT_EXACT), ("16777217", "float"), ("1234567891", "float")],
)
def test_whole_numbers_that_would_be_rounded_are_refused(
    way: Callable[[str, Schema], pa.Table], text: str, kind: str
) -> None:
    with pytest.raises(SchemaMismatch) as refused:
        arrived(way, text, kind)
    assert refused.value.facts["errors"][0]["pointer"].endswith("rows/0/x")
    assert text in refused.value.detail
    assert f"where not every whole number is a {kind}" in refused.value.detail


@pytest.mark.parametrize("way", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("text", NOT_EXACT)
def test_whole_numbers_within_lists_are_no_exception(
    way: Callable[[str, Schema], pa.Table], text: str
) -> None:
    with pytest.raises(SchemaMismatch, match="not every whole number is a double"):
        arrived(way, text, "list<double>")


@given(number=st.integers(-(2**63), 2**63 - 1), kind=st.sampled_from(["double", "float"]))
def test_arrow_and_texts_agree(number: int, kind: str) -> None:
    outcomes = set()
    for way in (*WAYS.values(), of_arrow):
        try:
            outcomes.add(arrived(way, str(number), kind))
        except SchemaMismatch as error:
            outcomes.add(error.facts["errors"][0]["detail"].replace("the number ", "").replace('"', ""))
    assert len(outcomes) == 1


def of_arrow(text: str, schema: Schema) -> pa.Table:
    body = arrow_stream(pa.table({"x": pa.array([int(text)], pa.int64())}))
    return pa.concat_tables(iter_tables(Format.ARROW, io.BytesIO(body), schema))


@given(number=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_what_is_written_is_read(number: float) -> None:
    schema = schema_of({"f": "float", "d": "double"})
    rows = pa.table({"f": pa.array([number], pa.float32()), "d": [number]})
    as_csv = csv_header(rows.schema) + encode_csv(rows)
    for found in (decode_csv(as_csv, schema), decode_ndjson(encode_rows_ndjson(rows), schema)):
        [row] = found.to_pylist()
        assert row == {"f": number, "d": number}
        assert math.copysign(1, row["d"]) == math.copysign(1, number)
