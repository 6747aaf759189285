"""Holding versions while they are read: how long, and what a reader gets that has lost its hold."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from app.core.timeline.errors import VersionExpired
from app.core.timeline.service.version_pins import VersionPins
from app.infra.errors import Unavailable
from app.infra.files.errors import CorruptFile

VERSIONS = [("d", 3), ("e", 5)]


@dataclass
class Leases:
    """Holds by dataset and version, with what happens to them: `gone` versions are kept no longer."""

    leased: dict[tuple[str, int], int] = field(default_factory=dict)
    gone: set[tuple[str, int]] = field(default_factory=set)
    failures: list[Exception] = field(default_factory=list)
    again: threading.Event = field(default_factory=threading.Event)

    def acquire(self, tenant_id: str, dataset_id: str, version: int, reader: str, seconds: float) -> None:
        assert (tenant_id, reader, seconds) == ("t", "job-1", 30)
        if self.failures:
            raise self.failures.pop()
        self.check(tenant_id, dataset_id, version)
        times = self.leased.get((dataset_id, version), 0) + 1
        self.leased[(dataset_id, version)] = times
        if times == 3:
            self.again.set()

    def release(self, tenant_id: str, dataset_id: str, reader: str) -> None:
        assert (tenant_id, reader) == ("t", "job-1")
        self.leased = {each: times for each, times in self.leased.items() if each[0] != dataset_id}

    def check(self, tenant_id: str, dataset_id: str, version: int) -> None:
        if (dataset_id, version) in self.gone:
            self.again.set()
            raise VersionExpired("gone", version=version, earliest=version + 1)

    def first_kept(self, tenant_id: str, dataset_id: str, since: int) -> int:
        raise AssertionError("no request comes")


def pins(leases: Leases, heartbeat_seconds: float = 0.001) -> VersionPins:
    return VersionPins(leases=leases, lease_seconds=30, heartbeat_seconds=heartbeat_seconds)


@pytest.mark.parametrize("failure", [Unavailable("no database"), ZeroDivisionError("a bug")])
def test_pinned_versions_are_renewed_until_the_end(failure: Exception) -> None:
    leases = Leases()
    with pins(leases).pin("t", VERSIONS, "job-1"):
        assert set(leases.leased) == set(VERSIONS)
        leases.failures = [failure]
        assert leases.again.wait(10), "a failure of the database ends nothing"
    assert leases.leased == {}


def test_several_versions_are_pinned_together_or_not_at_all() -> None:
    leases = Leases(gone={("e", 5)})
    with pytest.raises(VersionExpired) as error, pins(leases, 60).pin("t", VERSIONS, "job-1"):
        raise AssertionError("not reached")
    assert error.value.facts == {"version": 5, "earliest": 6}
    assert leases.leased == {}


def test_lost_pin_with_a_missing_file_raises_version_expired() -> None:
    leases = Leases()

    def read() -> None:
        with pins(leases).pin("t", VERSIONS, "job-1"):
            leases.gone.add(("d", 3))
            assert leases.again.wait(10)
            raise CorruptFile("there is no file", path="f")

    with pytest.raises(VersionExpired) as error:
        read()
    assert error.value.facts["version"] == 3
    assert leases.leased == {}


def test_lost_pin_without_a_missing_file_is_ignored() -> None:
    leases = Leases()
    with pins(leases).pin("t", VERSIONS, "job-1"):
        leases.gone.add(("d", 3))
        assert leases.again.wait(10)


def test_damaged_file_of_a_retained_version_raises_corrupt_file() -> None:
    with pytest.raises(CorruptFile), pins(Leases(), 60).pin("t", VERSIONS, "job-1"):
        raise CorruptFile("other bytes", path="f")


def test_pin_that_cannot_be_released_expires() -> None:
    leases = Leases()
    with pins(leases, 60).pin("t", VERSIONS, "job-1"):

        def release(*_: str) -> None:
            raise Unavailable("no database")

        leases.release = release  # type: ignore[method-assign]
    assert len(leases.leased) == 2
