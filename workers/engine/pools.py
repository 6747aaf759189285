"""Pools of Spark's fair scheduler: one for each kind of work of each tenant that runs now.

Spark divides its cores equally between pools with tasks, and never deletes a pool. So pools are numbered, and a number
is used again when the work of its tenant has ended: there are as many pools as threads at most, however many tenants
there are.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.kernel.format.engine_task import Work


@dataclass(kw_only=True, slots=True)
class _Pool:
    number: int
    users: int = 0


class FairPools:
    """Names of the pools in use. Safe to use from any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: defaultdict[Work, dict[str, _Pool]] = defaultdict(dict)

    @contextmanager
    def pool(self, work: Work, tenant_id: str) -> Iterator[str]:
        """The name of the pool of the tenant's work of this kind, until the end."""
        with self._lock:
            pools = self._used[work]
            if tenant_id not in pools:
                numbers = {pool.number for pool in pools.values()}
                free = next(number for number in range(len(pools) + 1) if number not in numbers)
                pools[tenant_id] = _Pool(number=free)
            own_pool = pools[tenant_id]
            own_pool.users += 1
        try:
            yield f"{work.value}-{own_pool.number}"
        finally:
            with self._lock:
                own_pool.users -= 1
                if not own_pool.users:
                    del pools[tenant_id]
