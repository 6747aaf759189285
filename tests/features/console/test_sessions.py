"""Sessions of the console: how they begin, what protects their forms, how they end."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx2
import pytest

from tests.support.waiting import until

OPENED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
"""What browsers send where their reader has opened an address."""
_numbers = count(1)


@pytest.fixture
def key(service: Any) -> str:
    return str(service.new_key(f"sessions-{next(_numbers)}", ("read", "write", "manage")))


def signed_in(client: httpx2.Client, key: str) -> httpx2.Client:
    answer = client.post("/console/session", data={"api_key": key})
    assert answer.status_code == 303, answer.text
    return client


def form_token(client: httpx2.Client) -> str:
    page = client.get("/console/datasets").text
    return page.split('name="token" value="')[1].split('"')[0]


def test_a_page_without_a_session_leads_to_the_sign_in_and_back(browser: Any, key: str) -> None:
    client = browser()
    answer = client.get("/console/datasets?page_token=x")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/console/sign-in?next=%2Fconsole%2Fdatasets%3Fpage_token%3Dx"
    assert "API key" in client.get(answer.headers["location"]).text
    begun = client.post("/console/session", data={"api_key": key, "next": "/console/datasets"})
    assert (begun.status_code, begun.headers["location"]) == (303, "/console/datasets")
    cookie = begun.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/console" in cookie
    page = client.get("/console/datasets")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]


@pytest.mark.parametrize("wrong", ["", "hw_", "hw_" + "a" * 43, "hws_" + "a" * 43])
def test_what_is_no_api_key_begins_no_session(browser: Any, wrong: str) -> None:
    answer = browser().post("/console/session", data={"api_key": wrong})
    assert answer.status_code == 401
    assert "not a valid API key" in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/console/\\evil", "/datasets", ""]
)
def test_a_sign_in_leads_to_pages_of_the_console_only(browser: Any, key: str, target: str) -> None:
    begun = browser().post("/console/session", data={"api_key": key, "next": target})
    assert begun.headers["location"] == "/console"


def test_a_link_signs_in_once(browser: Any, service: Any, key: str) -> None:
    with service.client(key) as api:
        link = api.post("/sign-in-links").json()["url"]
    first, second = browser(), browser()
    assert first.get(link, headers=OPENED).headers["location"] == "/console"
    assert first.get("/console/datasets").status_code == 200
    again = second.get(link, headers=OPENED)
    assert again.status_code == 401
    assert "used already" in again.text
    assert second.get("/console/datasets").status_code == 303


def test_the_cookie_is_no_credential_of_the_api(browser: Any, key: str) -> None:
    client = signed_in(browser(), key)
    assert client.get("/datasets").status_code == 401
    secret = next(iter(client.cookies.values()))
    assert client.get("/datasets", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert client.get("/datasets", headers={"headwater_inner": secret}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_forms_of_other_sites_are_refused(browser: Any, key: str, headers: dict[str, str]) -> None:
    assert browser().post("/console/session", data={"api_key": key}, headers=headers).status_code == 403
    client = signed_in(browser(), key)
    token = form_token(client)
    assert client.post("/console/session/end", data={"token": token}, headers=headers).status_code == 403
    assert client.get("/console/datasets").status_code == 200


def test_a_form_needs_the_token_of_its_session(browser: Any, key: str) -> None:
    client, other = signed_in(browser(), key), signed_in(browser(), key)
    for token in ("", "0" * 64, form_token(other)):
        assert client.post("/console/session/end", data={"token": token}).status_code == 403
    assert client.get("/console/datasets").status_code == 200


def test_a_sign_out_ends_the_session_everywhere(browser: Any, key: str) -> None:
    client, copy = signed_in(browser(), key), browser()
    copy.cookies.update(client.cookies)
    assert copy.get("/console/datasets").status_code == 200
    ended = client.post("/console/session/end", data={"token": form_token(client)})
    assert (ended.status_code, ended.headers["location"]) == (303, "/console/sign-in")
    until(lambda: copy.get("/console/datasets").status_code == 303, "the end of the session")
    assert signed_in(client, key).get("/console/datasets").status_code == 200


def test_a_session_ends_with_its_key(browser: Any, service: Any) -> None:
    key = service.new_key("console-revoked", ("read", "manage"))
    with service.client(key) as api:
        made = api.post("/keys", json={"name": "short", "scopes": ["read"]}).json()
        client = signed_in(browser(), made["api_key"])
        assert client.get("/console/datasets").status_code == 200
        assert api.delete(f"/keys/{made['id']}").status_code == 204
    until(lambda: client.get("/console/datasets").status_code == 303, "the end of the session")


def test_a_script_gets_problems_as_json(browser: Any) -> None:
    answer = browser().get("/console/datasets", headers={"Accept": "application/json"})
    assert answer.status_code == 401
    assert answer.json()["type"] == "/problems/unauthorized"


@pytest.mark.parametrize(
    "path", ["datasets/none/write", "jobs/none/cancel", "exports/none/runs", "webhooks/none/test"]
)
def test_forms_of_what_is_not_there_show_the_problem(browser: Any, key: str, path: str) -> None:
    client = signed_in(browser(), key)
    response = client.post(f"/console/{path}", data={"token": form_token(client)})
    assert response.status_code in (400, 404), response.text


def test_forms_of_a_key_without_the_scope_show_the_problem(browser: Any, service: Any) -> None:
    client = signed_in(browser(), str(service.new_key(f"sessions-{next(_numbers)}", ("read",))))
    for path in ("keys", "tenants", "service/reap"):
        response = client.post(f"/console/{path}", data={"token": form_token(client)})
        assert response.status_code == 403, (path, response.text)
        assert "scope" in response.text
