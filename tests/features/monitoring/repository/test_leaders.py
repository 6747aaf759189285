"""One process at a time does a task for all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from app.features.monitoring.repository.leaders import LeaderStore
from tests.support.store_fixtures import Stores


def test_one_of_racing_processes_leads_and_stays_the_leader(stores: Stores) -> None:
    leaders = LeaderStore(stores.database)

    def lead(owner: str) -> bool:
        return leaders.lead("race", owner, lease_seconds=60)

    owners = [str(number) for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        first = list(threads.map(lead, owners))
        second = list(threads.map(lead, owners))
    assert first.count(True) == 1
    assert second == first


def test_another_process_leads_once_the_lease_has_ended(stores: Stores) -> None:
    leaders = LeaderStore(stores.database)
    assert leaders.lead("task", "frozen", lease_seconds=0)
    assert leaders.lead("task", "next", lease_seconds=60)
    assert not leaders.lead("task", "frozen", lease_seconds=60)
    assert leaders.lead("other task", "frozen", lease_seconds=60)
