"""Polls of the head of a dataset, for requests that wait for changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from app.catalog.values import Dataset
from app.http.limits.threads import Threads
from app.http.waiting.shared_polls import SharedPolls
from app.http.waiting.subscriptions import Subscriptions

HeadPolls: TypeAlias = SharedPolls[int, Dataset]
"""Polls for changes at or after a position. The result is the dataset, with its head after the position."""


def head_polls(
    subscriptions: Subscriptions, threads: Threads, get: Callable[[str, str], Dataset]
) -> HeadPolls:
    """`get` returns a live dataset by tenant and id, and raises NotFound."""

    async def fetch(tenant_id: str, dataset_id: str, positions: Sequence[int]) -> list[Dataset | None]:
        dataset = await threads.run(get, tenant_id, dataset_id)
        return [dataset if dataset.next_offset > position else None for position in positions]

    return SharedPolls(subscriptions, fetch)
