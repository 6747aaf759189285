"""Names of Spark's scheduling pools."""

from __future__ import annotations

from contextlib import ExitStack

from app.kernel.format.engine_task import Work
from workers.engine.pools import FairPools


def test_each_tenant_has_a_pool_of_its_own_for_each_kind_of_work() -> None:
    pools = FairPools()
    with ExitStack() as stack:
        names = [
            stack.enter_context(pools.pool(work, tenant))
            for work in Work
            for tenant in ("first", "second", "first")
        ]
    assert names == [
        name for work in ("writes", "derived", "tasks") for name in (f"{work}-0", f"{work}-1", f"{work}-0")
    ]


def test_there_are_no_more_pools_than_tenants_at_work() -> None:
    pools = FairPools()
    names = set()
    for number in range(1_000):
        with (
            pools.pool(Work.WRITES, f"one-{number}") as one,
            pools.pool(Work.WRITES, f"other-{number}") as other,
        ):
            assert one != other
            names |= {one, other}
    assert names == {"writes-0", "writes-1"}
