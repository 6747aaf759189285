"""Verifications on a real Spark session: what its tasks find, all together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from app.infra.files.errors import CorruptFile
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.verification import FoldTask, FoldVerdict
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.operation import Operation
from tests.support.lake_table import LakeTable, Write, merged
from tests.support.verification import fold_tasks, verified
from workers.engine.spark_engine import SparkEngine
from workers.engine.task_files import TaskResources

pytestmark = [
    pytest.mark.spark,
]


def verdict(engine: SparkEngine, tasks: Sequence[FoldTask], tag: str) -> FoldVerdict:
    return sum(engine.run(tasks, tag), FoldVerdict())


def test_verification_results_of_tasks_are_combined(engine: SparkEngine, storage: LocalStorage) -> None:
    fields = [CreateField(name="id", type="int64"), CreateField(name="n", type="int32")]
    new = CreateDataset(
        name="t", schema=CreateSchema(fields=fields), record_key=["id"], bucket=CreateBucket(count=3)
    )
    resources = TaskResources.on(storage, MemoryBudget(bytes_max=2**26))
    table = LakeTable(storage=storage, dataset=define_dataset(new), run=partial(merged, resources))
    table.write(Write(operation=Operation.UPSERT, rows=[{"id": number, "n": 0} for number in range(50)]))
    table.write(Write(operation=Operation.UPSERT, rows=[{"id": number, "n": 1} for number in range(30)]))
    tasks = fold_tasks(table)
    assert len(tasks) == 3
    assert verdict(engine, tasks, "verify-1") == FoldVerdict(rows=50, changes=110)
    assert verdict(engine, [], "verify-2") == FoldVerdict()

    # The second version without the first: every one of its corrections takes back what is not there.
    del table.feed[0]
    found = verdict(engine, fold_tasks(table), "verify-3")
    assert found == verified(table)
    assert found.first is not None
    assert (found.first.offset, found.differences) == (50, 30 + 20)

    path = table.feed[0][2].path
    storage.delete([path])
    with pytest.raises(CorruptFile) as failed:
        verdict(engine, fold_tasks(table), "verify-4")
    assert failed.value.facts["path"] == path
