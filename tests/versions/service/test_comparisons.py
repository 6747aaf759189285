"""Comparisons of versions of tables of every kind, against what their rows were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.catalog.values import Dataset
from app.commit.comparison import Compared, CompareTask
from app.files.slices.slice_merge import MemoryBudget
from app.files.slices.version_comparison import compare
from app.files.storage import LocalStorage
from app.format.definition.evolution import evolve
from app.format.definition.new_dataset import CreateField
from app.format.definition.schema_change import AddField, WidenField
from app.format.identifiers import new_id
from app.format.instant import RowCounts
from app.format.operation import Operation
from app.jobs.tasks import ComparisonTask
from app.jobs.values import Claim, Job, JobKind, JobState, Progress
from app.timeline.service.version_pins import VersionPins
from app.versions.service.run_comparisons import RunComparisons
from tests.support.lake_table import Write
from tests.support.past_tables import KINDS, Past, Row, committed_at, kind_of, new_past, written_past
from tests.support.past_versions import KeptVersions
from workers.engine.task_files import TaskResources


class Comparer:
    """Compares versions of one table in this process. `tasks` are those that it took, `held` the versions meanwhile."""

    def __init__(self, past: Past, memory: MemoryBudget | None = None) -> None:
        self.past, self.memory, self.kept = past, memory or MemoryBudget(bytes_max=2**26), KeptVersions()
        self.resources = TaskResources.on(past.table.storage, self.memory)
        self.tasks: list[CompareTask] = []
        self.held: list[int] = []
        self.result: dict[str, Any] = {}

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return self.past.dataset

    def compare(self, tasks: Sequence[CompareTask], tag: str) -> Compared:
        self.tasks, self.held = list(tasks), list(self.kept.readers.values())
        return sum((compare(task, self.resources.slices, self.memory) for task in tasks), Compared())

    def succeed(self, tenant_id: str, claim: Claim, result: dict[str, Any]) -> bool:
        self.result = result
        return True

    def run(self, begin: int, end: int) -> dict[str, Any]:
        pins = VersionPins(leases=self.kept, lease_seconds=60, heartbeat_seconds=60)
        handler = RunComparisons(catalog=self, jobs=self, timeline=self.past, pins=pins, engine=self)
        handler.run(_job(begin, end), "tag")
        return self.result


def _job(begin: int, end: int) -> Job:
    return Job(
        id=new_id(), tenant_id="t", dataset_id="d", instant_id=None, kind=JobKind.COMPARISON,
        state=JobState.RUNNING, request=ComparisonTask(from_version=begin, to_version=end),
        progress=Progress(stage="claimed"), attempts=1, epoch=1, committed_version=None, first_offset=None,
        last_offset=None, rows=RowCounts(), error=None, created_at=committed_at(0), started_at=None,
        finished_at=None, transaction_id=None,
    )  # fmt: skip


def expected(past: Past, begin: int, end: int) -> dict[str, int]:
    key = past.table.dataset.record_key
    was, now = past.rows[begin], past.rows[end]
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
def test_versions_of_every_kind_differ_as_their_rows_do(tmp_path: Path, kind: str) -> None:
    past = written_past(LocalStorage(tmp_path), kind, seed=5, writes=4)
    comparer, last = Comparer(past), past.table.version
    for begin, end in ((1, last), (last, 1), (last - 1, last), (2, 3), (0, last), (last, last)):
        result = comparer.run(begin, end)
        assert result["rows"] == expected(past, begin, end), (begin, end)
    assert comparer.kept.readers == {}


def test_only_what_differs_is_read(tmp_path: Path) -> None:
    past = new_past(LocalStorage(tmp_path), kind_of("copy_on_write"))
    days = [{"id": number, "day": f"2026-11-{number:02}", "n": 1, "note": None} for number in range(1, 10)]
    past.write(Write(operation=Operation.UPSERT, rows=days), days)
    changed = [*days[:-1], {**days[-1], "n": 2}]
    past.write(Write(operation=Operation.UPSERT, rows=changed[-1:]), changed)
    comparer = Comparer(past)
    result = comparer.run(1, 2)
    assert result["rows"] == {"added": 0, "removed": 0, "changed": 1, "unchanged": 8}
    assert result["columns"] == {"n": 1}
    assert (result["files"]["added"], result["files"]["removed"]) == (1, 1)
    assert len(comparer.tasks) == 1
    assert comparer.held == [1, 2]


def test_rows_are_compared_under_the_later_schema(tmp_path: Path) -> None:
    past = new_past(LocalStorage(tmp_path), kind_of("merge_on_read none"))
    rows = [{"id": number, "day": "2026-11-20", "n": 7, "note": "a"} for number in (1, 2)]
    past.write(Write(operation=Operation.UPSERT, rows=rows), rows)
    past.table.dataset = evolve(
        past.table.dataset,
        [WidenField(name="n", type_="int64"), AddField(field=CreateField(name="more", type="string"))],
    )
    new = {**rows[0], "more": "b"}
    past.write(Write(operation=Operation.UPSERT, rows=[new]), [new, {**rows[1], "more": None}])
    for begin, end, changes in ((1, 2, ["widened", "added"]), (2, 1, ["dropped", "narrowed"])):
        result = Comparer(past).run(begin, end)
        assert result["rows"] == {"added": 0, "removed": 0, "changed": 1, "unchanged": 1}
        assert result["columns"] == {"more": 1}
        assert [each["change"] for each in result["schema"]] == changes


def test_memory_bounds_change_no_comparison(tmp_path: Path) -> None:
    past = new_past(LocalStorage(tmp_path), kind_of("copy_on_write"))
    rows = [{"id": number, "day": "2026-11-20", "n": 1, "note": str(number)} for number in range(2_000)]
    past.write(Write(operation=Operation.UPSERT, rows=rows), rows)
    changed = [{**row, "n": 2} if row["id"] % 3 else row for row in rows]
    past.write(Write(operation=Operation.UPSERT, rows=changed), changed)
    small = Comparer(past, MemoryBudget(bytes_max=2**14, scratch=tmp_path / "spill"))
    assert small.run(1, 2) == Comparer(past).run(1, 2)
    assert small.result["rows"] == expected(past, 1, 2)
