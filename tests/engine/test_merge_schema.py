"""Inputs that bring their schema, on Spark: read first, then decoded under it."""

from __future__ import annotations

import json
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.codecs import Format
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import RawInput
from tests.support.lakehouse import definition
from workers.engine.spark_engine import SparkEngine

DATASET = definition()
MERGING = WriteOptions(merge_schema=True)


def stored(storage: LocalStorage, path: str, content: bytes, form: Format) -> RawInput:
    with storage.create(path) as file:
        file.write(content)
    checksum = xxhash.xxh3_128(content).hexdigest()
    return RawInput(path=path, size_bytes=len(content), checksum=checksum, format=form)


def decoded_rows(
    engine: SparkEngine, storage: LocalStorage, content: bytes, form: Format
) -> tuple[list[tuple[int, str, str]], list[dict[str, object]]]:
    """The fields of the schema that the input brought, and its rows."""
    raw = stored(storage, f"staged/{form.value}.body", content, form)
    prefix = f"staged/{form.value}"
    decoded = engine.decode([raw], DATASET, Operation.UPSERT, prefix=prefix, options=MERGING, tag=form.value)
    assert decoded.definition is not None
    store = StagedFileStore(storage)
    rows = [
        row
        for file in decoded.files
        for row in store.read(file, range(len(file.batches)), decoded.definition)
        .select(decoded.definition.schema.names())
        .to_pylist()
    ]
    fields = [(field.id, field.name, field.type) for field in decoded.definition.schema.fields]
    return fields, sorted(rows, key=lambda row: row["id"])


def test_text_rows_bring_inferred_types(engine: SparkEngine, storage: LocalStorage) -> None:
    rows = [
        {"id": 1, "note": None, "score": 1, "at": {"x": True}},
        {"id": 2, "note": "b", "score": 2.5, "at": None},
    ]
    content = b"\n".join(json.dumps(row).encode() for row in rows)
    fields, found = decoded_rows(engine, storage, content, Format.NDJSON)
    assert fields == [
        (1, "id", "int64"),
        (2, "note", "string"),
        (3, "score", "double"),
        (4, "at", "struct<x: boolean>"),
    ]
    assert found == rows


def test_parquet_brings_its_types(engine: SparkEngine, storage: LocalStorage) -> None:
    body = BytesIO()
    table = pa.table({"id": pa.array(range(100)), "n": pa.array(range(100), pa.int16())})
    pq.write_table(table, body, row_group_size=10)
    fields, found = decoded_rows(engine, storage, body.getvalue(), Format.PARQUET)
    assert fields[2:] == [(3, "n", "int16")]
    assert found == [{"id": number, "note": None, "n": number} for number in range(100)]


def test_column_without_values_is_ignored(engine: SparkEngine, storage: LocalStorage) -> None:
    raw = stored(storage, "staged/null.body", b'{"id": 1, "new": null}', Format.NDJSON)
    decoded = engine.decode(
        [raw], DATASET, Operation.UPSERT, prefix="staged/null", options=MERGING, tag="null"
    )
    assert (decoded.definition, decoded.ignored_fields) == (None, ("new",))


def test_column_without_a_type_is_refused(engine: SparkEngine, storage: LocalStorage) -> None:
    raw = stored(storage, "staged/nothing.body", b'{"id": 1, "new": []}', Format.NDJSON)
    with pytest.raises(SchemaMismatch, match="has arrays without values only"):
        engine.decode(
            [raw], DATASET, Operation.UPSERT, prefix="staged/nothing", options=MERGING, tag="nothing"
        )
