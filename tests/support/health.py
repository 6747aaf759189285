"""What an operator sees of a service's health, and waiting for its workers."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.support.waiting import until


def service_checks(client: httpx2.Client) -> dict[str, dict[str, Any]]:
    """The checks of `GET /health/service` by name; none while the service does not answer. `client`: an operator's."""
    try:
        answer = client.get("/health/service")
    except httpx2.TransportError:
        return {}
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return {}
    return answer.json()["checks"]


def wait_for_worker(client: httpx2.Client, *, seconds_max: float = 120) -> None:
    """Returns once a worker is alive. `client`: an operator's."""
    until(lambda: service_checks(client).get("workers", {}).get("ok"), "a worker", seconds_max=seconds_max)
