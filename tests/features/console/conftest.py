"""Browsers that are signed in, and what pages of the console show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import httpx2
import pytest

from tests.support.http import TLS
from tests.support.service import SCOPES

_ACCEPT = {"Accept": "text/html"}
_numbers = count(1)


@pytest.fixture
def browser(service: Any) -> Iterator[Callable[[], httpx2.Client]]:
    """Makes clients that keep cookies and send no bearer credential."""
    clients: list[httpx2.Client] = []

    def make() -> httpx2.Client:
        clients.append(httpx2.Client(base_url=service.url, trust_env=False, verify=TLS, headers=_ACCEPT))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def sign_in(browser: Callable[[], httpx2.Client]) -> Callable[[str], httpx2.Client]:
    """Makes clients that are signed in with an API key."""

    def run(key: str) -> httpx2.Client:
        client = browser()
        response = client.post("/console/session", data={"api_key": key})
        assert response.status_code == 303, response.text
        return client

    return run


@pytest.fixture
def visitor(service: Any, client: httpx2.Client, sign_in: Callable[[str], httpx2.Client]) -> httpx2.Client:
    """A browser that is signed in to the tenant of `client`, with the same key."""
    return sign_in(client.headers["authorization"].removeprefix("Bearer "))


@pytest.fixture
def restricted(
    client: httpx2.Client, sign_in: Callable[[str], httpx2.Client]
) -> Callable[..., httpx2.Client]:
    """Makes browsers that are signed in with a key of the tenant of `client` that has these grants."""

    def run(*grants: dict[str, Any], scopes: tuple[str, ...] = ("read",)) -> httpx2.Client:
        members = {"name": f"restricted-{next(_numbers)}", "scopes": list(scopes), "grants": list(grants)}
        response = client.post("/keys", json=members)
        assert response.status_code == 201, response.text
        return sign_in(response.json()["api_key"])

    return run


@pytest.fixture
def stranger(service: Any, sign_in: Callable[[str], httpx2.Client]) -> httpx2.Client:
    """A browser that is signed in to a new tenant without datasets."""
    return sign_in(service.new_key(f"console-{next(_numbers)}", SCOPES))
