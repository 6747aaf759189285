"""When cleans are started by themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs

from app.catalog.values import Dataset
from app.format.policies import HistoryPolicy, TableServices, TimelinePolicy
from app.jobs.tasks import CleanTask
from app.maintenance.values import Observation, ReconcileResult
from app.retention.service.history_reconciler import HistoryReconciler
from tests.support.lakehouse import definition

NOW = datetime(2026, 11, 22, tzinfo=UTC)
BOTH = TableServices(history=HistoryPolicy(versions=3))


@dataclass
class Cleaning:
    """A history that has outlived its policy, or not, and the cleans that were started."""

    due: bool = True
    queries: list[tuple[Any, ...]] = field(default_factory=list)
    started: list[CleanTask] = field(default_factory=list)

    def has_expired(self, *queries: Any) -> bool:
        self.queries.append(queries)
        return self.due

    def start(self, dataset: Dataset, task: CleanTask, key: str | None, actor: str | None) -> Any:
        assert (dataset.id, key, actor) == ("d", None, None)
        self.started.append(task)


def reconcile(
    cleaning: Cleaning, services: TableServices, seconds: float = 0, memory: Any = None
) -> ReconcileResult:
    dataset = Dataset(
        id="d",
        tenant_id="t",
        definition=structs.replace(definition(), services=services),
        version=9,
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


def test_old_versions_expire_without_a_commit() -> None:
    aging = TableServices(history=HistoryPolicy(seconds=60))
    assert reconcile(Cleaning(due=False), aging).wake_after_seconds == 300.0


def test_dataset_without_history_policies_is_left_alone() -> None:
    cleaning = Cleaning()
    assert reconcile(cleaning, TableServices(timeline=None)) == ReconcileResult()
    assert cleaning.queries == []
