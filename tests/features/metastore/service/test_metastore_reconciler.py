"""Reporting to a metastore: what is reported after which commits, and what happens to failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult
from app.features.metastore.report import FileFigures, HivePartition, HiveReport, HiveTable, MetastoreRefused
from app.features.metastore.service.metastore_reconciler import MetastoreReconciler
from app.features.overview.values import PartitionRecord
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.policies import MetastorePolicy, TableServices

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
FIELDS = [CreateField(name="id", type="int64"), CreateField(name="day", type="date")]


def dataset(
    version: int,
    *,
    partitioned: bool = True,
    table: str | None = "visits",
    idle_seconds: int | None = None,
    committed_at: datetime = NOON,
) -> Dataset:
    policy = None
    if table is not None:
        policy = MetastorePolicy(database="lake", table=table, idle_seconds=idle_seconds)
    new = CreateDataset(
        name="visits",
        schema=CreateSchema(fields=FIELDS),
        partition_by=["day"] if partitioned else [],
        services=TableServices(metastore=policy),
    )
    return Dataset(
        id="d", tenant_id="t", definition=define_dataset(new), version=version, next_offset=0, earliest_offset=0,
        earliest_version=0, created_at=NOON, committed_at=committed_at,
    )  # fmt: skip


def record(path: str, rows: int) -> PartitionRecord:
    return PartitionRecord(
        path=path, base_files=1, logs=1, postponed=0, tombstone_files=1, rows=rows, log_rows=7, postponed_rows=0,
        size_bytes=rows * 10, written_version=1, written_at=NOON,
    )  # fmt: skip


@dataclass
class Table:
    """Partitions of a dataset by path, which of them a version touched, and a metastore that gets reports of them."""

    rows: dict[str, int]
    touches: set[str] | None = None
    version: int | None = None
    reports: list[HiveReport] = field(default_factory=list)
    at_once: int = 10_000
    recreated: bool = False
    fault: Exception | None = None
    queries: int = 0

    def partitions(self, *_: Any, skip: int, limit: int) -> list[PartitionRecord]:
        found = [record(path, rows) for path, rows in sorted(self.rows.items())]
        return found[skip : skip + limit]

    def touched(self, tenant_id: str, dataset_id: str, since: int, until: int) -> set[str] | None:
        assert (tenant_id, dataset_id, since < until) == ("t", "d", True)
        return self.touches

    def reported(self, table: HiveTable) -> int | None:
        self.queries += 1
        if self.fault is not None:
            raise self.fault
        return self.version

    def report(self, report: HiveReport, *, seconds_max: float) -> int | None:
        assert seconds_max > 1
        self.reports.append(report)
        if self.recreated:
            self.recreated, self.version = False, 0
            return None
        reports = min(len(report.partitions), self.at_once)
        if reports == len(report.partitions):
            self.version = report.version
        else:
            self.version = self.version or 0
        return reports

    def reconcile(
        self, seen: Dataset, memory: dict[str, Any] | None = None, now: datetime = NOON
    ) -> ReconcileResult:
        reconciler = MetastoreReconciler(metastore=self, overview=self, touched=self)  # type: ignore[arg-type]
        return reconciler.reconcile(Observation(dataset=seen, since_version=0, memory=memory or {}, now=now))


def test_first_report_is_complete_and_later_ones_are_incremental() -> None:
    table = Table(rows={"day=2026-11-21": 3, "day=2026-11-22": 4, "": 9})
    kept = table.reconcile(dataset(5))
    assert kept.wake_after_seconds is None
    assert (kept.memory["version"], kept.memory["error"]) == (5, None)
    [first] = table.reports
    assert (first.version, first.retained, first.figures) == (5, [], None)
    assert (first.table.database, first.table.table, first.table.folder) == ("lake", "visits", "t/d/data")
    assert first.partitions == [
        HivePartition(
            values=(f"2026-11-2{number}",),
            folder=f"day=2026-11-2{number}",
            figures=FileFigures(files=2, rows=rows, size_bytes=10 * rows, written_at=NOON),
        )
        for number, rows in ((1, 3), (2, 4))
    ]
    del table.rows["day=2026-11-21"]
    table.touches = {"day=2026-11-21", ""}
    table.reconcile(dataset(6), kept.memory)
    [gone] = table.reports[1].partitions
    assert (table.reports[1].retained, gone.values, gone.figures) == (None, ("2026-11-21",), None)
    # Reported already, if by a worker that died before it could say so.
    table.reconcile(dataset(6), kept.memory)
    assert len(table.reports) == 2


def test_report_waits_until_the_dataset_is_idle() -> None:
    table, memory = Table(rows={"day=2026-11-21": 3}), {}
    for version in (1, 2, 3):
        committed_at = NOON + timedelta(seconds=40 * version)
        seen = dataset(version, idle_seconds=60, committed_at=committed_at)
        kept = table.reconcile(seen, memory, committed_at + timedelta(seconds=5))
        assert (table.reports, kept.wake_after_seconds) == ([], 55)
        memory = kept.memory
    kept = table.reconcile(seen, memory, committed_at + timedelta(seconds=60))
    assert ([report.version for report in table.reports], kept.wake_after_seconds) == ([3], None)
    assert kept.memory["waits_since"] is None
    # What is reported does not wait again.
    assert table.reconcile(seen, kept.memory, committed_at).wake_after_seconds is None
    assert len(table.reports) == 1


def test_dataset_that_is_never_idle_is_reported() -> None:
    table, memory, reported = Table(rows={"day=2026-11-21": 3}, touches=set()), {}, []
    for version in range(1, 60):
        now = NOON + timedelta(seconds=30 * version)
        kept = table.reconcile(dataset(version, idle_seconds=60, committed_at=now), memory, now)
        memory = kept.memory
        if len(table.reports) > len(reported):
            reported.append(version)
    # Ten times the minute after the first commit that was not reported, with a commit every half minute.
    assert reported == [21, 42]


def test_unknown_changes_require_a_complete_report() -> None:
    for version, touches in ((2, None), (9, set()), (None, set())):
        table = Table(rows={"day=2026-11-21": 3}, touches=touches, version=version)
        table.reconcile(dataset(5))
        assert [report.retained for report in table.reports] == [[]]


def test_unpartitioned_dataset_reports_its_own_statistics() -> None:
    table = Table(rows={"": 9})
    table.reconcile(dataset(1, partitioned=False))
    table.rows = {}
    table.reconcile(dataset(2, partitioned=False))
    assert [(report.partitions, report.figures and report.figures.rows) for report in table.reports] == [
        ([], 9),
        ([], 0),
    ]


def test_many_partitions_are_read_in_pages() -> None:
    table = Table(rows={f"day={number:05d}": 1 for number in range(2_500)})
    table.reconcile(dataset(1))
    assert [len(report.partitions) for report in table.reports] == [2_500]


def test_interrupted_report_continues_at_its_position() -> None:
    days = [f"2026-11-2{number}" for number in range(5)]
    table = Table(rows={f"day={day}": 1 for day in days}, at_once=2)
    kept, versions = ReconcileResult(), []
    for version in (3, 4, 5):
        kept = table.reconcile(dataset(version), kept.memory)
        versions.append(kept.memory["version"])
        assert kept.wake_after_seconds == 0
    # It is of the version at which it began: what came since is reported once more.
    assert versions == [None, None, 3]
    assert [report.version for report in table.reports] == [3, 3, 3]
    assert [[each.values[0] for each in report.partitions] for report in table.reports] == [
        days,
        days[2:],
        days[4:],
    ]
    assert [len(report.retained or ()) for report in table.reports] == [0, 2, 4]
    table.touches = {f"day={days[0]}"}
    kept = table.reconcile(dataset(5), kept.memory)
    assert (kept.memory["version"], kept.wake_after_seconds, len(table.reports[-1].partitions)) == (
        5,
        None,
        1,
    )


def test_recreated_table_is_reported_completely() -> None:
    table = Table(rows={"day=2026-11-21": 3}, touches=set(), version=4, recreated=True)
    kept = table.reconcile(dataset(5), table.reconcile(dataset(5)).memory)
    assert (kept.memory["version"], kept.wake_after_seconds) == (5, None)
    assert [(report.retained, len(report.partitions)) for report in table.reports] == [(None, 0), ([], 1)]


def test_failed_report_is_stored_and_retried_after_growing_pauses() -> None:
    table = Table(rows={"day=2026-11-21": 3}, fault=MetastoreRefused("it is away"))
    kept, now, waits = table.reconcile(dataset(1)), NOON, []
    for number in range(2, 5):
        assert (kept.memory["error"], kept.memory["failures"]) == ("it is away", number - 1)
        assert kept.wake_after_seconds is not None
        waits.append(kept.wake_after_seconds)
        # A commit meanwhile is no reason to try.
        early = table.reconcile(dataset(number), kept.memory, now + timedelta(seconds=1))
        assert (early.memory, early.wake_after_seconds) == (kept.memory, waits[-1] - 1)
        assert table.queries == number - 1
        now += timedelta(seconds=waits[-1])
        kept = table.reconcile(dataset(number), kept.memory, now)
    assert waits == [15, 30, 60]
    # Another table is another matter.
    table.fault = None
    kept = table.reconcile(dataset(9, table="others"), kept.memory, now)
    assert (kept.memory["table"], kept.memory["failures"], kept.memory["version"]) == ("others", 0, 9)


def test_disabled_service_reports_nothing() -> None:
    table = Table(rows={})
    assert table.reconcile(dataset(1, table=None)) == ReconcileResult()
    assert table.queries == 0


def test_table_without_files_is_reported_only_if_it_had_some() -> None:
    table = Table(rows={})
    kept = table.reconcile(dataset(1))
    assert (kept.memory["version"], kept.wake_after_seconds, table.reports) == (None, None, [])
    table.version = 1
    table.reconcile(dataset(2))
    assert [report.version for report in table.reports] == [2]


def test_reconciler_memory_is_json() -> None:
    kept = Table(rows={"day=2026-11-21": 3}).reconcile(dataset(1))
    assert msgspec.json.decode(msgspec.json.encode(kept.memory)) == {
        "database": "lake",
        "table": "visits",
        "version": 1,
        "reported_at": "2026-11-22T12:00:00Z",
        "error": None,
        "failures": 0,
        "retry_at": None,
        "begun": None,
        "after": None,
        "waits_since": None,
    }
