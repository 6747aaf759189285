"""Maintaining tables: which policy gets what, when again, and what happens to a reconciler that raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult, ReconcilerMemory
from app.features.maintenance.service.run_maintenance import RunMaintenance
from app.features.maintenance.values import ClaimedTable, ReconcilerRecord
from tests.support.lakehouse import definition

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
DATASET = Dataset(
    id="d", tenant_id="t", definition=definition(), version=3, next_offset=9, created_at=START, committed_at=START
)  # fmt: skip


@dataclass
class Tables:
    """One dataset, due whenever it is requested, and what was learned of it."""

    dataset: Dataset = DATASET
    now: datetime = START
    memory: dict[str, ReconcilerRecord] = field(default_factory=dict)
    wake_at: datetime | None = None
    epoch: int = 0
    owners: set[str] = field(default_factory=set)

    def due(self, limit: int) -> list[tuple[str, str]]:
        return [("t", "d")][:limit]

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> ClaimedTable | None:
        assert (tenant_id, lease_seconds >= 60) == ("t", True)
        self.owners.add(owner)
        self.epoch += 1
        if dataset_id != "d":
            return None
        return ClaimedTable(dataset=self.dataset, epoch=self.epoch, now=self.now, memory=dict(self.memory))

    def settle(
        self,
        tenant_id: str,
        claimed: ClaimedTable,
        memory: Mapping[str, ReconcilerRecord],
        wake_at: datetime | None,
    ) -> bool:
        assert (tenant_id, claimed.epoch) == ("t", self.epoch)
        self.memory, self.wake_at = dict(memory), wake_at
        return True

    def commit(self, version: int) -> None:
        self.dataset = structs.replace(self.dataset, version=version)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Counting:
    """Counts its reads in its memory, and requests another after `wake` seconds; raises while `broken`."""

    wake: float | None = None
    broken: bool = False
    seen: list[tuple[int, int, ReconcilerMemory]] = field(default_factory=list)

    def reconcile(self, observation: Observation) -> ReconcileResult:
        self.seen.append((observation.since_version, observation.dataset.version, observation.memory))
        if self.broken:
            raise OSError("no route")
        return ReconcileResult(
            memory={"looks": observation.memory.get("looks", 0) + 1}, wake_after_seconds=self.wake
        )

    @property
    def spans(self) -> list[tuple[int, int]]:
        return [(since, version) for since, version, _ in self.seen]


def reconcile(tables: Tables, **reconcilers: Counting) -> None:
    """One round: what it does is done in one look, whatever it finds."""
    assert not RunMaintenance(tables=tables, reconcilers=reconcilers, owner="worker").run("t", "d")


def test_reconciler_gets_the_versions_it_has_not_seen() -> None:
    tables, first, later = Tables(), Counting(), Counting()
    reconcile(tables, first=first)
    reconcile(tables, first=first)
    tables.commit(5)
    reconcile(tables, first=first, later=later)
    tables.commit(6)
    reconcile(tables, first=first, later=later)
    assert first.spans == [(0, 3), (3, 5), (5, 6)]
    assert [memory.get("looks") for _, _, memory in first.seen] == [None, 1, 2]
    assert later.spans == [(0, 5), (5, 6)]
    assert tables.wake_at is None
    assert tables.owners == {"worker"}


def test_reconciler_is_woken_only_at_its_requested_time() -> None:
    tables = Tables()
    soon, late, never = Counting(wake=10), Counting(wake=60), Counting()
    reconcile(tables, soon=soon, late=late, never=never)
    assert tables.wake_at == START + timedelta(seconds=10)
    tables.pass_time(9)
    reconcile(tables, soon=soon, late=late, never=never)
    assert (len(soon.seen), len(late.seen), len(never.seen)) == (1, 1, 1)
    tables.pass_time(1)
    reconcile(tables, soon=soon, late=late, never=never)
    assert (len(soon.seen), len(late.seen), len(never.seen)) == (2, 1, 1)
    assert soon.spans[-1] == (3, 3)
    tables.pass_time(50)
    soon.wake = None
    reconcile(tables, soon=soon, late=late, never=never)
    assert (len(soon.seen), len(late.seen), len(never.seen)) == (3, 2, 1)
    assert tables.wake_at == START + timedelta(seconds=120)


def test_failing_reconciler_does_not_stop_the_others() -> None:
    tables, broken, fine = Tables(), Counting(), Counting()
    reconcile(tables, broken=broken, fine=fine)
    tables.commit(4)
    broken.broken = True
    reconcile(tables, broken=broken, fine=fine)
    tables.commit(5)
    reconcile(tables, broken=broken, fine=fine)
    assert fine.spans == [(0, 3), (3, 4), (4, 5)]
    assert broken.spans == [(0, 3), (3, 4)], "it is left alone for a while, whatever is committed"
    assert tables.wake_at is not None
    assert 5 <= (tables.wake_at - START).total_seconds() <= 60
    tables.now = tables.wake_at
    broken.broken = False
    reconcile(tables, broken=broken, fine=fine)
    assert broken.seen[-1] == (3, 5, {"looks": 1}), "it has missed nothing, and forgotten nothing"
    tables.commit(6)
    reconcile(tables, broken=broken, fine=fine)
    assert broken.spans[-1] == (5, 6)


def test_repeatedly_failing_reconciler_is_called_after_growing_pauses() -> None:
    tables, broken = Tables(), Counting(broken=True)
    pauses = []
    for _ in range(12):
        reconcile(tables, broken=broken)
        assert tables.wake_at is not None
        pauses.append((tables.wake_at - tables.now).total_seconds())
        tables.now = tables.wake_at
    assert len(broken.seen) == 12
    assert pauses == sorted(pauses)
    assert pauses[1] > pauses[0]
    assert pauses[-1] == 3_600


@pytest.mark.parametrize("wake_at", [None, START - timedelta(days=1)])
def test_record_of_an_unknown_reconciler_is_kept_and_wakes_nothing(wake_at: datetime | None) -> None:
    other = ReconcilerRecord(version=2, wake_at=wake_at, memory={"a": 1})
    tables = Tables(memory={"other": other})
    reconcile(tables, mine=Counting())
    assert tables.memory["other"] == other
    assert tables.memory["mine"].version == 3
    assert tables.wake_at is None


def test_dataset_that_is_not_due_is_left_alone() -> None:
    tables, counting = Tables(), Counting()
    assert not RunMaintenance(tables=tables, reconcilers={"mine": counting}, owner="worker").run("t", "other")
    assert (counting.seen, tables.memory) == ([], {})
