"""Changes as columns with an op beside them: Arrow, Parquet and CSV."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from app.kernel.codecs import Format, conform, decode_csv
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.change_schema import change_schema
from app.kernel.format.rows.changelog import OP_COLUMN, SYMBOLS, Op
from tests.kernel.codecs.changes import CHANGES, OOLONG, TEA, op_rows, stepwise
from tests.kernel.codecs.samples import arrow_stream, parquet, schema_of

FLAT = [("+A", {"id": 1, "name": "tea"}), ("-R", {"id": 2}), ("-C", TEA), ("+C", OOLONG)]


def flat(op: pa.Array, name: str = "op") -> pa.Table:
    return pa.table(
        {
            "name": ["tea", None, "tea", "oolong"],
            name: op,
            "id": pa.array([1, 2, 1, 1], pa.int32()),
        }
    )


@pytest.mark.parametrize(
    "op",
    [
        pa.array([0, 1, 2, 3], pa.uint8()),
        pa.array([0, 1, 2, 3], pa.int64()),
        pa.array(SYMBOLS),
        pa.array(["0", "1", "2", "3"]),
        pa.array(SYMBOLS).dictionary_encode(),
        pa.array(SYMBOLS, pa.large_string()),
    ],
    ids=lambda op: str(op.type)[:12],
)
def test_arrow_and_parquet_changes_have_an_op_column(op: pa.Array) -> None:
    table = flat(op)
    for found in (
        conform(table, CHANGES),
        stepwise(Format.ARROW, arrow_stream(table, max_chunksize=3)),
        stepwise(Format.PARQUET, parquet(table, row_group_size=3)),
    ):
        assert op_rows(found) == FLAT
        assert found.schema.equals(CHANGES.to_arrow(), check_metadata=True)


@pytest.mark.parametrize("ops", [SYMBOLS, ("0", "1", "2", "3")])
def test_csv_changes_have_an_op_column(ops: tuple[str, ...]) -> None:
    lines = [f"{op},{row['id']},{row.get('name', '')}" for op, (_, row) in zip(ops, FLAT, strict=True)]
    data = "\n".join(["op,id,name", *lines]).encode()
    assert op_rows(decode_csv(data, CHANGES)) == FLAT
    assert op_rows(stepwise(Format.CSV, data)) == FLAT


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"op": "string"}, "_op"),
        ({"op": "string", "_op": "int32"}, "_hw_op"),
        ({"_op": "string"}, "op"),
        ({"OP": "string"}, "op"),
    ],
)
def test_dataset_column_named_op_is_kept(fields: dict[str, str], name: str) -> None:
    schema = change_schema(schema_of({"id": "int64!", **fields}), ["id"])
    own = dict.fromkeys(fields)
    [(field, _)] = list(fields.items())[:1]
    table = pa.table({"id": [1], field: ["mine"], name: ["-R"]})
    assert conform(table, schema).to_pylist() == [{OP_COLUMN: Op.RETRACT, "id": 1, **own, field: "mine"}]
    csv = f"{name},{field},id\n-R,mine,1\n".encode()
    assert decode_csv(csv, schema).to_pylist() == [{OP_COLUMN: Op.RETRACT, "id": 1, **own, field: "mine"}]


@pytest.mark.parametrize(
    ("columns", "pointer", "words"),
    [
        ({"id": [1], "name": ["x"]}, "", 'a value is required: "op" is string'),
        ({"op": [0.5], "id": [1], "name": ["x"]}, "", 'column "op": expected string, got Arrow type double'),
        ({"op": ["+A"], "name": ["x"]}, "", 'a value is required: "id"'),
        (
            {"op": ["+X"], "id": [1], "name": ["x"]},
            "/0/op",
            "expected +A, -R, -C, +C or a code 0–3, got '+X'",
        ),
        ({"op": ["c"], "id": [1], "name": ["x"]}, "/0/op", "got 'c'"),
        ({"op": [4], "id": [1], "name": ["x"]}, "/0/op", "got 4"),
        ({"op": [-1], "id": [1], "name": ["x"]}, "/0/op", "got -1"),
        ({"op": pa.array([None], pa.string()), "id": [1], "name": ["x"]}, "/0/op", "got null"),
        ({"op": [0], "id": [1]}, "/0/name", "got null"),
        ({"op": ["+C"], "id": [1], "name": pa.nulls(1)}, "/0/name", "got null"),
    ],
)
def test_columns_without_valid_ops_are_refused(columns: dict[str, Any], pointer: str, words: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        stepwise(Format.ARROW, arrow_stream(pa.table(columns)))
    error = caught.value.facts["errors"][-1]
    assert error["pointer"] == f"/rows{pointer}"
    assert words in error["detail"]


@pytest.mark.parametrize(
    ("line", "pointer", "words"),
    [
        ("+X,1,tea", "/rows/1/op", "expected +A, -R, -C, +C or a code 0–3, got '+X'"),
        (",1,tea", "/rows/1/op", 'a value is required: "op" is string'),
        ("0,1,", "/rows/1/name", "got null"),
        ("1,,tea", "/rows/1/id", "a value is required"),
    ],
)
def test_csv_without_valid_ops_is_refused(line: str, pointer: str, words: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        decode_csv(f"op,id,name\n+A,1,tea\n{line}\n".encode(), CHANGES)
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == pointer
    assert words in error["detail"]
