"""Read jobs on a real Spark session: their tasks, waves of them, and ranges of sorted runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.jobs.kinds.read import ReadQuery
from app.features.reads import tasks as read_job
from app.features.reads.service import run as run_reads
from app.infra.files.errors import CorruptFile
from app.infra.files.slices import sorted_runs
from app.infra.files.storage import LocalStorage
from app.kernel.format.file_format import FileFormat
from app.kernel.sql.read_order import ReadOrder
from tests.support.read_runs import Reads
from tests.support.retained_versions import RetainedVersions
from tests.support.versioned_tables import comparable, written_versioned_table
from workers.engine.spark_engine import SparkEngine

pytestmark = [
    pytest.mark.spark,
]


def test_spark_read_jobs_equal_the_model(
    engine: SparkEngine, storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_job, "PART_BYTES", 1)
    monkeypatch.setattr(run_reads, "_RANGE_BYTES", 300)
    monkeypatch.setattr(sorted_runs, "_BATCH_BYTES", 100)
    versioned = written_versioned_table(storage, "merge_on_read input", writes=5, compacted=False)
    kept = RetainedVersions(leased=range(len(versioned.rows)))
    reads = Reads(versioned=versioned, storage=storage, root=root, spark=engine, kept=kept)
    rows = versioned.rows[-1]
    assert comparable(reads.read(format=FileFormat.JSON).rows) == comparable(rows)
    assert len(reads.read(limit=3).rows) == 3
    found = reads.read(order_by=(ReadOrder(column="n"), ReadOrder(column="id")), columns=("n", "id"))
    assert [(row["n"], row["id"]) for row in found.rows] == sorted((row["n"], row["id"]) for row in rows)
    changed = reads.read(ReadQuery.INCREMENTAL, begin=0, where="n < 50")
    assert comparable(changed.rows) == comparable([row for row in rows if row["n"] < 50])
    path = versioned.files[-1][0].path
    storage.delete([path])
    with pytest.raises(CorruptFile) as failed:
        reads.read()
    assert failed.value.facts["path"] == path
