"""When cleans are started by themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult
from app.core.jobs.kinds.clean import CleanTask
from app.features.retention.service.history_reconciler import HistoryReconciler
from app.features.retention.values import HistoryExpiry
from app.kernel.format.policies import HistoryPolicy, TableServices, TimelinePolicy
from tests.support.lakehouse import definition

NOW = datetime(2026, 11, 22, tzinfo=UTC)
BOTH = TableServices(history=HistoryPolicy(versions=3))


@dataclass
class Cleaning:
    """A history that has outlived its policy, or not, and the cleans that were started."""

    due: bool = True
    next_at: datetime | None = None
    queries: list[tuple[Any, ...]] = field(default_factory=list)
    started: list[CleanTask] = field(default_factory=list)

    def expiry(self, *queries: Any) -> HistoryExpiry:
        self.queries.append(queries)
        return HistoryExpiry(due=self.due, next_at=self.next_at)

    def start(self, dataset: Dataset, task: CleanTask, key: str | None, actor: str | None) -> Any:
        assert (dataset.id, key, actor) == ("d", None, None)
        self.started.append(task)


def reconcile(
    cleaning: Cleaning, services: TableServices, seconds: float = 0, memory: Any = None, version: int = 9
) -> ReconcileResult:
    dataset = Dataset(
        id="d",
        tenant_id="t",
        definition=structs.replace(definition(), services=services),
        version=version,
        next_offset=0,
        created_at=NOW,
        committed_at=NOW,
    )
    observation = Observation(
        dataset=dataset, since_version=0, memory=memory or {}, now=NOW + timedelta(seconds=seconds)
    )
    return HistoryReconciler(history=cleaning, cleans=cleaning).reconcile(observation)  # type: ignore[arg-type]


def test_due_clean_is_started() -> None:
    cleaning = Cleaning()
    kept = reconcile(cleaning, BOTH)
    assert cleaning.queries == [("t", "d", BOTH.history, TimelinePolicy())]
    assert cleaning.started == [CleanTask()]
    assert kept.wake_after_seconds is None, "the next version is soon enough"
    cleaning = Cleaning(due=False)
    assert reconcile(cleaning, BOTH) == ReconcileResult()
    assert cleaning.started == []


def test_cleans_are_started_at_intervals() -> None:
    cleaning = Cleaning()
    memory = reconcile(cleaning, BOTH).memory
    again = reconcile(cleaning, BOTH, 60, memory)
    assert (again.memory, again.wake_after_seconds) == (memory, 240.0)
    assert len(cleaning.started) == 1
    reconcile(cleaning, BOTH, 300, memory)
    # Also after the clock was put back.
    reconcile(cleaning, BOTH, -60, memory)
    assert len(cleaning.started) == 3


WEEK = TableServices()


def test_default_history_is_a_week() -> None:
    cleaning = Cleaning()
    reconcile(cleaning, WEEK)
    assert cleaning.queries == [("t", "d", HistoryPolicy(seconds=7 * 86_400), TimelinePolicy())]


def test_next_poll_is_when_the_earliest_version_expires() -> None:
    cleaning = Cleaning(due=False, next_at=NOW + timedelta(days=3))
    assert reconcile(cleaning, WEEK).wake_after_seconds == 3 * 86_400
    # A version that a running write or a clean keeps beyond its age.
    cleaning = Cleaning(due=False, next_at=NOW - timedelta(seconds=1))
    assert reconcile(cleaning, WEEK).wake_after_seconds == 300.0


def test_dataset_whose_earlier_versions_have_expired_is_polled_no_more() -> None:
    assert reconcile(Cleaning(due=False), WEEK).wake_after_seconds is None


def test_cleans_of_long_histories_are_started_rarely() -> None:
    """Otherwise a dataset that is written all the time would be cleaned every five minutes."""
    cleaning = Cleaning()
    started = reconcile(cleaning, WEEK)
    pause = 7 * 864
    assert started.wake_after_seconds == pause
    # Instants are archived meanwhile, and versions are not expired.
    cleaning = Cleaning(due=False)
    again = reconcile(cleaning, WEEK, 1_000, started.memory)
    assert cleaning.queries == [("t", "d", None, TimelinePolicy())]
    assert again.wake_after_seconds == pause - 1_000
    assert again.memory["started_at"] == started.memory["started_at"]
    reconcile(cleaning, WEEK, pause, again.memory)
    assert cleaning.queries[1] == ("t", "d", WEEK.history, TimelinePolicy())
    assert reconcile(Cleaning(), TableServices(history=HistoryPolicy(seconds=60))).wake_after_seconds == 300.0


def test_dataset_that_needs_no_clean_is_checked_again_after_many_versions() -> None:
    cleaning = Cleaning(due=False)
    memory = reconcile(cleaning, WEEK).memory
    for version in (10, 60, 108):
        again = reconcile(cleaning, WEEK, 60, memory, version)
        assert (again.memory, again.wake_after_seconds) == (memory, 86_340.0)
    assert len(cleaning.queries) == 1
    reconcile(cleaning, WEEK, 60, memory, version=109)
    assert len(cleaning.queries) == 2


def test_dataset_that_needs_no_clean_is_checked_again_when_a_version_expires() -> None:
    cleaning = Cleaning(due=False, next_at=NOW + timedelta(seconds=600))
    memory = reconcile(cleaning, WEEK).memory
    assert reconcile(cleaning, WEEK, 599, memory, version=10).wake_after_seconds == 1.0
    cleaning.due = True
    reconcile(cleaning, WEEK, 600, memory, version=10)
    assert cleaning.started == [CleanTask()]


def test_dataset_that_needs_no_clean_is_checked_again_under_other_policies_or_another_clock() -> None:
    cleaning = Cleaning(due=False)
    memory = reconcile(cleaning, WEEK).memory
    reconcile(cleaning, TableServices(history=HistoryPolicy(seconds=60)), 1, memory)
    reconcile(cleaning, WEEK, -86_400, memory)
    reconcile(cleaning, WEEK, 86_400, memory)
    assert len(cleaning.queries) == 4


@pytest.mark.parametrize(
    ("services", "versions"),
    [
        (TableServices(history=HistoryPolicy(versions=9)), 0),
        (TableServices(history=HistoryPolicy(versions=50)), 5),
        (TableServices(timeline=TimelinePolicy(instants=30)), 3),
        (TableServices(history=HistoryPolicy(versions=10**6)), 100),
    ],
)
def test_history_is_late_by_a_tenth_of_its_versions_or_instants_at_most(
    services: TableServices, versions: int
) -> None:
    cleaning = Cleaning(due=False)
    memory = reconcile(cleaning, services).memory
    for version in range(10, 9 + versions):
        reconcile(cleaning, services, 1, memory, version)
    assert len(cleaning.queries) == 1
    reconcile(cleaning, services, 1, memory, 9 + versions)
    assert len(cleaning.queries) == 2


def test_dataset_without_history_policies_is_left_alone() -> None:
    cleaning = Cleaning()
    assert reconcile(cleaning, TableServices(history=None, timeline=None)) == ReconcileResult()
    assert cleaning.queries == []
