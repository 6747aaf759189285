"""Alerts are fired once their condition has held for its time, and resolved once it no longer holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from app.features.alerts.declared import ALERTS, Alert, Condition
from app.features.alerts.repository import AlertStore
from app.features.alerts.service.evaluate import Evaluate
from app.features.alerts.service.events import SendEvents
from app.features.alerts.service.health import latest_resolutions
from app.features.alerts.values import AlertPhase
from app.features.monitoring.values import GATHERED, Sample
from tests.support.store_fixtures import Stores

BEGIN = datetime(2026, 11, 29, 8, tzinfo=UTC)
EVALUATED = [alert for alert in ALERTS if alert.condition is not Condition.ABSENT]
LABELS = {metric.name: dict.fromkeys(metric.labels, "x") for metric in GATHERED}
BY_NAME = {alert.name: alert for alert in ALERTS}


class Rounds:
    """Rounds of evaluation of one alert, at times that the test chooses."""

    def __init__(self, stores: Stores, alert: Alert) -> None:
        self.alert = alert
        self.store = AlertStore(stores.database)
        # The process started long before.
        self.at = BEGIN - timedelta(hours=1)
        self._evaluate = Evaluate([alert], self.store, {}, lambda: self.at)
        self.at = BEGIN

    def after(self, seconds: float, value: float, *more: Sample) -> AlertPhase | None:
        """The phase after a round, this time after the one before."""
        self.at += timedelta(seconds=seconds)
        self._evaluate([*self.samples(value), *more])
        return self.phase

    def evaluate(self, samples: Sequence[Sample]) -> None:
        self._evaluate(samples)

    def samples(self, value: float) -> list[Sample]:
        alert = self.alert
        samples = [Sample(alert.metric, LABELS[alert.metric], value)]
        return [*samples, Sample(alert.per, LABELS[alert.per], 100.0)] if alert.per else samples

    @property
    def phase(self) -> AlertPhase | None:
        return next((each.phase for each in self.store.states() if each.name == self.alert.name), None)


def values(alert: Alert) -> tuple[float, float]:
    """A value that is right, and one that is a fault."""
    scale = 100.0 if alert.per else 1.0
    right, fault = alert.threshold * scale, (alert.threshold + 1) * scale
    if alert.condition is Condition.BELOW:
        fault = (alert.threshold - (0.01 if alert.per else 1)) * scale
    return right, fault


@pytest.mark.parametrize("alert", EVALUATED, ids=lambda alert: alert.name)
def test_alert_is_fired_after_its_time_and_resolved(stores: Stores, alert: Alert) -> None:
    rounds, (right, fault) = Rounds(stores, alert), values(alert)
    assert rounds.after(0, right) is None
    first = AlertPhase.PENDING if alert.for_seconds else AlertPhase.FIRING
    assert rounds.after(15, fault) is first
    if alert.for_seconds:
        assert rounds.after(alert.for_seconds - 1, fault) is AlertPhase.PENDING
    assert rounds.after(1, fault) is AlertPhase.FIRING
    [state] = [each for each in rounds.store.states() if each.name == alert.name]
    assert state.fired_at is not None
    assert state.detail
    # The values of an hour ago count no more.
    again = fault if alert.window_seconds else right
    assert rounds.after(max(15, alert.hold_seconds, 2 * alert.window_seconds), again) is AlertPhase.RESOLVED
    assert rounds.after(86_400, again) is None


def test_alert_whose_condition_ends_in_time_is_not_fired(stores: Stores) -> None:
    rounds = Rounds(stores, BY_NAME["no-worker"])
    assert rounds.after(0, 0) is AlertPhase.PENDING
    assert rounds.after(20, 1) is None
    assert rounds.after(20, 0) is AlertPhase.PENDING


def test_missing_worker_is_not_fired_while_the_service_starts(stores: Stores) -> None:
    alert = BY_NAME["no-worker"]
    store = AlertStore(stores.database)
    begin = at = BEGIN + timedelta(days=10)
    evaluate = Evaluate([alert], store, {}, lambda: at)
    # What other tests have left ends.
    evaluate([Sample(alert.metric, {}, 1)])
    none = [Sample(alert.metric, {}, 0)]
    for seconds, phases in ((0, []), (100, []), (120, ["pending"]), (150, ["firing"])):
        at = begin + timedelta(seconds=seconds)
        evaluate(none)
        assert [each.phase.value for each in store.states() if each.name == alert.name] == phases


def test_postponed_jobs_that_are_tried_again_do_not_resolve_their_alert(stores: Stores) -> None:
    rounds = Rounds(stores, BY_NAME["jobs-postponed"])
    rounds.after(0, 2)
    assert rounds.after(60, 2) is AlertPhase.FIRING
    assert rounds.after(60, 0) is AlertPhase.FIRING
    assert rounds.after(15, 2) is AlertPhase.FIRING
    assert rounds.after(90, 0) is AlertPhase.RESOLVED


def test_resolved_alert_stays_listed_if_its_condition_returns_for_a_moment(stores: Stores) -> None:
    rounds = Rounds(stores, BY_NAME["storage-unreachable"])
    rounds.after(0, 0)
    rounds.after(30, 0)
    assert rounds.after(15, 1) is AlertPhase.RESOLVED
    before = latest_resolutions(rounds.store.states())
    assert rounds.after(15, 0) is AlertPhase.PENDING
    assert latest_resolutions(rounds.store.states()) == before
    assert rounds.after(15, 1) is AlertPhase.RESOLVED
    assert latest_resolutions(rounds.store.states()) == before


@pytest.mark.parametrize(("number", "end"), [(2, "s 1"), (17, "s 4, and 12 more")])
def test_alert_about_datasets_names_them(stores: Stores, number: int, end: str) -> None:
    alert = BY_NAME["view-failed"]
    store = AlertStore(stores.database)

    def worst(metric: str, above: float, limit: int) -> tuple[list[str], int]:
        assert (metric, above) == (alert.metric, 0)
        return [f"acme/orders{each}: s {each}" for each in range(min(limit, number))], number

    Evaluate([alert], store, {}, worst_datasets=worst)([Sample(alert.metric, {}, number)])
    [state] = [each for each in store.states() if each.name == alert.name]
    assert state.detail.startswith("acme/orders0: s 0; acme/orders1: s 1")
    assert state.detail.endswith(end)


def test_alert_stays_while_its_metric_cannot_be_read(stores: Stores) -> None:
    rounds = Rounds(stores, BY_NAME["webhook-paused"])
    assert rounds.after(0, 1) is AlertPhase.FIRING
    rounds.evaluate([Sample("headwater_gather_ok", {"part": "webhooks"}, 0)])
    assert rounds.phase is AlertPhase.FIRING
    rounds.evaluate([Sample("headwater_gather_ok", {"part": "webhooks"}, 1)])
    assert rounds.phase is AlertPhase.RESOLVED
    assert rounds.after(15, 1) is AlertPhase.FIRING


def test_alert_names_the_worst_series_and_takes_the_threshold_of_the_setting(stores: Stores) -> None:
    alert = BY_NAME["disk-full"]
    store = AlertStore(stores.database)
    evaluate = Evaluate([alert], store, {"disk_free_bytes_min": 10.0})
    free = [Sample(alert.metric, {"process": f"p{number}"}, number) for number in range(30)]
    evaluate(free)
    [state] = [each for each in store.states() if each.name == alert.name]
    assert state.detail.startswith("process p0: 0 B free, minimum 10 B; process p1: 1 B free, minimum 10 B; ")
    assert state.detail.endswith(", and 5 more")
    evaluate(free[10:])
    [state] = [each for each in store.states() if each.name == alert.name]
    assert state.phase is AlertPhase.RESOLVED


def test_every_alert_names_metrics_that_exist_and_has_a_name_of_its_own() -> None:
    metrics = {metric.name: set(metric.labels) for metric in GATHERED}
    for alert in ALERTS:
        assert alert.metric in metrics, alert.name
        if alert.per:
            assert metrics[alert.per] == metrics[alert.metric]
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)


@pytest.mark.parametrize(
    ("name", "level"), [("storage-unreachable", "ERROR"), ("redis-unreachable", "WARNING")]
)
def test_alert_is_logged_by_its_severity_when_it_is_fired_and_resolved(
    stores: Stores, caplog: pytest.LogCaptureFixture, name: str, level: str
) -> None:
    alert = BY_NAME[name]
    rounds = Rounds(stores, alert)
    with caplog.at_level("INFO"):
        for value in (0, 0, 0, 1, 1):
            rounds.after(alert.for_seconds, value)
    lines = [(each.levelname, each.getMessage()) for each in caplog.records if name in each.getMessage()]
    fired, resolved = (f"alert {name} is {phase}: {alert.detail}" for phase in ("firing", "resolved"))
    assert lines == [(level, fired), ("INFO", resolved)]


def test_round_that_is_early_by_a_moment_does_not_put_an_alert_off(stores: Stores) -> None:
    rounds = Rounds(stores, BY_NAME["storage-unreachable"])
    rounds.after(0, 0)
    assert rounds.after(15, 0) is AlertPhase.PENDING
    assert rounds.after(14.8, 0) is AlertPhase.FIRING
    assert rounds.after(15, 1) is AlertPhase.RESOLVED


def test_process_leads_only_while_events_wait_and_sends_the_critical_ones_first(stores: Stores) -> None:
    requested: list[str] = []
    sent: list[str] = []

    def leads() -> bool:
        requested.append("leads")
        return True

    events = SendEvents(
        store=AlertStore(stores.database),
        send=lambda message_id, _body: sent.append(message_id.rpartition("-firing")[0]),
        leads=leads,
    )
    # Events of other tests.
    events.run()
    requested.clear()
    sent.clear()
    events.run()
    assert requested == []
    for name in ("redis-unreachable", "disk-low", "storage-unreachable"):
        rounds = Rounds(stores, BY_NAME[name])
        rounds.after(0, 0)
        rounds.after(60, 0)
    events.run()
    assert (requested, sent) == (["leads"], ["storage-unreachable", "disk-low", "redis-unreachable"])
