"""Where Arrow widens a column for its type, JSON and CSV widen it for the value."""

from __future__ import annotations

import io
from typing import Any, Final

import pyarrow as pa
import pytest

from app.kernel.codecs.json.json_rows import decode_ndjson
from app.kernel.codecs.shape_inference import infer_shapes
from app.kernel.codecs.splits import Split
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_merge import merge_schemas
from app.kernel.format.rows.formats import Format
from tests.kernel.codecs.samples import arrow_stream, schema_of

WIDER: Final = {
    "int16": "-300",
    "int32": "-70000",
    "int64": "-5000000000",
    "uint16": "300",
    "uint32": "70000",
    "float": "0.5",
    "double": "1e300",
    "decimal(11, 2)": "123456789.25",
    "timestamp": '"2026-11-21T10:00:00.000001Z"',
    "timestamp_ntz": '"2026-11-21T10:00:00.000001"',
}
NARROW: Final = [
    *("int8", "int16", "int32", "uint8", "uint16", "uint32", "float", "decimal(9, 2)"),
    *("timestamp(ms)", "timestamp_ntz(ms)", "date"),
]


def values(column: str, line: bytes) -> list[Any]:
    return list(decode_ndjson(line, schema_of({"x": column})).column("x").to_pylist())


def merged(column: str, form: Format, body: bytes, *, explicit_cast: bool) -> str:
    fields = [CreateField(name="k", type="int64"), CreateField(name="x", type=column)]
    dataset = define_dataset(CreateDataset(name="d", schema=CreateSchema(fields=fields), record_key=["k"]))
    found = merge_schemas(dataset, infer_shapes(form, io.BytesIO(body), Split()), explicit_cast=explicit_cast)
    return column if found is None else {field.name: field.type for field in found.schema.fields}["x"]


@pytest.mark.parametrize("explicit_cast", [False, True])
@pytest.mark.parametrize("new", WIDER)
@pytest.mark.parametrize("old", NARROW)
def test_columns_become_wider_for_texts_where_they_do_for_arrow(
    old: str, new: str, explicit_cast: bool
) -> None:
    column = schema_of({"x": new}).to_arrow().field("x").type
    line = b'{"x": %s}' % WIDER[new].encode()
    body = arrow_stream(pa.table({"x": pa.nulls(1, column)}))
    if merged(old, Format.ARROW, body, explicit_cast=explicit_cast) == old:
        return
    cells = b"x\n" + WIDER[new].strip('"').encode()
    for form, text in ((Format.NDJSON, line), (Format.CSV, cells)):
        wider = merged(old, form, text, explicit_cast=explicit_cast)
        assert values(wider, line) == values(new, line)
