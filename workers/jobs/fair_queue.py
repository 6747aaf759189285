"""Which dataset is worked on next: fair between tenants, in turn between the datasets of one.

The order between tenants is that of start-time fair queuing. Each tenant has a virtual time: the seconds that its work
took, divided by its weight. The next piece of work is that of the tenant with the least. A tenant that was idle
continues at the least virtual time of those that wait, and comes before them: it neither saves up time nor pays for the
time in which it had no work. So its first piece of work waits for one running piece at most, whatever others have
queued.

The time of a piece is known when it ends. It is charged in advance with the time of the tenant's previous piece, grows
while it runs longer, and is corrected at its end. Counting pieces instead would give more threads to the tenant with
the longer ones.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

Key = tuple[str, str]

# Datasets of one tenant, and of all, that wait in a process. Postgres has the work of the others: a poll finds it.
TENANT_DATASETS_MAX: Final = 1_000
DATASETS_MAX: Final = 100_000
# Tenants whose time is remembered. With more, those without work start again at the present time.
_TENANTS_MAX: Final = 10_000


@dataclass(kw_only=True, slots=True)
class Turn:
    """One piece of work of a dataset, from `pick` to `settle`. Times in seconds."""

    tenant_id: str
    dataset_id: str
    began: float
    charge: float
    """What the tenant has been charged for it."""

    @property
    def key(self) -> Key:
        return self.tenant_id, self.dataset_id


@dataclass(kw_only=True, slots=True)
class _Tenant:
    weight: float
    time: float
    last_pick: int = 0
    """The number of its last pick: of tenants with equal times, the one picked longest ago comes first."""
    last_seconds: float = 0.0
    """What its previous piece of work took."""
    running: int = 0
    ready: dict[str, None] = field(default_factory=dict)
    """Its datasets that wait, the next one first."""


class FairQueue:
    """The datasets that wait for a thread, and the turns that run. Not safe for threads by itself.

    `weight`: the share of a tenant relative to those of others, above zero. `per_dataset_max`: turns of one dataset
    that may run at a time; `per_tenant_max`: those of one tenant.
    """

    def __init__(
        self, *, weight: Callable[[str], float], per_dataset_max: int, per_tenant_max: int = sys.maxsize
    ) -> None:
        self._weight = weight
        self._per_tenant_max = per_tenant_max
        self._per_dataset_max = per_dataset_max
        self._tenants: dict[str, _Tenant] = {}
        self._size = 0
        self._time = 0.0
        self._picks = 0
        # Entries (time, last pick, number of the entry, tenant) of tenants that wait. One whose time or pick is no
        # longer the tenant's does not count.
        self._order: list[tuple[float, int, int, str]] = []
        self._entries = count()
        self._turns: dict[int, Turn] = {}
        self._running: Counter[Key] = Counter()
        # Datasets that were pushed while as many of their turns ran as may.
        self._pushed: set[Key] = set()

    def __len__(self) -> int:
        """How many datasets wait."""
        return self._size

    def push(self, tenant_id: str, dataset_id: str) -> bool:
        """Notes that the dataset may have work, once however often it is called. False if there is no room."""
        key = (tenant_id, dataset_id)
        if self._running[key] >= self._per_dataset_max:
            self._pushed.add(key)
            return True
        tenant = self._tenants.get(tenant_id)
        waiting = len(tenant.ready) if tenant is not None else 0
        if tenant is not None and dataset_id in tenant.ready:
            return True
        # A tenant that waits with nothing yet has room always.
        if waiting >= TENANT_DATASETS_MAX or (waiting and self._size >= DATASETS_MAX):
            return False
        self._put(key)
        return True

    def pick(self, now: float) -> Turn | None:
        """The next turn; None if no dataset waits that may run. `now`: a monotonic clock, in seconds."""
        self._charge_running(now)
        tenant_id = self._first()
        if tenant_id is None:
            return None
        tenant = self._tenants[tenant_id]
        dataset_id = next(iter(tenant.ready))
        del tenant.ready[dataset_id]
        self._size -= 1
        self._time = max(self._time, tenant.time)
        self._picks += 1
        tenant.last_pick = self._picks
        tenant.running += 1
        turn = Turn(tenant_id=tenant_id, dataset_id=dataset_id, began=now, charge=0.0)
        self._turns[id(turn)] = turn
        self._running[turn.key] += 1
        self._charge(turn, tenant.last_seconds)
        return turn

    def settle(self, turn: Turn, now: float, *, again: bool) -> None:
        """Ends a turn. With `again` the dataset may have more work: it waits behind its tenant's others."""
        tenant = self._tenants[turn.tenant_id]
        tenant.last_seconds = max(0.0, now - turn.began)
        tenant.running -= 1
        del self._turns[id(turn)]
        self._running[turn.key] -= 1
        if not self._running[turn.key]:
            del self._running[turn.key]
        self._charge(turn, tenant.last_seconds)
        if (again or turn.key in self._pushed) and turn.dataset_id not in tenant.ready:
            self._put(turn.key)
        self._pushed.discard(turn.key)
        self._remove_idle(turn.tenant_id)

    def _put(self, key: Key) -> None:
        tenant_id, dataset_id = key
        tenant = self._tenants.get(tenant_id)
        if tenant is None:
            tenant = self._tenants[tenant_id] = _Tenant(weight=self._weight(tenant_id), time=0.0)
        if not tenant.ready and not tenant.running:
            tenant.time = max(tenant.time, self._present())
            tenant.weight = self._weight(tenant_id)
        tenant.ready[dataset_id] = None
        self._size += 1
        self._enter(tenant_id)

    def _present(self) -> float:
        """The least virtual time that a tenant that waits may have once the running turns have ended."""
        first = self._first()
        if first is None:
            return self._time
        least = {first: self._tenants[first].time}
        for turn in self._turns.values():
            tenant = self._tenants[turn.tenant_id]
            if tenant.ready:
                time = least.get(turn.tenant_id, tenant.time)
                least[turn.tenant_id] = time - turn.charge / tenant.weight
        return min(least.values())

    def _first(self) -> str | None:
        """The tenant that is next."""
        while self._order:
            if self._counts(self._order[0]):
                return self._order[0][-1]
            heapq.heappop(self._order)
        return None

    def _counts(self, entry: tuple[float, int, int, str]) -> bool:
        time, last_pick, _, tenant_id = entry
        tenant = self._tenants.get(tenant_id)
        if tenant is None or not tenant.ready or tenant.running >= self._per_tenant_max:
            # A tenant that runs as much as it may comes back when one of its turns ends.
            return False
        return (tenant.time, tenant.last_pick) == (time, last_pick)

    def _enter(self, tenant_id: str) -> None:
        """Puts the tenant into the order by its present time, if it waits."""
        if len(self._order) > 2 * len(self._tenants) + 64:
            self._order = sorted(entry for entry in self._order if self._counts(entry))
        tenant = self._tenants[tenant_id]
        if tenant.ready:
            heapq.heappush(self._order, (tenant.time, tenant.last_pick, next(self._entries), tenant_id))

    def _charge_running(self, now: float) -> None:
        """Charges what runs longer than expected."""
        for turn in self._turns.values():
            if now - turn.began > turn.charge:
                self._charge(turn, now - turn.began)

    def _charge(self, turn: Turn, seconds: float) -> None:
        """Makes `seconds` what the tenant has been charged for the turn."""
        tenant = self._tenants[turn.tenant_id]
        tenant.time += (seconds - turn.charge) / tenant.weight
        turn.charge = seconds
        self._enter(turn.tenant_id)

    def _remove_idle(self, tenant_id: str) -> None:
        """Removes a tenant without work that would start at the present time anyway, and all such if there are many."""
        tenant = self._tenants[tenant_id]
        if tenant.ready or tenant.running:
            return
        if tenant.time <= self._present():
            del self._tenants[tenant_id]
        elif len(self._tenants) > _TENANTS_MAX:
            self._tenants = {name: each for name, each in self._tenants.items() if each.ready or each.running}
