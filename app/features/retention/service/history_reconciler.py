"""Starts cleans of datasets with versions beyond their history or instants beyond their timeline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult
from app.core.jobs.kinds.clean import CleanTask
from app.core.jobs.values import Accepted
from app.features.retention.repository.history import HistoryStore
from app.features.retention.values import HistoryExpiry
from app.kernel.format.policies import HistoryPolicy, TableServices

# The least time between two cleans of a dataset.
_PAUSE_SECONDS: Final = 300.0
# A clean that expires versions by their age waits for this part of the age after the last one, so that a dataset which
# is written all the time is not cleaned all the time.
_PAUSE_OF_AGE: Final = 0.01
# A dataset that needs no clean is checked again when a version expires, or after a tenth of the versions or instants
# that it keeps, or these many versions. A check takes about as many statements as a small write.
_QUIET_PART: Final = 10
_QUIET_VERSIONS_MAX: Final = 100
_QUIET_SECONDS_MAX: Final = 86_400.0


class Cleans(Protocol):
    """Accepts cleans."""

    def start(
        self, dataset: Dataset, task: CleanTask, idempotency_key: str | None, actor: str | None
    ) -> Accepted: ...


class _Quiet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No clean has an effect before this time and this version, under these policies."""

    until: datetime
    version: int
    policies: Any


class _State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`started_at`: when the last clean was started."""

    started_at: datetime | None = None
    quiet: _Quiet | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryReconciler:
    """Carries out `services.history` and `services.timeline`. It stores when it last started a clean."""

    history: HistoryStore
    cleans: Cleans

    def reconcile(self, observation: Observation) -> ReconcileResult:
        """See `Reconciler`."""
        services = observation.dataset.definition.services
        if services.history is None and services.timeline is None:
            return ReconcileResult()
        state = msgspec.convert(observation.memory, _State, strict=False)
        state, wake_after_seconds = self._next(observation, state)
        return ReconcileResult(memory=msgspec.to_builtins(state), wake_after_seconds=wake_after_seconds)

    def _next(self, observation: Observation, state: _State) -> tuple[_State, float | None]:
        """Starts a clean if one has an effect. Returns the state, and after how many seconds to run again."""
        dataset, now = observation.dataset, observation.now
        services = dataset.definition.services
        since = _seconds_since_clean(state, now)
        if since < _PAUSE_SECONDS:
            return state, _PAUSE_SECONDS - since
        policies = msgspec.to_builtins([services.history, services.timeline])
        quiet = state.quiet
        if quiet is not None and quiet.policies == policies and quiet.version > dataset.version:
            rest = (quiet.until - now).total_seconds()
            if 0 < rest <= _QUIET_SECONDS_MAX:
                return state, rest
        rest = _pause(services.history) - since
        history = services.history if rest <= 0 else None
        expiry = self.history.expiry(dataset.tenant_id, dataset.id, history, services.timeline)
        if expiry.due:
            self.cleans.start(dataset, CleanTask(), None, None)
            return _State(started_at=now), _next_clean(services.history)
        wake_after_seconds = rest if rest > 0 else _wake(expiry, now)
        until = now + timedelta(seconds=_quiet_seconds(services.history, wake_after_seconds))
        version = dataset.version + _quiet_versions(services)
        quiet = _Quiet(until=until, version=version, policies=policies) if version > dataset.version else None
        return replace(state, quiet=quiet), wake_after_seconds


def _quiet_versions(services: TableServices) -> int:
    """After how many more versions to check again: a tenth of what the policies keep."""
    limits = [
        None if services.history is None else services.history.versions,
        None if services.timeline is None else services.timeline.instants,
    ]
    return min([_QUIET_VERSIONS_MAX, *(most // _QUIET_PART for most in limits if most is not None)])


def _quiet_seconds(policy: HistoryPolicy | None, wake_after_seconds: float | None) -> float:
    """The time in which no version expires by its age."""
    most = _QUIET_SECONDS_MAX if policy is None or policy.seconds is None else float(policy.seconds)
    return min(most, _QUIET_SECONDS_MAX, math.inf if wake_after_seconds is None else wake_after_seconds)


def _seconds_since_clean(state: _State, now: datetime) -> float:
    """The time since the last clean was started; infinite without one, or after the clock was put back."""
    if state.started_at is None:
        return math.inf
    since = (now - state.started_at).total_seconds()
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
