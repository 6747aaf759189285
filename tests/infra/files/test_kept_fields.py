"""The fields that rows keep, in staged files and in merges that do not fit into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from app.infra.files.slices.incoming import Incoming, incoming_schema
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.slice_merge import MatchedRows, merge_incoming
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_FIELD, Op
from app.kernel.format.rows.kept_fields import KEPT_COLUMN, KEPT_FIELD
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN

DATASET: Final[DatasetDefinition] = define_dataset(
    CreateDataset(
        name="letters",
        schema=CreateSchema(
            fields=[CreateField(name="id", type="int64"), CreateField(name="body", type="string")]
        ),
        record_key=["id"],
    )
)
BODY: Final = str(DATASET.schema.field("body").id)


def changes(*rows: tuple[int, str | None], kept: str | None = None) -> pa.Table:
    """Changes that put rows (id, body). `kept`: of each; without it there is no such column."""
    fields = [field.with_nullable(True) for field in DATASET.schema.to_arrow()]
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(fields)]
    table = pa.table(columns, schema=pa.schema(fields))
    table = table.add_column(0, OP_FIELD, pa.array([Op.CORRECT_TO] * len(rows), pa.uint8()))
    return table if kept is None else table.append_column(KEPT_FIELD, pa.array([kept] * len(rows)))


@pytest.mark.parametrize("inline_bytes_max", [0, 100_000])
def test_staged_rows_have_the_fields_that_they_keep(tmp_path: Path, inline_bytes_max: int) -> None:
    store = StagedFileStore(LocalStorage(tmp_path), inline_bytes_max=inline_bytes_max)
    table = pa.concat_tables(
        [changes((1, "a"), (2, "b")), changes((1, None), kept=BODY)], promote_options="default"
    )
    file = store.stage(DATASET, Operation.CHANGELOG, table, "s/a.arrow")
    assert file is not None
    found = store.read(file, range(len(file.batches)), DATASET).sort_by(ROW_COLUMN)
    assert found.column(KEPT_COLUMN).to_pylist() == [None, None, BODY]


def test_later_tables_of_a_staged_file_may_keep_fields(tmp_path: Path) -> None:
    store = StagedFileStore(LocalStorage(tmp_path))
    tables = [changes((1, "a"), (2, "b")), changes((1, None), kept=BODY)]
    file = store.write(DATASET, Operation.CHANGELOG, tables, "s/a.arrow")
    assert file is not None
    found = store.read(file, range(len(file.batches)), DATASET).sort_by(ROW_COLUMN)
    assert found.column(KEPT_COLUMN).to_pylist() == [None, None, BODY]


def test_staged_rows_that_keep_nothing_are_read_without_the_column(tmp_path: Path) -> None:
    store = StagedFileStore(LocalStorage(tmp_path))
    file = store.write(DATASET, Operation.CHANGELOG, [changes((1, "a"))], "s/a.arrow")
    assert file is not None
    assert KEPT_COLUMN not in store.read(file, range(len(file.batches)), DATASET).column_names


@pytest.mark.parametrize("memory_bytes", [1, 2**26], ids=["spilled", "in memory"])
@pytest.mark.parametrize("first_keeps", [True, False])
def test_tables_with_and_without_kept_fields_are_merged(
    tmp_path: Path, memory_bytes: int, first_keeps: bool
) -> None:
    keeping, whole = changes((1, None), (2, None), kept=BODY), changes((1, "a"), (3, "c"))
    tables = [keeping, whole] if first_keeps else [whole, keeping]
    found: dict[int, Any] = {}
    for item in merge_incoming(
        DATASET,
        lambda _: (),
        Incoming(
            tables=[_numbered(table, job) for job, table in enumerate(tables)],
            intents={job: WriteIntent(operation=Operation.CHANGELOG) for job in range(2)},
            rows=4,
        ),
        MemoryBudget(bytes_max=memory_bytes, scratch=tmp_path),
        live_rows=0,
    ):
        assert isinstance(item, MatchedRows)
        found |= {row["id"]: row["body"] for row in item.result.rows.to_pylist()}
    assert found == {1: "a", 2: None, 3: "c"}


def _numbered(table: pa.Table, job: int) -> pa.Table:
    """The rows of a write as they are merged."""
    table = table.append_column(ROW_COLUMN, pa.array(range(table.num_rows), pa.int64()))
    table = table.append_column(JOB_COLUMN, pa.array([job] * table.num_rows, pa.int32()))
    schema = incoming_schema(DATASET, with_kept_fields=KEPT_COLUMN in table.column_names)
    return table.select(schema.names).cast(schema)
