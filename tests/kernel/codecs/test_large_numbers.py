"""Whole numbers in columns of real numbers: exact, the shortest digits of a value, or refused, in every form.

Others are read as the nearest value.
"""

from __future__ import annotations

import io
import json
import math
import shutil
import struct
import subprocess
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Final

import numpy as np
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
NOT_EXACT: Final = ["9007199254740993", "-9007199254740993", "12345678901234567891", "1152921504606847001"]
# As JavaScript prints 2**53 + 2, 2**60, 2**64, 1e20 and 2**69; as others print 1e23.
SHORTEST: Final = [
    "9007199254740994",
    "1152921504606847000",
    "-18446744073709552000",
    "100000000000000000000",
    "590295810358705700000",
    "1" + "0" * 23,
]
ROUNDED: Final = ["0.1", "1e22", "1e23", "9007199254740993.0", "9007199254740993e0", "9007199254740993.5"]


def arrived(way: Callable[[str, Schema], pa.Table], text: str, kind: str) -> object:
    return way(text, schema_of({"x": kind})).column("x").to_pylist()[0]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("text", EXACT + ROUNDED + SHORTEST)
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


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16777218", 2**24 + 2),
        ("1234570000", 1234569984),
        ("100000000000000000000", 100000002004087734272),
        # What JavaScript prints of the same number, whose type there is a double.
        ("100000002004087730000", 100000002004087734272),
    ],
)
def test_the_shortest_digits_of_a_float_are_the_float(
    way: Callable[[str, Schema], pa.Table], text: str, value: int
) -> None:
    assert arrived(way, text, "float") == float(value)


@pytest.mark.parametrize("way", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("text", SHORTEST)
def test_the_shortest_digits_of_a_double_are_read_in_lists(
    way: Callable[[str, Schema], pa.Table], text: str
) -> None:
    assert arrived(way, text, "list<double>") == [1.0, float(text)]


@pytest.mark.parametrize("kind", ["double", "float"])
def test_values_of_maps_have_the_same_rule(kind: str) -> None:
    schema = schema_of({"x": f"map<string, {kind}>"})
    for read, form in ((decode_ndjson, '{{"x": {{"a": {}}}}}'), (decode_csv, 'x\n"{{""a"": {}}}"\n')):
        rows = read(form.format("1152921504606847000").encode(), schema)
        assert rows.column("x").to_pylist() == [[("a", 2.0**60)]]
        with pytest.raises(SchemaMismatch, match=f"not every whole number is a {kind}"):
            read(form.format("1152921504606847001").encode(), schema)


def test_leading_zeros_are_no_digits_of_a_number() -> None:
    assert arrived(WAYS["csv"], "0" * 5_000 + "1152921504606847000", "double") == 2.0**60
    with pytest.raises(SchemaMismatch, match="not every whole number is a double"):
        arrived(WAYS["csv"], "0" * 5_000 + "1152921504606847001", "double")


def doubles() -> list[float]:
    """Doubles that JavaScript prints as whole numbers, beyond ±2^53."""
    random = Random(7)
    powers = [float(2**at + 2 ** (at - 52) * step) for at in range(53, 70) for step in (-1, 0, 1, 2)]
    return [
        *(value for value in powers if value > 2**53),
        *(random.choice((1, -1)) * 2 ** random.uniform(53, 69.7) for _ in range(2_000)),
        *(float(10**at) for at in range(16, 21)),
    ]


def printed_by_javascript(values: list[float]) -> list[str]:
    """The values as JSON of JavaScript; without Node.js, by the rule that its specification gives."""
    node = shutil.which("node")
    if node is None:
        return [str(int(Decimal(repr(value)))) for value in values]
    script = "console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8'))))"
    run = subprocess.run(
        [node, "-e", script], input=json.dumps(values), capture_output=True, text=True, check=True
    )
    return run.stdout.strip()[1:-1].split(",")


@pytest.mark.parametrize("kind", ["double", "list<double>"])
def test_doubles_that_javascript_prints_are_read_as_they_were(kind: str) -> None:
    values = doubles()
    texts = printed_by_javascript(values)
    assert any(Decimal(text) != Decimal(value) for text, value in zip(texts, values, strict=True))
    cells = texts if kind == "double" else [f"[{text}]" for text in texts]
    schema = schema_of({"x": kind})
    expected = values if kind == "double" else [[value] for value in values]
    rows = ",".join(f'{{"x":{cell}}}' for cell in cells)
    assert decode_json_rows(f"[{rows}]".encode(), schema).column("x").to_pylist() == expected
    assert decode_csv(("x\n" + "\n".join(cells)).encode(), schema).column("x").to_pylist() == expected


def test_floats_that_others_print_as_whole_numbers_are_read_as_they_were() -> None:
    random = Random(8)
    bits = [random.randrange(0x4B800001, 0x7F7FFFFF) for _ in range(2_000)]
    values = [struct.unpack("f", struct.pack("I", each))[0] for each in bits]
    for printed in (lambda value: str(np.float32(value)), repr):
        texts = [str(int(Decimal(printed(value)))) for value in values]
        found = decode_csv(("x\n" + "\n".join(texts)).encode(), schema_of({"x": "float"}))
        assert found.column("x").to_pylist() == values


@pytest.mark.parametrize("way", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("text", NOT_EXACT)
def test_whole_numbers_within_lists_are_no_exception(
    way: Callable[[str, Schema], pa.Table], text: str
) -> None:
    with pytest.raises(SchemaMismatch, match="not every whole number is a double"):
        arrived(way, text, "list<double>")


@given(number=st.integers(-(2**63), 2**63 - 1), kind=st.sampled_from(["double", "float"]))
def test_texts_agree_and_arrow_accepts_exact_values_alone(number: int, kind: str) -> None:
    [text] = {outcome(way, number, kind) for way in WAYS.values()}
    arrow = outcome(of_arrow, number, kind)
    assert arrow in (text, refusal(number, kind))
    assert (arrow == float(number)) == (nearest(number, kind) == number)


def outcome(way: Callable[[str, Schema], pa.Table], number: int, kind: str) -> object:
    try:
        return arrived(way, str(number), kind)
    except SchemaMismatch as error:
        detail: str = error.facts["errors"][0]["detail"]
        return detail.replace("the number ", "").replace('"', "")


def nearest(number: int, kind: str) -> int:
    return int(float(number)) if kind == "double" else int(np.float32(number))


def refusal(number: int, kind: str) -> str:
    bits = 53 if kind == "double" else 24
    return (
        f"expected {kind}, got {number}, which is beyond ±2^{bits}, where not every whole number is a {kind}, "
        "and is not one"
    )


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
