"""Sign-ins in the audit: who has signed in, and what was refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from app.access.tenants.values import new_api_key
from app.infra.identifiers import new_id
from tests.support.service import SCOPES, Service

NewBrowser = Callable[[], httpx2.Client]


@pytest.fixture
def key(service: Service) -> Any:
    """A key of a new tenant, with its id."""
    return service.tenants.make_key(
        service.tenants.add_tenant(f"signs-in-{new_id()}"), SCOPES, name="morning"
    )


@pytest.fixture
def sign_ins(service: Service, key: Any) -> Callable[..., list[dict[str, Any]]]:
    """Reads the entries of sign-ins, the newest first."""

    def read(**query: str) -> list[dict[str, Any]]:
        service.api.counts.flush(everything=True)
        with service.client(key.api_key) as client:
            answer = client.get("/audit", params={"operation": "sign_in", **query})
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    return read


def test_a_sign_in_is_an_entry_of_its_key(
    browser: NewBrowser, key: Any, sign_ins: Callable[..., list[dict[str, Any]]]
) -> None:
    visitor = browser()
    assert visitor.get("/console/sign-in").status_code == 200
    assert visitor.post("/console/session", data={"api_key": key.api_key}).status_code == 303
    [entry] = sign_ins(key=key.key_id)
    expected = {"key_id": key.key_id, "key_name": "morning", "via": "console", "address": "127.0.0.1"}
    assert entry.items() >= expected.items()
    assert (entry["outcome"], entry["status"]) == ("allowed", 303)
    assert (entry["method"], entry["path"]) == ("POST", "/console/session")


def test_a_link_signs_in_as_its_key_and_no_second_time(
    browser: NewBrowser, service: Service, key: Any, sign_ins: Callable[..., list[dict[str, Any]]]
) -> None:
    with service.client(key.api_key) as client:
        link = client.post("/sign-in-links").json()["url"].partition("link=")[2]
    assert browser().post("/console/session", data={"link": link}).status_code == 303
    [entry] = sign_ins(key=key.key_id)
    assert (entry["outcome"], entry["key_name"]) == ("allowed", "morning")
    assert browser().post("/console/session", data={"link": link}).status_code == 401
    assert [each["status"] for each in sign_ins(key=key.key_id)] == [303]
    assert 401 in [each["status"] for each in sign_ins(outcome="denied")]


def test_a_revoked_key_is_refused_in_the_audit_of_its_tenant(
    browser: NewBrowser, service: Service, key: Any, sign_ins: Callable[..., list[dict[str, Any]]]
) -> None:
    with service.client(key.api_key) as client:
        old = client.post("/keys", json={"name": "old", "scopes": ["read"]}).json()
        assert client.delete(f"/keys/{old['id']}").is_success
    assert browser().post("/console/session", data={"api_key": old["api_key"]}).status_code == 401
    [entry] = sign_ins(key=old["id"])
    assert (entry["outcome"], entry["status"], entry["key_name"]) == ("denied", 401, "old")
    assert entry["address"] == "127.0.0.1"


def test_what_is_no_key_is_counted_for_operators(
    browser: NewBrowser, key: Any, sign_ins: Callable[..., list[dict[str, Any]]]
) -> None:
    for text in (new_api_key(), "no key", ""):
        assert browser().post("/console/session", data={"api_key": text}).status_code == 401
    denied = [each for each in sign_ins(outcome="denied") if each["key_id"] is None]
    assert sum(each["count"] for each in denied) >= 3
    assert {each["via"] for each in denied} == {"console"}
    assert key.api_key not in str(denied)
