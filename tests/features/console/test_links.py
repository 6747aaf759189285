"""Links lead where the reader may go: whatever the key of the session may do, none is refused or leads nowhere."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import parse_qs, urldefrag, urljoin, urlsplit

import httpx2
import pytest

from app.infra.runtime.valkey import EmbeddedValkey
from app.kernel.format.identifiers import is_uuid
from tests.support.console_tenant import ConsoleTenant, populated
from tests.support.pages import checked_page
from tests.support.postgres import TestServer
from tests.support.receiver import receiving
from tests.support.service import Service, running_service, settings_for
from tests.support.shares import share

# Pages that differ in the values of their options only are alike.
_ALIKE_MAX: Final = 1
_PAGES_MAX: Final = 600
_PART: Final = (
    {"datasets": "readings", "where": "area = 'press'", "mask": ["unit"]},
    {"datasets": "orders", "where": "customer = 'acme'"},
)
KEYS: Final[Mapping[str, dict[str, Any]]] = {
    "all": {"scopes": ["read", "write", "manage"]},
    "reader": {"scopes": ["read"]},
    "writer": {"scopes": ["read", "write"]},
    "administrator who reads nothing": {"scopes": ["manage"]},
    "reader of some datasets": {
        "scopes": ["read"],
        "grants": [{"datasets": "orders"}, {"datasets": "cust*"}],
    },
    "reader of parts": {"scopes": ["read"], "grants": list(_PART)},
    "manager of some datasets": {
        "scopes": ["read", "write", "manage"],
        "grants": [{"datasets": "orders"}, {"datasets": "readings", "scopes": ["read"]}],
    },
    "writer who reads parts": {
        "scopes": ["read", "write"],
        "grants": [{"datasets": "orders"}, {**_PART[0], "scopes": ["read"]}],
    },
    "reader of nothing": {"scopes": ["read"], "grants": [{"datasets": "absent"}]},
    "writer who reads nothing": {"scopes": ["write"]},
}


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """A service of these tests alone: their tenant has a worker that is registered and does not exist."""
    with (
        postgres.fresh_database() as name,
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        running_service(
            settings_for(postgres.application_url(name), postgres.admin_url(name), redis.url, Path(directory))
        ) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def tenant(service: Service) -> Iterator[ConsoleTenant]:
    with receiving() as receiver:
        yield populated(service, "links", receiver)


def _links(address: str, response: httpx2.Response) -> Iterator[str]:
    """The addresses of this service to which a page leads."""
    if "text/html" not in response.headers.get("content-type", ""):
        return
    for each in checked_page(response).all("a"):
        target = urldefrag(urljoin(address, each.attributes.get("href", ""))).url
        if target.startswith("/"):
            yield target


def _kind(address: str) -> tuple[Any, ...]:
    """What pages have in common that are alike: the words of the path, and the names of the options."""
    parts = urlsplit(address)
    words = tuple("id" if is_uuid(each) else each for each in parts.path.split("/"))
    return (*words, *sorted(parse_qs(parts.query)))


def refused(visitor: httpx2.Client) -> list[str]:
    """The pages that are refused or not there, with the page that leads to each. Loads all that the first leads to."""
    faults = []
    waiting = deque([("the sign-in", "/console")])
    seen = {"/console"}
    alike: Counter[tuple[Any, ...]] = Counter()
    while waiting:
        before, address = waiting.popleft()
        response = visitor.get(address)
        if response.status_code >= 400:
            faults.append(f"{before} leads to {address}: {response.status_code}")
            continue
        if response.status_code == 303:
            waiting.append((before, response.headers["location"]))
            continue
        for link in _links(address, response):
            kind = _kind(link)
            if link not in seen and alike[kind] < _ALIKE_MAX:
                seen.add(link)
                alike[kind] += 1
                waiting.append((address, link))
        assert len(seen) < _PAGES_MAX, "more pages than expected"
    return faults


@share(5)
@pytest.mark.parametrize("key", KEYS)
def test_no_link_is_refused(
    service: Service, tenant: ConsoleTenant, sign_in: Callable[[str], httpx2.Client], key: str
) -> None:
    with service.client(tenant.api_key) as client:
        made = client.post("/keys", json={"name": key, **KEYS[key]})
    assert made.status_code == 201, made.text
    assert refused(sign_in(made.json()["api_key"])) == []


def test_no_link_of_an_operator_is_refused(
    service: Service, tenant: ConsoleTenant, sign_in: Callable[[str], httpx2.Client]
) -> None:
    assert refused(sign_in(service.new_key("links-operator", ("operate",)))) == []


def test_no_link_of_a_tenant_without_anything_is_refused(stranger: httpx2.Client) -> None:
    assert refused(stranger) == []
