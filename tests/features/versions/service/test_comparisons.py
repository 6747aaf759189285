"""Comparisons of versions of tables of every kind, against what their rows were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.comparison import ComparisonTask
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.values import Claim, Job, JobState, Progress
from app.core.timeline.service.version_pins import VersionPins
from app.features.versions.service.comparisons import RunComparisons
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateField
from app.kernel.format.definition.schema_change import AddField, WidenField
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from tests.support.engine import EngineInProcess
from tests.support.lake_table import Write
from tests.support.retained_versions import RetainedVersions
from tests.support.versioned_tables import (
    KINDS,
    Row,
    VersionedTable,
    committed_at,
    kind_of,
    new_versioned_table,
    written_versioned_table,
)
from workers.engine.task_files import TaskResources


class Comparer:
    """Compares versions of one table in this process. `tasks` are those that it took, `held` the versions meanwhile."""

    def __init__(self, versioned: VersionedTable, memory: MemoryBudget | None = None) -> None:
        self.versioned, self.memory, self.kept = (
            versioned,
            memory or MemoryBudget(bytes_max=2**26),
            RetainedVersions(),
        )
        self.resources = TaskResources.on(versioned.table.storage, self.memory)
        self.engine = EngineInProcess(resources=self.resources, meanwhile=self._note_pins)
        self.pinned: list[int] = []
        self.result: dict[str, Any] = {}

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return self.versioned.dataset

    def _note_pins(self) -> None:
        self.pinned = list(self.kept.readers.values())

    def succeed(self, tenant_id: str, claim: Claim, result: dict[str, Any]) -> bool:
        self.result = result
        return True

    def run(self, begin: int, end: int) -> dict[str, Any]:
        pins = VersionPins(leases=self.kept, lease_seconds=60, heartbeat_seconds=60)
        handler = RunComparisons(
            catalog=self, jobs=self, timeline=self.versioned, pins=pins, engine=self.engine
        )
        job = _job(begin, end)
        handler.run(job, job.request, "tag")
        return self.result


def _job(begin: int, end: int) -> Job:
    return Job(
        id=new_id(), tenant_id="t", dataset_id="d", dataset_name="orders", instant_id=None, kind=JobKind.COMPARISON,
        state=JobState.RUNNING, request=ComparisonTask(from_version=begin, to_version=end),
        progress=Progress(stage="claimed"), attempts=1, epoch=1, committed_version=None, first_offset=None,
        last_offset=None, rows=RowCounts(), error=None, created_at=committed_at(0), started_at=None,
        finished_at=None, transaction_id=None,
    )  # fmt: skip


def expected(versioned: VersionedTable, begin: int, end: int) -> dict[str, int]:
    key = versioned.table.dataset.record_key
    was, now = versioned.rows[begin], versioned.rows[end]
    if not key:
        bags = Counter(map(repr, was)), Counter(map(repr, now))
        return {
            "added": (bags[1] - bags[0]).total(),
            "removed": (bags[0] - bags[1]).total(),
            "changed": 0,
            "unchanged": (bags[0] & bags[1]).total(),
        }

    def by_key(rows: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
        return {tuple(row[name] for name in key): row for row in rows}

    old, new = by_key(was), by_key(now)
    changed = sum(old[key] != new[key] for key in old.keys() & new.keys())
    return {
        "added": len(new.keys() - old.keys()),
        "removed": len(old.keys() - new.keys()),
        "changed": changed,
        "unchanged": len(old.keys() & new.keys()) - changed,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons_of_versions_of_every_kind_equal_those_of_their_rows(tmp_path: Path, kind: str) -> None:
    versioned = written_versioned_table(LocalStorage(tmp_path), kind, seed=5, writes=4)
    comparer, last = Comparer(versioned), versioned.table.version
    for begin, end in ((1, last), (last, 1), (last - 1, last), (2, 3), (0, last), (last, last)):
        result = comparer.run(begin, end)
        assert result["rows"] == expected(versioned, begin, end), (begin, end)
    assert comparer.kept.readers == {}


def test_comparison_reads_only_the_differing_files(tmp_path: Path) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("copy_on_write"))
    days = [{"id": number, "day": f"2026-11-{number:02}", "n": 1, "note": None} for number in range(1, 10)]
    versioned.write(Write(operation=Operation.UPSERT, rows=days), days)
    changed = [*days[:-1], {**days[-1], "n": 2}]
    versioned.write(Write(operation=Operation.UPSERT, rows=changed[-1:]), changed)
    comparer = Comparer(versioned)
    result = comparer.run(1, 2)
    assert result["rows"] == {"added": 0, "removed": 0, "changed": 1, "unchanged": 8}
    assert result["columns"] == {"n": 1}
    assert (result["files"]["added"], result["files"]["removed"]) == (1, 1)
    assert len(comparer.engine.tasks) == 1
    assert comparer.pinned == [1, 2]


def test_rows_are_compared_under_the_later_schema(tmp_path: Path) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("merge_on_read none"))
    rows = [{"id": number, "day": "2026-11-20", "n": 7, "note": "a"} for number in (1, 2)]
    versioned.write(Write(operation=Operation.UPSERT, rows=rows), rows)
    versioned.table.dataset = evolve(
        versioned.table.dataset,
        [WidenField(name="n", type_="int64"), AddField(field=CreateField(name="more", type="string"))],
    )
    new = {**rows[0], "more": "b"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[new]), [new, {**rows[1], "more": None}])
    for begin, end, changes in ((1, 2, ["widened", "added"]), (2, 1, ["dropped", "narrowed"])):
        result = Comparer(versioned).run(begin, end)
        assert result["rows"] == {"added": 0, "removed": 0, "changed": 1, "unchanged": 1}
        assert result["columns"] == {"more": 1}
        assert [each["change"] for each in result["schema"]] == changes


def test_memory_bounds_change_no_comparison(tmp_path: Path) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("copy_on_write"))
    rows = [{"id": number, "day": "2026-11-20", "n": 1, "note": str(number)} for number in range(2_000)]
    versioned.write(Write(operation=Operation.UPSERT, rows=rows), rows)
    changed = [{**row, "n": 2} if row["id"] % 3 else row for row in rows]
    versioned.write(Write(operation=Operation.UPSERT, rows=changed), changed)
    small = Comparer(versioned, MemoryBudget(bytes_max=2**14, scratch=tmp_path / "spill"))
    assert small.run(1, 2) == Comparer(versioned).run(1, 2)
    assert small.result["rows"] == expected(versioned, 1, 2)
