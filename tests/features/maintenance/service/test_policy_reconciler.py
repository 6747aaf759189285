"""Compacting by itself: which groups a job is started for, when, and what happens to one that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult, ReconcilerMemory
from app.core.jobs.kinds.declared import TableServiceTask
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.values import Accepted, Job, JobState, Progress
from app.features.maintenance.service import touched_groups
from app.features.maintenance.service.compaction import Compaction
from app.features.maintenance.service.policy_reconciler import PolicyReconciler
from app.features.maintenance.service.touched_groups import TouchedGroups
from app.kernel.commit.compaction_policy import GroupShape
from app.kernel.format.instant import RowCounts
from app.kernel.format.policies import CompactionPolicy, TableServices
from tests.support.lakehouse import definition

START = datetime(2026, 11, 22, tzinfo=UTC)
POLICY = CompactionPolicy(logs=3, log_ratio=None, deleted_ratio=None, small_files=None)


@dataclass
class Lake:
    """A dataset whose file groups are nothing but logs, each of the version that wrote it, and its jobs."""

    policy: CompactionPolicy | None = POLICY
    now: datetime = START
    times: dict[int, datetime] = field(default_factory=dict)
    logs: dict[str, list[int]] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    by_hand: bool = False
    memory: ReconcilerMemory = field(default_factory=dict)
    seen: int = 0
    measured: list[str] = field(default_factory=list)

    def write(self, *groups: str) -> None:
        """A commit that adds a log to each of the groups."""
        version = len(self.times) + 1
        self.times[version] = self.now
        for group in groups:
            self.logs.setdefault(group, []).append(version)

    def reconcile(self) -> ReconcileResult:
        changed = structs.replace(definition(), services=TableServices(compaction=self.policy))
        dataset = Dataset(
            id="d", tenant_id="t", definition=changed, version=len(self.times), next_offset=0, created_at=START,
            committed_at=None,
        )  # fmt: skip
        service = Compaction(groups=TouchedGroups(names=self), shapes=self, commits=self, rewrite=None)  # type: ignore[arg-type]
        reconciler = PolicyReconciler(service=service, requests=self, jobs=self)
        kept = reconciler.reconcile(
            Observation(dataset=dataset, since_version=self.seen, memory=self.memory, now=self.now)
        )
        self.memory, self.seen = kept.memory, dataset.version
        return kept

    def settle(self) -> ReconcileResult:
        """Looks until there is nothing more to do at once."""
        kept = self.reconcile()
        while kept.wake_after_seconds == 0.0:
            kept = self.reconcile()
        return kept

    @property
    def started(self) -> list[tuple[str, ...] | None]:
        return [
            job.request.file_groups for job in self.jobs.values() if isinstance(job.request, CompactionTask)
        ]

    def end(self, state: JobState = JobState.SUCCEEDED) -> None:
        """Ends the last job; if it succeeds, the logs that there were when it ran are folded."""
        job = list(self.jobs.values())[-1]
        self.jobs[job.id] = structs.replace(job, state=state)
        if state is JobState.SUCCEEDED and isinstance(job.request, CompactionTask):
            for group in job.request.file_groups or ():
                del self.logs[group]
            self.write()

    # What the reconciler requests.

    def touched(
        self,
        tenant_id: str,
        dataset_id: str,
        *,
        keyed: bool,
        since_version: int,
        after: str | None,
        limit: int,
    ) -> Sequence[str]:
        assert (tenant_id, dataset_id, keyed) == ("t", "d", True)
        names = sorted(group for group, versions in self.logs.items() if versions[-1] > since_version)
        return [name for name in names if after is None or name > after][:limit]

    def shapes(
        self, tenant_id: str, dataset_id: str, names: Sequence[str], *, keyed: bool, small_below: int
    ) -> list[GroupShape]:
        self.measured += names
        return [
            GroupShape(file_group=name, logs=len(self.logs[name]), oldest_log=self.logs[name][0])
            for name in names
        ]

    def commit_times(self, tenant_id: str, dataset_id: str, versions: Sequence[int]) -> dict[int, datetime]:
        assert self.policy is not None
        assert self.policy.seconds is not None, "nobody wants to know"
        return {version: self.times[version] for version in versions}

    def start(
        self, dataset: Dataset, task: TableServiceTask, idempotency_key: str | None, actor: str | None
    ) -> Accepted:
        assert (dataset.id, idempotency_key, actor) == ("d", None, None)
        number = f"job-{len(self.jobs)}"
        job = Job(
            id=number, tenant_id="t", dataset_id="d", dataset_name="orders",
            instant_id=number, kind=JobKind.COMPACTION, state=JobState.QUEUED, request=task,
            progress=Progress(stage="queued"), attempts=0, epoch=0, committed_version=None,
            first_offset=None, last_offset=None, rows=RowCounts(), error=None, created_at=self.now, started_at=None,
            finished_at=None, transaction_id=None,
        )  # fmt: skip
        self.jobs[number] = job
        return Accepted(job=job, is_replay=False)

    def get(self, tenant_id: str, job_id: str) -> Job:
        if job_id not in self.jobs:
            raise NotFound("no job")
        return self.jobs[job_id]

    def is_under_way(self, tenant_id: str, dataset_id: str, kind: JobKind) -> bool:
        assert (tenant_id, dataset_id, kind) == ("t", "d", JobKind.COMPACTION)
        return self.by_hand or any(not job.state.final for job in self.jobs.values())


def test_groups_over_a_bound_are_compacted_and_only_touched_ones_measured() -> None:
    lake = Lake()
    lake.write("a", "b"), lake.write("a", "c")
    assert lake.reconcile().wake_after_seconds is None
    assert lake.started == []
    lake.write("a"), lake.write("c")
    lake.measured.clear()
    assert lake.reconcile().wake_after_seconds is not None
    assert lake.measured == ["a", "c"]
    assert lake.started == [("a",)]
    lake.write("b"), lake.write("b", "c")
    lake.end()
    lake.reconcile()
    assert lake.started == [("a",), ("b", "c")]
    lake.end()
    assert lake.settle().wake_after_seconds is None
    assert len(lake.started) == 2


def test_compaction_is_not_started_while_one_runs() -> None:
    lake = Lake()
    for _ in range(3):
        lake.write("a")
    lake.by_hand = True
    assert lake.reconcile().wake_after_seconds == 5.0, (
        "the end of a job that makes no version is told by nothing else"
    )
    assert lake.started == []
    lake.by_hand = False
    lake.reconcile()
    assert lake.started == [("a",)]
    for _ in range(3):
        lake.write("b"), lake.reconcile()
    assert lake.started == [("a",)]
    lake.end()
    lake.reconcile()
    assert lake.started == [("a",), ("b",)], "what was written meanwhile is not forgotten"


def test_failed_compaction_is_retried_after_growing_pauses() -> None:
    lake = Lake()
    for _ in range(3):
        lake.write("a")
    lake.reconcile()
    pauses = []
    for failures in range(1, 12):
        assert len(lake.started) == failures
        lake.end(JobState.CANCELLED if failures % 3 == 0 else JobState.FAILED)
        pause = lake.reconcile().wake_after_seconds
        assert pause is not None
        pauses.append(pause)
        lake.write("b"), lake.reconcile()
        assert len(lake.started) == failures, "no commit wakes it"
        lake.now += timedelta(seconds=pause)
        lake.reconcile()
    assert pauses == sorted(pauses)
    assert pauses[0] >= 10
    assert pauses[-1] == 3_600
    assert all(groups is not None and "a" in groups for groups in lake.started)
    lake.end()
    lake.write("c"), lake.write("c"), lake.write("c")
    lake.reconcile()
    assert lake.started[-1] == ("c",), "one that succeeds ends that"


def test_purged_job_counts_as_ended() -> None:
    lake = Lake()
    lake.write("a"), lake.write("a"), lake.write("a")
    lake.reconcile()
    lake.jobs.clear()
    assert lake.settle().wake_after_seconds is None
    assert lake.started == []


def test_old_logs_are_compacted_without_a_commit() -> None:
    lake = Lake(policy=structs.replace(POLICY, seconds=100))
    lake.write("a")
    lake.now += timedelta(seconds=40)
    lake.write("b")
    assert lake.reconcile().wake_after_seconds == 60.0
    lake.now += timedelta(seconds=30)
    lake.write("c")
    assert lake.reconcile().wake_after_seconds == 30.0
    lake.now += timedelta(seconds=30)
    lake.reconcile()
    assert lake.started == [("a",)]
    lake.end()
    assert lake.reconcile().wake_after_seconds == 40.0
    lake.now += timedelta(seconds=40)
    lake.reconcile()
    assert lake.started == [("a",), ("b",)]


def test_changed_policy_measures_all_groups_again() -> None:
    lake = Lake(policy=structs.replace(POLICY, logs=9))
    for _ in range(4):
        lake.write("a", "b")
    lake.reconcile()
    lake.policy = POLICY
    lake.write(), lake.reconcile()
    assert lake.started == [("a", "b")]
    lake.policy = None
    assert lake.reconcile() == ReconcileResult()


def test_large_tables_are_measured_and_compacted_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touched_groups, "_PAGE_GROUPS", 3)
    monkeypatch.setattr(touched_groups, "_PAGES_MAX", 4)
    monkeypatch.setattr(touched_groups, "_JOB_GROUPS", 5)
    lake = Lake()
    names = [f"{number:03d}" for number in range(40)]
    for _ in range(3):
        lake.write(*names)
    lake.write(*(f"x{number:03d}" for number in range(40)))
    done: list[str] = []
    while len(done) < 40:
        lake.reconcile()
        groups = lake.started[-1]
        assert groups is not None
        assert list(groups) == names[len(done) : len(done) + 6]
        done += groups
        # Behind the place that has been measured, and before it.
        lake.write("zzz", "001")
        lake.end()
    lake.measured.clear()
    assert lake.reconcile().wake_after_seconds == 0.0, "12 are measured, and there are more"
    assert len(lake.measured) == 12
    while (wake := lake.settle().wake_after_seconds) is not None:
        assert wake == 5.0
        lake.end()
    touched = {group for groups in lake.started[7:] for group in groups or ()}
    assert touched == {"zzz", "001"}
