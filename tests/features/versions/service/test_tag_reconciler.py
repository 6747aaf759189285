"""Automatic tags: when they are given, what is made up for, and which are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from msgspec import structs

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult, ReconcilerMemory
from app.features.versions.service.tag_policy import TagReconciler
from app.kernel.format.policies import TableServices, TagPeriod, TagPolicy
from tests.support.lakehouse import definition

START = datetime(2026, 11, 22, 5, 17, 9, tzinfo=UTC)


@dataclass
class Tags:
    """Tags by name. `commits`: when each version was committed, from the first on."""

    commits: list[datetime] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

    def add_automatic(self, tenant_id: str, dataset_id: str, name: str, before: datetime) -> int | None:
        assert (tenant_id, dataset_id) == ("t", "d")
        version = sum(committed_at < before for committed_at in self.commits)
        if not version or name in self.names:
            return None
        self.names[name] = version
        return version

    def automatic(self, tenant_id: str, dataset_id: str) -> Sequence[str]:
        return list(self.names)

    def remove(self, tenant_id: str, dataset_id: str, names: Sequence[str]) -> int:
        for name in names:
            del self.names[name]
        return len(names)


@dataclass
class Table:
    """A dataset with a policy, reconciled whenever it requested that."""

    policy: TagPolicy | None
    tags: Tags = field(default_factory=Tags)
    now: datetime = START
    memory: ReconcilerMemory = field(default_factory=dict)
    wake: float | None = None

    def reconcile(self) -> ReconcileResult:
        changed = structs.replace(definition(), services=TableServices(tags=self.policy))
        dataset = Dataset(
            id="d", tenant_id="t", definition=changed, version=len(self.tags.commits), next_offset=0,
            created_at=START, committed_at=None,
        )  # fmt: skip
        kept = TagReconciler(tags=self.tags).reconcile(
            Observation(dataset=dataset, since_version=0, memory=self.memory, now=self.now)
        )
        self.memory, self.wake = kept.memory, kept.wake_after_seconds
        return kept

    def commit(self) -> None:
        self.tags.commits.append(self.now)

    def sleep(self) -> None:
        """Until it wants to look again, and looks."""
        assert self.wake is not None
        self.now += timedelta(seconds=self.wake)
        self.reconcile()


def test_last_version_of_an_ended_period_is_tagged() -> None:
    table = Table(TagPolicy(period=TagPeriod.HOUR))
    table.commit(), table.reconcile()
    assert table.tags.names == {}
    assert table.wake is not None
    assert START + timedelta(seconds=table.wake) >= datetime(2026, 11, 22, 6, tzinfo=UTC)
    assert table.wake < 43 * 60
    table.now += timedelta(minutes=30)
    table.commit(), table.reconcile()
    assert table.tags.names == {}
    table.sleep()
    assert table.tags.names == {"2026-11-22T05": 2}
    table.reconcile()
    assert table.tags.names == {"2026-11-22T05": 2}
    table.commit(), table.sleep()
    assert table.tags.names == {"2026-11-22T05": 2, "2026-11-22T06": 3}


def test_period_without_commits_is_tagged_unless_the_table_is_empty() -> None:
    table = Table(TagPolicy(period=TagPeriod.DAY))
    table.reconcile(), table.sleep(), table.sleep()
    assert table.tags.names == {}
    table.commit(), table.sleep(), table.sleep()
    assert table.tags.names == {"2026-11-24": 1, "2026-11-25": 1}


def test_latest_tags_are_kept() -> None:
    table = Table(TagPolicy(period=TagPeriod.DAY, keep=2))
    table.tags.names = {"2026-10": 1, "2026-11-22T04": 1, "release": 1}
    table.commit(), table.reconcile()
    for _ in range(4):
        table.sleep()
    assert set(table.tags.names) == {"2026-10", "2026-11-22T04", "release", "2026-11-24", "2026-11-25"}


def test_missed_periods_are_tagged_within_bounds() -> None:
    table = Table(TagPolicy(period=TagPeriod.HOUR))
    table.commit(), table.reconcile()
    table.now += timedelta(hours=3)
    table.commit()
    table.now += timedelta(hours=2)
    table.reconcile()
    assert table.tags.names == {f"2026-11-22T{hour:02}": 1 if hour < 8 else 2 for hour in range(5, 10)}
    table.now += timedelta(days=365)
    table.reconcile()
    assert len(table.tags.names) == 5 + 100
    assert max(table.tags.names) == "2027-11-22T09"
    few = Table(TagPolicy(period=TagPeriod.HOUR, keep=3))
    few.commit(), few.reconcile()
    few.now += timedelta(days=2)
    few.reconcile()
    assert sorted(few.tags.names) == ["2026-11-24T02", "2026-11-24T03", "2026-11-24T04"]


def test_changed_period_starts_with_the_current_one_and_no_policy_tags_nothing() -> None:
    table = Table(TagPolicy(period=TagPeriod.MONTH))
    table.commit(), table.reconcile()
    table.now += timedelta(days=60)
    table.policy = TagPolicy(period=TagPeriod.DAY)
    table.reconcile()
    assert table.tags.names == {}, "the day in which the policy was given is the first"
    table.sleep()
    assert list(table.tags.names) == ["2027-01-21"]
    table.policy = None
    assert table.reconcile() == ReconcileResult()


def test_every_period_is_tagged_once_under_repeated_reconciliation() -> None:
    table = Table(TagPolicy(period=TagPeriod.WEEK))
    table.commit(), table.reconcile()
    for _ in range(20):
        table.sleep(), table.commit(), table.reconcile()
    names = sorted(table.tags.names)
    assert names[:7] == ["2026-W47", "2026-W48", "2026-W49", "2026-W50", "2026-W51", "2026-W52", "2026-W53"]
    assert len(names) == 20
    assert all(table.tags.names[later] == table.tags.names[earlier] + 1 for earlier, later in pairwise(names))
