"""Many requests of one tenant: those of another one get threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from app.features.iceberg.api import PLAN_THREADS_TENANT_MAX, TABLE_THREADS_TENANT_MAX
from app.features.iceberg.service.loaded_tables import LoadedTables
from app.features.iceberg.service.plans import PlanScans
from app.features.objects.ports import ServedTable
from tests.features.iceberg.handlers.test_catalogue import TABLES, Tenant
from tests.support.service import Service
from tests.support.waiting import until

REQUESTS = 50


def load(client: httpx2.Client) -> httpx2.Response:
    return client.get(f"{TABLES}/orders")


def plan(client: httpx2.Client) -> httpx2.Response:
    return client.post(f"{TABLES}/orders/plan", json={})


@pytest.mark.parametrize(
    ("owner", "method", "request_of", "most"),
    [
        (LoadedTables, "load", load, TABLE_THREADS_TENANT_MAX),
        (PlanScans, "plan", plan, PLAN_THREADS_TENANT_MAX),
    ],
)
def test_flood_of_a_tenant_leaves_threads_to_others(
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    method: str,
    request_of: Callable[[httpx2.Client], httpx2.Response],
    most: int,
) -> None:
    many, other = Tenant(service), Tenant(service)
    for each in (many, other):
        each.add("orders")
    original = getattr(owner, method)
    gate, running, peak = threading.Event(), list[str](), list[int]()

    def slow(self: Any, table: ServedTable, *rest: Any) -> Any:
        if table.dataset.tenant_id == many.id:
            running.append(table.dataset.id)
            peak.append(len(running))
            assert gate.wait(60)
            running.pop()
        return original(self, table, *rest)

    monkeypatch.setattr(owner, method, slow)
    with many.client() as flooding, other.client() as client, ThreadPoolExecutor(REQUESTS) as pool:
        answers: list[Future[httpx2.Response]] = [pool.submit(request_of, flooding) for _ in range(REQUESTS)]
        try:
            until(lambda: len(running) == most, "the threads of the tenant")
            for _ in range(5):
                assert request_of(client).status_code == 200
            # Other requests of the process have threads of their own.
            assert client.get("/datasets").status_code == 200
            assert len(running) == most
        finally:
            gate.set()
        assert {each.result().status_code for each in answers} == {200}
    assert max(peak) == most
