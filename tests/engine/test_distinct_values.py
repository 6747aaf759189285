"""Analyses on a real Spark session: the sketches of its tasks, all together, against a count of all rows."""

from __future__ import annotations

import pytest

from app.infra.files.errors import CorruptFile
from app.infra.files.slices.distinct_values import count_distinct, plan_sketches
from app.infra.files.storage import LocalStorage
from tests.support.versioned_tables import written_versioned_table
from workers.engine.spark_engine import SparkEngine

pytestmark = [
    pytest.mark.spark,
]


@pytest.mark.parametrize("kind", ["merge_on_read full", "dynamic with logs", "unaware"])
def test_sketches_of_all_tasks_count_the_rows_that_readers_see(
    engine: SparkEngine, storage: LocalStorage, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.infra.files.slices.distinct_values._TASK_BYTES", 1)
    versioned = written_versioned_table(storage, kind, compacted=False)
    table, rows = versioned.table, versioned.rows[-1]
    tasks = plan_sketches(table.dataset, table.files.values())
    assert len(tasks) > 1
    counts = count_distinct(engine.run(tasks, f"analysis-{kind}"), len(table.dataset.schema.fields))
    assert counts.rows == len(rows)
    assert counts.distinct == tuple(
        len({row[name] for row in rows if row[name] is not None}) for name in table.dataset.schema.names()
    )
    storage.delete([tasks[-1].groups[0][0].path])
    with pytest.raises(CorruptFile):
        engine.run(tasks, f"analysis-{kind}-2")
