"""Links lead where the reader may go: whatever the key of the session may do, none is refused or leads nowhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urldefrag, urljoin, urlsplit

import httpx2
import pytest

from app.infra.runtime.valkey import EmbeddedValkey
from app.kernel.format.identifiers import is_uuid
from tests.support.console_tenant import ConsoleTenant, populated
from tests.support.pages import PageElement, checked_page
from tests.support.postgres import TestServer
from tests.support.receiver import receiving
from tests.support.server_fixtures import fresh_service
from tests.support.service import Service
from tests.support.shares import share

_PAGES_MAX: Final = 300
_ALIKE: Final = dict.fromkeys(("orders", "readings", "alarms"), "of a dataset")
"""Datasets that a key without grants sees alike."""
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
    with fresh_service(postgres, redis) as running:
        yield running


@pytest.fixture(scope="module")
def tenant(service: Service) -> Iterator[ConsoleTenant]:
    with receiving() as receiver:
        yield populated(service, "links", receiver)


def _links(address: str, root: PageElement) -> Iterator[tuple[str, bool]]:
    """The addresses of this service to which a page leads, and whether each states a range of time of its own."""
    for each in root.all("a"):
        target = urldefrag(urljoin(address, each.attributes.get("href", ""))).url
        if target.startswith("/"):
            yield target, "data-range" in each.attributes


def _is_page(address: str) -> bool:
    """Whether it is a page of the console."""
    return urlsplit(address).path.split("/")[1] == "console"


def _has_range(address: str) -> bool:
    return "range" in parse_qs(urlsplit(address).query)


def _kind(address: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """What pages have in common that are alike: the words of the path, and the names of the options."""
    parts = urlsplit(address)
    words = ["id" if is_uuid(each) else each for each in parts.path.split("/")]
    if words[1:2] == ["problems"] or words[1:3] == ["console", "reference"]:
        words[-1] = "of a kind"
    return (*(names.get(each, each) for each in words), *sorted(parse_qs(parts.query)))


def faults(visitor: httpx2.Client, start: str, names: Mapping[str, str]) -> list[str]:
    """What is wrong with the pages to which the first one leads: those that are refused or not there, with the page
    that leads to each, and links that lose the range of time. `names`: datasets that are alike, by their names.
    """
    found = []
    waiting = deque([("the sign-in", start)])
    kinds = {_kind(start, names)}
    while waiting:
        before, address = waiting.popleft()
        response = visitor.get(address)
        if response.status_code >= 400:
            found.append(f"{before} leads to {address}: {response.status_code}")
            continue
        if response.status_code == 303:
            waiting.append((before, response.headers["location"]))
            continue
        if "text/html" not in response.headers.get("content-type", ""):
            continue
        for link, states_range in _links(address, checked_page(response)):
            if _has_range(address) and not states_range and not _has_range(link) and _is_page(link):
                found.append(f"{address} has a link without the range of time: {link}")
            elif not states_range and (kind := _kind(link, names)) not in kinds:
                kinds.add(kind)
                waiting.append((address, link))
        assert len(kinds) < _PAGES_MAX, "more pages than expected"
    return found


@pytest.mark.parametrize("key", [pytest.param(key, marks=share(8) if key != "all" else ()) for key in KEYS])
def test_no_link_is_refused(
    service: Service, tenant: ConsoleTenant, sign_in: Callable[[str], httpx2.Client], key: str
) -> None:
    with service.client(tenant.api_key) as client:
        made = client.post("/keys", json={"name": key, **KEYS[key]})
    assert made.status_code == 201, made.text
    names = {} if "grants" in KEYS[key] else _ALIKE
    start = "/console?range=7d" if key == "all" else "/console"
    assert faults(sign_in(made.json()["api_key"]), start, names) == []


def test_no_link_of_an_operator_is_refused(
    service: Service, tenant: ConsoleTenant, sign_in: Callable[[str], httpx2.Client]
) -> None:
    assert faults(sign_in(service.new_key("links-operator", ("operate",))), "/console", {}) == []


def test_no_link_of_a_tenant_without_anything_is_refused(stranger: httpx2.Client) -> None:
    assert faults(stranger, "/console", {}) == []
