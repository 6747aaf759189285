"""Starts cleans of datasets with versions beyond their history or instants beyond their timeline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from app.catalog.values import Dataset
from app.format.policies import HistoryPolicy
from app.jobs.tasks import CleanTask
from app.jobs.values import Accepted
from app.maintenance.values import Observation, ReconcileResult
from app.retention.repository.history import HistoryStore
from app.retention.values import HistoryExpiry

# The least time between two cleans of a dataset.
_PAUSE_SECONDS: Final = 300.0
# A clean that expires versions by their age waits for this part of the age after the last one, so that a dataset which
# is written all the time is not cleaned all the time.
_PAUSE_OF_AGE: Final = 0.01


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
        dataset, memory = observation.dataset, observation.memory
        services = dataset.definition.services
        if services.history is None and services.timeline is None:
            return ReconcileResult()
        since = _seconds_since_clean(observation)
        if since < _PAUSE_SECONDS:
            return ReconcileResult(memory=memory, wake_after_seconds=_PAUSE_SECONDS - since)
        rest = _pause(services.history) - since
        history = services.history if rest <= 0 else None
        expiry = self.history.expiry(dataset.tenant_id, dataset.id, history, services.timeline)
        if expiry.due:
            self.cleans.start(dataset, CleanTask(), None, None)
            memory = {"started_at": observation.now.isoformat()}
            return ReconcileResult(memory=memory, wake_after_seconds=_next_clean(services.history))
        if rest > 0:
            return ReconcileResult(memory=memory, wake_after_seconds=rest)
        return ReconcileResult(memory=memory, wake_after_seconds=_wake(expiry, observation.now))


def _seconds_since_clean(observation: Observation) -> float:
    """The time since the last clean was started; infinite without one, or after the clock was put back."""
    started = observation.memory.get("started_at")
    if started is None:
        return math.inf
    since = (observation.now - datetime.fromisoformat(started)).total_seconds()
    return since if since >= 0 else math.inf


def _pause(policy: HistoryPolicy | None) -> float:
    """The least time between two cleans that expire versions."""
    if policy is None or policy.seconds is None:
        return _PAUSE_SECONDS
    return max(_PAUSE_SECONDS, policy.seconds * _PAUSE_OF_AGE)


def _next_clean(policy: HistoryPolicy | None) -> float | None:
    """When a policy is due after a clean; None if nothing expires without another commit."""
    return None if policy is None or policy.seconds is None else _pause(policy)


def _wake(expiry: HistoryExpiry, now: datetime) -> float | None:
    """When the earliest version expires. One that should have expired is kept by a write that runs, or by a clean."""
    if expiry.next_at is None:
        return None
    due = (expiry.next_at - now).total_seconds()
    return due if due > 0 else _PAUSE_SECONDS
