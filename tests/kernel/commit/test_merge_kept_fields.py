"""Changes that keep fields, where whole rows are facts: under `first` and `aggregate`, in chains and in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pytest

from app.kernel.commit.merge.merge import merge
from app.kernel.commit.merge.outcome import MergeResult
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.kept_fields import KEPT_FIELD, kept_text
from app.kernel.format.rows.meta_columns import META_FIELDS
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN

KEPT: Final = object()
_TYPES: Final = {"id": "int64", "a": "string", "n": "int64"}
MODES: Final[dict[str, dict[str, Any]]] = {
    "commit_time": {},
    "partial": {"merge_mode": "partial"},
    "aggregate": {"merge_mode": "aggregate", "aggregates": {"n": "count", "a": "last"}},
    "sum": {"merge_mode": "aggregate", "aggregates": {"n": "sum"}},
    "first": {"merge_mode": "first"},
}
Row = tuple[int, Any, Any]


def _dataset(mode: str) -> DatasetDefinition:
    fields = [{"name": name, "type": kind} for name, kind in _TYPES.items()]
    registration = {"name": "t", "schema": {"fields": fields}, "record_key": ["id"], **MODES[mode]}
    return define_dataset(msgspec.convert(registration, CreateDataset))


def _merged(dataset: DatasetDefinition, live: Sequence[Row], *writes: Sequence[Row]) -> MergeResult:
    """The result of writes of facts. A row has an id, `a` and `n`, which may be KEPT."""
    names = dataset.schema.names()
    schema = dataset.schema.to_arrow()
    current = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in live], schema=schema)
    for field in META_FIELDS:
        current = current.append_column(field, pa.array(range(len(live)), pa.int64()))
    rows = []
    for job, write in enumerate(writes):
        for at, row in enumerate(write):
            values = dict(zip(names, row, strict=True))
            kept = [dataset.schema.field(name).id for name, value in values.items() if value is KEPT]
            plain = {name: None if value is KEPT else value for name, value in values.items()}
            own = {KEPT_FIELD.name: kept_text(kept), ROW_COLUMN: at, JOB_COLUMN: job}
            rows.append({OP_COLUMN: Op.CORRECT_TO, **plain, **own})
    nullable = [field.with_nullable(True) for field in schema]
    order = [pa.field(ROW_COLUMN, pa.int64()), pa.field(JOB_COLUMN, pa.int32())]
    incoming = pa.Table.from_pylist(rows, schema=pa.schema([OP_FIELD, *nullable, KEPT_FIELD, *order]))
    intents = {job: WriteIntent(operation=Operation.CHANGELOG, by_arrival=True) for job in range(len(writes))}
    return merge(dataset, current, incoming, intents)


def _rows(dataset: DatasetDefinition, rows: pa.Table) -> list[Row]:
    found = rows.select(dataset.schema.names()).to_pylist()
    return sorted((row["id"], row["a"], row["n"]) for row in found)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_fact_keeps_what_the_row_before_it_has(mode: str, together: bool) -> None:
    dataset = _dataset(mode)
    rows: list[Row] = [(1, "b", KEPT), (1, KEPT, KEPT), (1, KEPT, 7), (1, KEPT, KEPT), (2, KEPT, KEPT)]
    writes = [rows] if together else [[row] for row in rows]
    result = _merged(dataset, [(1, "a", 5)], *writes)
    assert _rows(dataset, result.rows) == [(1, "b", 7), (2, None, None)]
    assert result.counts[len(writes) - 1].inserted == 1


@pytest.mark.parametrize("mode", MODES)
def test_fact_that_keeps_all_changes_nothing(mode: str) -> None:
    result = _merged(_dataset(mode), [(1, "a", 5)], [(1, KEPT, KEPT)])
    assert result.stays.tolist() == [True]
    assert result.changes.num_rows == 0
    assert result.counts[0].unchanged == 1


def test_changes_have_the_values_that_rows_keep() -> None:
    dataset = _dataset("commit_time")
    result = _merged(dataset, [(1, "a", 5)], [(1, KEPT, 6)])
    changes = result.changes.select([OP_COLUMN, *dataset.schema.names()]).to_pylist()
    assert [tuple(change.values()) for change in changes] == [
        (Op.CORRECT_FROM, 1, "a", 5),
        (Op.CORRECT_TO, 1, "a", 6),
    ]
