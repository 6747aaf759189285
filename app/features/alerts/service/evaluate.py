"""Evaluates the alerts over the samples of each round of the process that gathers."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from app.features.alerts.declared import Alert, Condition
from app.features.alerts.repository import AlertStore
from app.features.alerts.values import AlertPhase, AlertState, Severity
from app.features.monitoring.values import Sample

_log = logging.getLogger(__name__)
_NAMED_MAX: Final = 5
# Rounds are not exact: without it, one that is early by a moment would put an alert off to the next one.
_EARLY_SECONDS: Final = 0.5
_KEPT: Final = timedelta(days=1)
_GATHERED: Final = "headwater_gather_ok"

_LEVELS: Final = {Severity.CRITICAL: logging.ERROR, Severity.WARNING: logging.WARNING}

Series = tuple[tuple[str, str], ...]


class Evaluate:
    """What the samples say about each alert. Called by one thread, in one process at a time."""

    def __init__(
        self,
        alerts: Sequence[Alert],
        store: AlertStore,
        thresholds: Mapping[str, float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`thresholds`: by the names of settings."""
        self._alerts = [alert for alert in alerts if alert.condition is not Condition.ABSENT]
        self._store = store
        self._thresholds = thresholds
        self._now = now
        # The values of metrics whose increase counts, and when they were read.
        self._past: dict[str, deque[tuple[datetime, float]]] = {}

    def __call__(self, samples: Sequence[Sample]) -> None:
        """One round. An alert whose metric could not be read stays as it is."""
        now, values = self._now(), _by_metric(samples)
        unknown = 0.0 in values.get(_GATHERED, {}).values()
        with self._store.changing() as states:
            for alert in self._alerts:
                series = self._series(alert, values, now)
                if not series and unknown:
                    continue
                details = self._faults(alert, series)
                before = states.get(alert.name)
                after = transition(before, alert, details, now)
                states.put(alert.name, after)
                _log_change(alert, before, after)

    def _series(
        self, alert: Alert, values: Mapping[str, Mapping[Series, float]], now: datetime
    ) -> dict[Series, float]:
        series = dict(values.get(alert.metric, {}))
        if alert.per:
            totals = values.get(alert.per, {})
            return {labels: value / totals[labels] for labels, value in series.items() if totals.get(labels)}
        if alert.window_seconds:
            return {labels: self._increase(alert, value, now) for labels, value in series.items()}
        return series

    def _increase(self, alert: Alert, value: float, now: datetime) -> float:
        past = self._past.setdefault(alert.name, deque())
        while past and past[0][0] < now - timedelta(seconds=alert.window_seconds):
            past.popleft()
        past.append((now, value))
        return value - min(each for _, each in past)

    def _faults(self, alert: Alert, series: Mapping[Series, float]) -> list[str]:
        """The series for which the condition holds, as texts; the worst first."""
        threshold = self._thresholds.get(alert.setting, alert.threshold)
        above = alert.condition is Condition.ABOVE
        faults = {
            labels: value
            for labels, value in series.items()
            if (value > threshold if above else value < threshold)
        }
        worst = sorted(faults, key=lambda labels: (-faults[labels] if above else faults[labels], labels))
        return [_text(labels, faults[labels]) for labels in worst]


def transition(
    before: AlertState | None, alert: Alert, faults: Sequence[str], now: datetime
) -> AlertState | None:
    """The state of an alert after a round; None: nothing to keep. `faults`: the series that its condition is about."""
    if not faults:
        match before:
            case AlertState(phase=AlertPhase.FIRING):
                return _replace(before, phase=AlertPhase.RESOLVED, resolved_at=now, sent=False)
            case AlertState(phase=AlertPhase.RESOLVED, resolved_at=datetime() as at) if now - at < _KEPT:
                return before
            case _:
                return None
    further = f" and {len(faults) - _NAMED_MAX} more" if len(faults) > _NAMED_MAX else ""
    detail = ", ".join(faults[:_NAMED_MAX]) + further
    if before is None or before.phase is AlertPhase.RESOLVED:
        before = AlertState(name=alert.name, phase=AlertPhase.PENDING, since=now)
    if before.phase is AlertPhase.PENDING and _has_lasted(before, alert, now):
        return _replace(before, phase=AlertPhase.FIRING, fired_at=now, detail=detail, sent=False)
    return _replace(before, detail=detail)


def _has_lasted(state: AlertState, alert: Alert, now: datetime) -> bool:
    return (now - state.since).total_seconds() >= alert.for_seconds - _EARLY_SECONDS


def _log_change(alert: Alert, before: AlertState | None, after: AlertState | None) -> None:
    """A line for an alert that was fired or resolved, with the level of its severity."""
    if (
        after is None
        or after.phase is AlertPhase.PENDING
        or (before is not None and before.phase is after.phase)
    ):
        return
    fired = after.phase is AlertPhase.FIRING
    level = logging.INFO if not fired else _LEVELS[alert.severity]
    _log.log(level, "alert %s is %s: %s", alert.name, after.phase.value, after.detail)


def _replace(state: AlertState, **changes: object) -> AlertState:
    return msgspec.structs.replace(state, **changes)


def _by_metric(samples: Sequence[Sample]) -> dict[str, dict[Series, float]]:
    values: dict[str, dict[Series, float]] = {}
    for sample in samples:
        values.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = float(sample.value)
    return values


def _text(labels: Series, value: float) -> str:
    names = " ".join(f"{name}={text}" for name, text in labels)
    number = f"{value:.4g}" if value != round(value) else f"{value:.0f}"
    return f"{names}: {number}" if names else number
