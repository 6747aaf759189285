"""Evaluates the alerts over the samples of each round of the process that gathers."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from app.features.alerts.declared import Alert, Condition, Subject
from app.features.alerts.repository import AlertStore
from app.features.alerts.values import AlertPhase, AlertState, Severity
from app.features.monitoring.values import Amount, Sample
from app.infra.errors import Unavailable
from app.infra.files.probe import readable_bytes

_log = logging.getLogger(__name__)
_NAMED_MAX: Final = 5
# Rounds are not exact: without it, one that is early by a moment would put an alert off to the next one.
_EARLY_SECONDS: Final = 0.5
_KEPT: Final = timedelta(days=1)
_GATHERED: Final = "headwater_gather_ok"

_LEVELS: Final = {Severity.CRITICAL: logging.ERROR, Severity.WARNING: logging.WARNING}

_NAMES_READ_EVERY: Final = timedelta(minutes=1)

Series = tuple[tuple[str, str], ...]
WorstDatasets = Callable[[str, float, int], tuple[Sequence[str], int]]
"""Texts of the worst datasets by a metric with more than a value, of a number at most; and how many there are."""


class Evaluate:
    """What the samples say about each alert. Called by one thread, in one process at a time."""

    def __init__(
        self,
        alerts: Sequence[Alert],
        store: AlertStore,
        thresholds: Mapping[str, float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        worst_datasets: WorstDatasets | None = None,
    ) -> None:
        """`thresholds`: by the names of settings. `worst_datasets`: names what an alert about datasets is about."""
        self._alerts = [alert for alert in alerts if alert.condition is not Condition.ABSENT]
        self._store = store
        self._thresholds = thresholds
        self._now = now
        self._worst_datasets = worst_datasets
        self._began = now()
        # When the condition of an alert held last, and the texts of datasets with the time that they were read at.
        self._last_faults: dict[str, datetime] = {}
        self._texts: dict[str, tuple[datetime, list[str]]] = {}
        # The values of metrics whose increase counts, and when they were read.
        self._past: dict[str, deque[tuple[datetime, float]]] = {}

    def __call__(self, samples: Sequence[Sample]) -> None:
        """One round. An alert whose metric could not be read stays as it is."""
        now, values = self._now(), _by_metric(samples)
        unknown = 0.0 in values.get(_GATHERED, {}).values()
        rounds: list[tuple[Alert, list[str]]] = []
        for alert in self._alerts:
            series = self._series(alert, values, now)
            if series or not unknown:
                rounds.append((alert, self._details(alert, series, values, now)))
        with self._store.changing() as states:
            for alert, details in rounds:
                before = states.get(alert.name)
                if self._rests(alert, before, details, now):
                    continue
                after = transition(before, alert, details, now)
                states.put(alert.name, after)
                _log_change(alert, before, after)

    def _rests(self, alert: Alert, before: AlertState | None, details: Sequence[str], now: datetime) -> bool:
        """Whether an alert stays as it is: the service has just started, or the condition held a moment ago."""
        if details:
            self._last_faults[alert.name] = now
            return now < self._began + timedelta(seconds=alert.start_seconds) and not _is_firing(before)
        last = self._last_faults.get(alert.name)
        return last is not None and _is_firing(before) and now < last + timedelta(seconds=alert.hold_seconds)

    def _details(
        self,
        alert: Alert,
        series: Mapping[Series, float],
        values: Mapping[str, Mapping[Series, float]],
        now: datetime,
    ) -> list[str]:
        """The faults of an alert in words, the worst first."""
        faults = self._faults(alert, series)
        if faults and alert.about is not Subject.SERVICE and self._worst_datasets is not None:
            names = self._names(alert, self._worst_datasets, now)
            if names:
                return names
        threshold = self._thresholds.get(alert.setting, alert.threshold)
        raw, totals = values.get(alert.metric, {}), values.get(alert.per, {})
        return [
            _text(
                labels,
                alert.detail.format(
                    value=Amount(series[labels]),
                    size=readable_bytes(round(raw.get(labels, 0))),
                    minimum=readable_bytes(round(threshold * totals.get(labels, 1))),
                ),
            )
            for labels in faults
        ]

    def _names(self, alert: Alert, worst_datasets: WorstDatasets, now: datetime) -> list[str]:
        """The datasets that an alert is about, read once a minute; none if they cannot be read."""
        at, texts = self._texts.get(alert.name, (None, []))
        if at is not None and now < at + _NAMES_READ_EVERY:
            return texts
        try:
            worst, datasets = worst_datasets(
                alert.metric, 0 if alert.window_seconds else alert.threshold, _NAMED_MAX
            )
            texts = [*worst, *([""] * (datasets - len(worst)))]
        except Unavailable as error:
            texts = []
            _log.warning("the datasets of the alert %s cannot be read: %s", alert.name, error)
        self._texts[alert.name] = (now, texts)
        return texts

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

    def _faults(self, alert: Alert, series: Mapping[Series, float]) -> list[Series]:
        """The series for which the condition holds, the worst first."""
        threshold = self._thresholds.get(alert.setting, alert.threshold)
        above = alert.condition is Condition.ABOVE
        faults = {
            labels: value
            for labels, value in series.items()
            if (value > threshold if above else value < threshold)
        }
        return sorted(faults, key=lambda labels: (-faults[labels] if above else faults[labels], labels))


def transition(
    before: AlertState | None, alert: Alert, faults: Sequence[str], now: datetime
) -> AlertState | None:
    """The state of an alert after a round; None: nothing to keep. `faults`: the series that its condition is about."""
    if not faults:
        match before:
            case AlertState(phase=AlertPhase.FIRING):
                return _replace(before, phase=AlertPhase.RESOLVED, resolved_at=now, sent=False)
            case AlertState(phase=AlertPhase.PENDING, resolved_at=datetime() as at) if now - at < _KEPT:
                return _replace(before, phase=AlertPhase.RESOLVED)
            case AlertState(phase=AlertPhase.RESOLVED, resolved_at=datetime() as at) if now - at < _KEPT:
                return before
            case _:
                return None
    further = f", and {len(faults) - _NAMED_MAX:,} more" if len(faults) > _NAMED_MAX else ""
    detail = "; ".join(faults[:_NAMED_MAX]) + further
    if before is None:
        before = AlertState(name=alert.name, phase=AlertPhase.PENDING, since=now)
    elif before.phase is AlertPhase.RESOLVED:
        # It is again the alert of before, if the condition ends before its time.
        before = _replace(before, phase=AlertPhase.PENDING, since=now)
    if before.phase is AlertPhase.PENDING and _has_lasted(before, alert, now):
        return _replace(
            before, phase=AlertPhase.FIRING, fired_at=now, resolved_at=None, detail=detail, sent=False
        )
    return _replace(before, detail=detail)


def _is_firing(state: AlertState | None) -> bool:
    return state is not None and state.phase is AlertPhase.FIRING


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


def _text(labels: Series, words: str) -> str:
    names = ", ".join(f"{name} {text}" for name, text in labels)
    return f"{names}: {words}" if names else words
