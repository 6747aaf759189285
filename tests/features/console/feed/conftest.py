"""A dataset that two keys have written to, and what its changes look like on a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.support.http import upsert

Write = Callable[..., dict[str, Any]]


@pytest.fixture
def write(client: httpx2.Client, orders: str, service: Any) -> Write:
    """Writes rows of `orders`, or other members of a write, with a client; returns the job, which has succeeded."""

    def run(*rows: dict[str, Any], by: httpx2.Client = client, **members: Any) -> dict[str, Any]:
        response = by.post(f"{orders}/writes", json={**upsert(*rows), **members})
        assert response.status_code == 202, response.text
        service.work()
        job: dict[str, Any] = client.get(response.headers["location"]).json()
        assert job["state"] == "succeeded", job
        return job

    return run


@pytest.fixture
def plant(client: httpx2.Client, service: Any) -> Any:
    """A client with another key of the tenant of `client`, which is named plant."""
    response = client.post("/keys", json={"name": "plant", "scopes": ["read", "write"]})
    assert response.status_code == 201, response.text
    with service.client(response.json()["api_key"]) as other:
        yield other


@pytest.fixture
def story(write: Write, plant: httpx2.Client) -> list[dict[str, Any]]:
    """The jobs of three versions: two rows, a correction by `plant`, a delete.

    The changes are +A 1, +A 2 at offsets 0 and 1, -C 1, +C 1 at 2 and 3, -R 2 at 4.
    """
    return [
        write({"id": 1, "note": "new"}, {"id": 2, "note": "old"}),
        write({"id": 1, "note": "<b>paid</b>"}, by=plant),
        write({"id": 2}, operation="delete"),
    ]
