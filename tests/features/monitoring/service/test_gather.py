"""One process gathers, whatever fails."""

from __future__ import annotations

import time
from collections.abc import Sequence

from app.features.monitoring.repository.leaders import LeaderStore
from app.features.monitoring.service.gather import Gather, SamplePart
from app.features.monitoring.values import Sample
from tests.support.leaders import end_lease
from tests.support.store_fixtures import Stores


class Source:
    """A part that counts how often it is read, and may fail."""

    def __init__(self) -> None:
        self.reads = 0
        self.fails = False

    def read(self) -> list[Sample]:
        self.reads += 1
        if self.fails:
            raise RuntimeError("away")
        return [Sample("headwater_datasets", {}, self.reads)]


def gather(
    stores: Stores, owner: str, parts: dict[str, SamplePart], seconds: float = 60.0, **more: object
) -> Gather:
    return Gather(parts, LeaderStore(stores.database), owner, every_seconds=seconds, **more)  # type: ignore[arg-type]


def named(samples: Sequence[Sample], name: str) -> list[float]:
    return [float(each.value) for each in samples if each.name == name]


def test_only_the_leader_has_samples(stores: Stores) -> None:
    first, second = (
        gather(stores, each, {"a": SamplePart(read=Source().read)}) for each in ("first", "second")
    )
    for each in (first, second, first):
        each.run()
    assert named(first.samples(), "headwater_datasets") == [2]
    assert second.samples() == ()
    end_lease(stores.database, "metrics")


def test_samples_of_a_process_that_has_not_led_lately_are_not_shown(stores: Stores) -> None:
    stale = gather(stores, "stale", {"a": SamplePart(read=Source().read)}, seconds=1e-9)
    stale.run()
    assert stale.samples() == ()


def test_part_that_fails_has_no_samples_and_the_others_have_theirs(stores: Stores) -> None:
    good, bad = Source(), Source()
    heard: list[Sequence[Sample]] = []
    parts = {"bad": SamplePart(read=bad.read), "good": SamplePart(read=good.read)}
    leader = gather(stores, "leader", parts, listeners=[heard.append])
    for bad.fails in (False, True, True, False):
        leader.run()
    assert [len(named(each, "headwater_datasets")) for each in heard] == [2, 1, 1, 2]
    assert named(heard[1], "headwater_gather_ok") == [0, 1]
    end_lease(stores.database, "metrics")


def test_dear_part_is_read_seldom_and_keeps_its_samples(stores: Stores) -> None:
    dear = Source()
    leader = gather(stores, "dear", {"dear": SamplePart(read=dear.read, rounds=4)})
    for _ in range(5):
        leader.run()
        assert named(leader.samples(), "headwater_datasets") == [dear.reads]
    assert dear.reads == 2
    end_lease(stores.database, "metrics")


def test_part_that_takes_long_rests_for_a_multiple_of_its_time(stores: Stores) -> None:
    slow = Source()

    def read() -> list[Sample]:
        time.sleep(0.01)
        return slow.read()

    leader = gather(stores, "slow", {"slow": SamplePart(read=read)}, seconds=0.1)
    for _ in range(5):
        leader.run()
        assert named(leader.samples(), "headwater_datasets") == [1]
    end_lease(stores.database, "metrics")
