"""Starts cleans of datasets with versions beyond their history or instants beyond their timeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from app.catalog.values import Dataset
from app.jobs.tasks import CleanTask
from app.jobs.values import Accepted
from app.maintenance.values import Observation, ReconcileResult
from app.retention.repository.history import HistoryStore

# The least time between two cleans of a dataset.
_PAUSE_SECONDS: Final = 300.0


class Cleans(Protocol):
    """Accepts cleans."""

    def start(
        self, dataset: Dataset, task: CleanTask, idempotency_key: str | None, actor: str | None
    ) -> Accepted: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryReconciler:
    """Carries out `services.history` and `services.timeline`. It stores when it last started a clean."""

    history: HistoryStore
    cleans: Cleans

    def reconcile(self, observation: Observation) -> ReconcileResult:
        """See `Reconciler`."""
        dataset = observation.dataset
        services = dataset.definition.services
        if services.history is None and services.timeline is None:
            return ReconcileResult()
        started = observation.memory.get("started_at")
        if started is not None:
            pause = _PAUSE_SECONDS - (observation.now - datetime.fromisoformat(started)).total_seconds()
            if 0 < pause <= _PAUSE_SECONDS:
                return ReconcileResult(memory=observation.memory, wake_after_seconds=pause)
        memory = observation.memory
        if self.history.has_expired(dataset.tenant_id, dataset.id, services.history, services.timeline):
            self.cleans.start(dataset, CleanTask(), None, None)
            memory = {"started_at": observation.now.isoformat()}
        return ReconcileResult(memory=memory, wake_after_seconds=_PAUSE_SECONDS if _ages(dataset) else None)


def _ages(dataset: Dataset) -> bool:
    """Whether versions will expire without another commit."""
    history = dataset.definition.services.history
    aging = history is not None and history.seconds is not None
    return aging and dataset.earliest_version < dataset.version
