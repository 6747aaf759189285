"""Rounds of retention over feeds that are cut, that are not, and that fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.access.audit.values import UNAUTHENTICATED
from app.features.retention.service.feed import Retain
from app.infra.errors import Unavailable


@dataclass
class Feeds:
    """Feeds of two tenants; that of `broken` cannot be cut. `calls`: what was requested, in order."""

    to_expire: dict[str, int]
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def tenants(self) -> Sequence[str]:
        return ["t", "u"]

    def datasets(self, tenant_id: str) -> Sequence[str]:
        return {"t": ["broken", "long"], "u": ["short"]}[tenant_id]

    def cut(self, tenant_id: str, dataset_id: str, *, follower_lag_seconds: float) -> int:
        assert follower_lag_seconds == 7
        self.calls.append(("cut", tenant_id, dataset_id))
        if dataset_id == "broken":
            raise Unavailable("its head is locked")
        return len(dataset_id)

    def expire_files(self, tenant_id: str, dataset_id: str, limit: int) -> int:
        self.calls.append(("expire_files", tenant_id, dataset_id))
        gone = min(limit, self.to_expire.get(dataset_id, 0))
        self.to_expire[dataset_id] = self.to_expire.get(dataset_id, 0) - gone
        return gone


@dataclass
class Keys:
    """Expired idempotency keys of tenants; those of `broken` cannot be removed."""

    expired: dict[str, int] = field(default_factory=dict)
    broken: str = ""
    calls: list[str] = field(default_factory=list)

    def expire(self, tenant_id: str, limit: int) -> int:
        self.calls.append(tenant_id)
        if tenant_id == self.broken:
            raise Unavailable("its keys are locked")
        gone = min(limit, self.expired.get(tenant_id, 0))
        self.expired[tenant_id] = self.expired.get(tenant_id, 0) - gone
        return gone


@dataclass
class Rows:
    """Expired rows of tenants; those of `broken` cannot be deleted."""

    broken: str = ""
    calls: list[str] = field(default_factory=list)

    def run(self, tenant_id: str) -> int:
        self.calls.append(tenant_id)
        if tenant_id == self.broken:
            raise Unavailable("its rows are locked")
        return 1


def test_rows_that_cannot_be_deleted_hold_up_no_other_tenant_and_no_feed() -> None:
    rows = Rows(broken="t")
    retain = Retain(feeds=Feeds(to_expire={}), keys=Keys(), rows=rows, follower_lag_seconds=7)
    assert retain.run() == len("long") + len("short")
    assert rows.calls == [UNAUTHENTICATED, "t", "u"]


def test_expired_idempotency_keys_are_removed_in_bounded_batches() -> None:
    keys = Keys(expired={"t": 2_500, "u": 1_000})
    Retain(feeds=Feeds(to_expire={}), keys=keys, rows=Rows(), follower_lag_seconds=7).run()
    assert keys.expired == {"t": 0, "u": 0}
    assert keys.calls == ["t"] * 3 + ["u"] * 2


def test_keys_that_cannot_be_removed_hold_up_no_other_tenant_and_no_feed() -> None:
    feeds, keys = Feeds(to_expire={}), Keys(expired={"u": 1}, broken="t")
    assert Retain(feeds=feeds, keys=keys, rows=Rows(), follower_lag_seconds=7).run() == len("long") + len(
        "short"
    )
    assert keys.expired["u"] == 0


def test_every_feed_is_processed_despite_failures_of_others() -> None:
    feeds = Feeds(to_expire={"long": 2_500})
    assert Retain(feeds=feeds, keys=Keys(), rows=Rows(), follower_lag_seconds=7).run() == len("long") + len(
        "short"
    )
    assert feeds.to_expire["long"] == 0
    assert feeds.calls == [
        ("expire_files", "t", "broken"),
        ("cut", "t", "broken"),
        # Bounded steps, all before the cut: what that cuts goes with the next round.
        *[("expire_files", "t", "long")] * 3,
        ("cut", "t", "long"),
        ("expire_files", "u", "short"),
        ("cut", "u", "short"),
    ]


def test_tenant_whose_datasets_cannot_be_listed_does_not_stop_the_others() -> None:
    class Failing(Feeds):
        def datasets(self, tenant_id: str) -> Sequence[str]:
            if tenant_id == "t":
                raise Unavailable("the database is away")
            return super().datasets(tenant_id)

    feeds = Failing(to_expire={})
    Retain(feeds=feeds, keys=Keys(), rows=Rows(), follower_lag_seconds=7).run()
    assert {call[1] for call in feeds.calls if call[0] == "cut"} == {"u"}
