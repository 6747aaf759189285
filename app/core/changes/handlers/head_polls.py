"""Polls of the head of a dataset, for requests that wait for changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from app.access.errors import NotFound
from app.core.catalog.values import AwaitedHead, Dataset
from app.http.limits.threads import Threads
from app.http.waiting.shared_polls import SharedPolls
from app.http.waiting.subscriptions import Subscriptions
from app.infra.sharing.next_flight import NextFlight

HeadPolls: TypeAlias = SharedPolls[int, Dataset]
"""Polls for changes at or after a position. The result is the dataset, with its head after the position."""


FindHeads: TypeAlias = Callable[[str, Sequence[AwaitedHead]], Mapping[str, Dataset | None]]
"""Called in a thread. Returns the live ones of a tenant's datasets by id; None for one whose head has not moved."""


def head_polls(subscriptions: Subscriptions, threads: Threads, find: FindHeads) -> HeadPolls:
    """The polls of all datasets."""
    # Those that are polled by the clock are polled together. No notification waits for another.
    finds = NextFlight[str, AwaitedHead, Mapping[str, Dataset | None]](
        lambda tenant_id, heads: threads.run_for(tenant_id, find, tenant_id, heads), gather_seconds=0.0
    )

    async def fetch(tenant_id: str, dataset_id: str, positions: Sequence[int]) -> list[Dataset | None]:
        datasets = await finds.join(tenant_id, [AwaitedHead(dataset_id, min(positions))])
        if dataset_id not in datasets:
            raise NotFound(f"there is no dataset {dataset_id!r}")
        dataset = datasets[dataset_id]
        return [
            dataset if dataset is not None and dataset.next_offset > position else None
            for position in positions
        ]

    return SharedPolls(subscriptions, fetch)
