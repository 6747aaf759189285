"""Rounds over the alerts of tenants: which alerts they fire and resolve, and whose turn it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from app.features.alerts.declared import ALERTS, Subject
from app.features.alerts.service.watch_tenants import EVENTS_MAX, Faults, WatchTenants
from app.features.monitoring.values import DatasetFault
from app.features.webhooks.values import AlertEvent, HeldAlert

BEGIN = datetime(2026, 11, 29, 8, tzinfo=UTC)
OF_TENANTS = [alert for alert in ALERTS if alert.about is not Subject.SERVICE]


class Rounds:
    """Rounds over faults that the test chooses, without a database."""

    def __init__(self, *, held_seconds: float = 300.0) -> None:
        self.now = BEGIN
        self.states: Mapping[str, HeldAlert] = {}
        self.held_seconds = held_seconds
        self.events: Sequence[AlertEvent] = ()

    def after(self, seconds: float, faults: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
        """The events of a round, this time after the one before: dataset and state. `faults`: datasets by alert."""
        self.now += timedelta(seconds=seconds)
        values = {alert.metric: [fault(each) for each in faults.get(alert.name, ())] for alert in OF_TENANTS}
        return self.round(values)

    def round(self, values: Mapping[str, Sequence[DatasetFault]]) -> list[tuple[str, str]]:
        # As after a restart: nothing but the stored states is left of earlier rounds.
        watching = WatchTenants(
            alerts=OF_TENANTS,
            tenants=lambda _, __: [],
            states=lambda _: {},
            faults=lambda _, __: {},
            change=lambda _, __: [],
            leads=lambda: True,
            round_seconds=60.0,
            held_seconds=self.held_seconds,
        )
        stored = msgspec.json.decode(msgspec.json.encode(self.states), type=dict[str, HeldAlert])
        self.states, self.events = watching.decide("acme", 0, stored, values, self.now)
        return [(each.labels["dataset"], each.state.value) for each in self.events]


def fault(dataset: str, detail: str = "much") -> DatasetFault:
    return DatasetFault(dataset_id=f"id of {dataset}", dataset=dataset, value=10**9, detail=detail)


def test_alert_waits_for_its_time_and_is_held_while_it_comes_and_goes() -> None:
    rounds, on, off = Rounds(), {"source-failing": ["orders"]}, {"source-failing": []}
    assert rounds.after(0, on) == []
    assert rounds.after(290, on) == []
    assert rounds.after(10, on) == [("orders", "firing")]
    for _ in range(20):
        assert rounds.after(15, off) == []
        assert rounds.after(15, on) == []
    assert rounds.after(15, off) == []
    assert rounds.after(285, off) == []
    assert rounds.after(15, off) == [("orders", "resolved")]
    assert rounds.states == {}
    # A condition that ends within the time fires nothing.
    assert rounds.after(15, on) == []
    assert rounds.after(15, off) == []
    assert rounds.states == {}


def test_second_webhook_that_pauses_fires_nothing_and_the_event_of_the_end_names_both() -> None:
    rounds, metric = Rounds(held_seconds=0), "headwater_webhooks_paused"
    assert rounds.round({metric: [fault("orders", "one")]}) == [("orders", "firing")]
    assert rounds.events[0].detail == "one"
    assert rounds.round({metric: [fault("orders", "one; two")]}) == []
    assert rounds.round({metric: []}) == [("orders", "resolved")]
    assert rounds.events[0].detail == "resolved after less than a minute; it was: one; two"
    # A value that changes in each round is that of the event before.
    metric = "headwater_views_failing"
    assert rounds.round({metric: [fault("copy", "1 has failed")]}) == [("copy", "firing")]
    assert rounds.round({metric: [fault("copy", "2 have failed")]}) == []
    [held] = rounds.states.values()
    assert held.detail == "1 has failed"


def test_event_of_the_end_says_that_nothing_is_to_be_done() -> None:
    rounds = Rounds(held_seconds=0)
    rounds.after(0, {"view-failed": ["totals"]})
    assert rounds.events[0].action.startswith("Read the error of the view")
    rounds.after(360, {})
    [event] = rounds.events
    assert (event.detail, event.action) == ("resolved after 6 min; it was: much", "")
    rounds.after(0, {"view-failed": ["totals"]})
    rounds.after(7_500, {})
    assert rounds.events[0].detail == "resolved after 2 h 5 min; it was: much"


def test_metric_that_cannot_be_read_changes_nothing() -> None:
    rounds = Rounds(held_seconds=0)
    assert rounds.after(0, {"view-failed": ["loud"]}) == [("loud", "firing")]
    assert rounds.round({}) == []
    assert rounds.after(15, {}) == [("loud", "resolved")]


def test_events_of_a_round_have_a_bound_and_all_come_at_last() -> None:
    rounds = Rounds(held_seconds=0)
    many = {"view-failed": [f"v{number}" for number in range(2 * EVENTS_MAX + 7)]}
    found = [rounds.after(15, many) for _ in range(4)]
    assert [len(each) for each in found] == [EVENTS_MAX, EVENTS_MAX, 7, 0]
    assert {name for each in found for name, _ in each} == set(many["view-failed"])
    resolved = [rounds.after(15, {}) for _ in range(4)]
    assert [len(each) for each in resolved] == [EVENTS_MAX, EVENTS_MAX, 7, 0]


def watching(
    tenants: Sequence[str],
    faults: Callable[[str], Faults],
    changed: list[str],
    *,
    round_seconds: float = 60.0,
) -> WatchTenants:
    """Rounds over these tenants. `changed`: gets those that were evaluated."""

    def change(tenant_id: str, _: object) -> list[AlertEvent]:
        changed.append(tenant_id)
        return []

    return WatchTenants(
        alerts=OF_TENANTS,
        tenants=lambda after, limit: [each for each in tenants if each > after][:limit],
        states=lambda _: {},
        faults=lambda tenant_id, _: faults(tenant_id),
        change=change,
        leads=lambda: True,
        round_seconds=round_seconds,
    )


def test_round_ends_after_its_time_and_the_next_one_goes_on() -> None:
    def slow(_: str) -> Faults:
        time.sleep(0.02)
        return {}

    changed: list[str] = []
    tenants = [f"t{number}" for number in range(9)]
    rounds = watching(tenants, slow, changed, round_seconds=0.05)
    rounds.run()
    assert 1 <= len(changed) < 9
    for _ in range(9):
        rounds.run()
    assert changed[:9] == tenants


def test_failure_of_a_tenant_does_not_affect_others() -> None:
    def faults(tenant_id: str) -> Faults:
        if tenant_id == "bad":
            raise RuntimeError("no such thing")
        return {}

    changed: list[str] = []
    watching(["bad", "good"], faults, changed).run()
    assert changed == ["good"]
