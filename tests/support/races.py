"""Real races: while a worker merges a write, another one is accepted and committed by a second worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import msgspec

from app.kernel.commit.merge_bundle import MergeBundle
from tests.support.service import Service


class OvertakenEngine:
    """An engine during whose first merges something else happens."""

    def __init__(self, engine: Any, happens: Callable[[], None], times: int) -> None:
        self._engine = engine
        self._happens = [happens] * times

    def run(self, tasks: Sequence[Any], tag: str) -> list[Any]:
        results: list[Any] = self._engine.run(tasks, tag)
        if self._happens and isinstance(tasks[0], MergeBundle):
            self._happens.pop()()
        return results

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def overtaken(
    service: Service, send: Callable[[], httpx2.Response], *, times: int = 1, replans_max: int | None = None
) -> None:
    """Runs the write of the newest dataset that waits, while others are sent and committed, one during each of its
    first `times` merges.

    `replans_max`: how often the waiting write may be planned again; None for the default.
    """
    # Other tests may have left writes; the ids of datasets grow.
    waiting = max(service.jobs.runnable(1_000), key=lambda each: each.dataset_id)
    two = msgspec.structs.replace(service.run_writes.rules, dataset_writers_max=2)

    def happens() -> None:
        answer = send()
        assert answer.status_code == 202, answer.text
        dataset_id = service.platform.stores.jobs.get(waiting.tenant_id, answer.json()["id"]).dataset_id
        other = dataclasses.replace(service.run_writes, owner="other", rules=two)
        assert other.run(waiting.tenant_id, dataset_id) is not None

    slow = dataclasses.replace(
        service.run_writes,
        engine=OvertakenEngine(service.run_writes.engine, happens, times),
        rules=two,
        replans_max=service.run_writes.replans_max if replans_max is None else replans_max,
    )
    slow.run(waiting.tenant_id, waiting.dataset_id)
