"""Transforms of sources on a real Spark session: rows of a write in, rows of the same write out, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pyarrow as pa
import pytest

from app.features.sources.transforms import BoundTransform, bind_transform, transformed
from app.features.sources.values import SourceTransform, TransformField
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.errors import DerivationFailed
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.staged import StagedFile
from tests.support.lake_table import Row
from tests.support.view_runs import staged_rows
from workers.engine.spark_engine import SparkEngine

pytestmark = [pytest.mark.spark]
_numbers = count(1)
FIELDS = [TransformField(name="nr", type="int64"), TransformField(name="text", type="string")]


def bound(sql: str) -> BoundTransform:
    return bind_transform(SourceTransform(sql=sql, fields=FIELDS))


@pytest.fixture(scope="module")
def target() -> DatasetDefinition:
    """Keyed, in several buckets, with a column that no query here makes."""
    types = {"id": "int64", "note": "string", "other": "date"}
    schema = CreateSchema(fields=[CreateField(name=name, type=type_) for name, type_ in types.items()])
    return define_dataset(
        CreateDataset(name="notes", schema=schema, record_key=["id"], bucket=CreateBucket(count=3))
    )


def staged(
    storage: LocalStorage,
    query: BoundTransform,
    target: DatasetDefinition,
    operation: Operation,
    *files: list[Row],
) -> tuple[StagedFile, ...]:
    """The rows of several files of a write, as they are decoded."""
    read = query.rows_of(target)
    fields = list(read.schema.to_arrow())
    if operation is Operation.CHANGELOG:
        fields.insert(0, pa.field(OP_COLUMN, pa.uint8()))
    found = []
    for rows in files:
        table = pa.Table.from_pylist(rows, schema=pa.schema(fields))
        file = StagedFileStore(storage).write(read, operation, [table], f"read/{next(_numbers)}.arrow")
        assert file is not None
        found.append(file)
    return tuple(found)


def run(
    engine: SparkEngine,
    query: BoundTransform,
    target: DatasetDefinition,
    operation: Operation,
    files: Sequence[StagedFile],
) -> tuple[StagedFile, ...]:
    number = next(_numbers)
    return transformed(
        engine,
        query,
        tuple(files),
        target,
        operation,
        relation=f"rows_{number}",
        prefix=f"made/{number}",
        tag=f"made-{number}",
    )


def test_rows_keep_their_order_across_files_and_missing_columns_are_null(
    engine: SparkEngine, storage: LocalStorage, target: DatasetDefinition
) -> None:
    query = bound("SELECT nr % 4 AS id, concat(text, '!') AS note FROM source WHERE nr <> 7")
    files = [[{"nr": 10 * part + n, "text": f"{part}.{n}"} for n in range(10)] for part in range(5)]
    read = staged(storage, query, target, Operation.UPSERT, *files)
    made = run(engine, query, target, Operation.UPSERT, read)
    rows = staged_rows(storage, target, made)
    assert rows == [
        {OP_COLUMN: Op.APPEND, "id": row["nr"] % 4, "note": f"{row['text']}!", "other": None}
        for part in files
        for row in part
        if row["nr"] != 7
    ]


def test_changes_keep_their_ops(
    engine: SparkEngine, storage: LocalStorage, target: DatasetDefinition
) -> None:
    query = bound("SELECT nr AS id, upper(text) AS note FROM source")
    ops = [Op.APPEND, Op.CORRECT_FROM, Op.CORRECT_TO, Op.RETRACT]
    changes: list[Row] = [
        {OP_COLUMN: op, "nr": 1, "text": text} for op, text in zip(ops, "aabb", strict=True)
    ]
    read = staged(storage, query, target, Operation.CHANGELOG, changes)
    made = run(engine, query, target, Operation.CHANGELOG, read)
    rows = staged_rows(storage, target, made)
    assert [(row[OP_COLUMN], row["id"], row["note"]) for row in rows] == [
        (op, 1, note) for op, note in zip(ops, "AABB", strict=True)
    ]


def test_all_rows_may_be_left_out(
    engine: SparkEngine, storage: LocalStorage, target: DatasetDefinition
) -> None:
    query = bound("SELECT nr AS id FROM source WHERE nr < 0")
    read = staged(storage, query, target, Operation.INSERT, [{"nr": 1, "text": "a"}])
    assert run(engine, query, target, Operation.INSERT, read) == ()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT CAST(text AS BIGINT) AS id FROM source", "BIGINT"),
        ("SELECT CASE WHEN nr < 0 THEN nr END AS id FROM source", "column id"),
    ],
    ids=["value", "null_key"],
)
def test_values_that_cannot_be_computed_or_stored_fail_the_write(
    engine: SparkEngine, storage: LocalStorage, target: DatasetDefinition, sql: str, message: str
) -> None:
    query = bound(sql)
    read = staged(storage, query, target, Operation.UPSERT, [{"nr": 1, "text": "a"}])
    with pytest.raises(DerivationFailed, match=message):
        run(engine, query, target, Operation.UPSERT, read)
