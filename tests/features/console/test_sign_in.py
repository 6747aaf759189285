"""The sign-in: what uses a link up, what its cookie is, what is limited, and where it leads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest

from app.access.tenants.values import TenantChange, TenantState
from app.features.console.values import new_secret
from app.http.credential_cache import ADDRESS_LOOKUPS_MAX
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http import ORDERS, TLS
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for
from tests.support.waiting import until

PAGE = {"Accept": "text/html"}
OPENED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
PUBLIC_URL = "https://lake.example.com"
_numbers = count(1)


@pytest.fixture
def operator_key(service: Service) -> str:
    return service.new_key(f"sign-in-{next(_numbers)}")


@pytest.fixture
def link(service: Service, operator_key: str) -> str:
    with service.client(operator_key) as api:
        return str(api.post("/sign-in-links").json()["url"])


def cookie_of(client: httpx2.Client, key: str) -> tuple[str, str, list[str]]:
    """The name, the value and the attributes of the cookie of a new session."""
    begun = client.post("/console/session", data={"api_key": key})
    assert begun.status_code == 303, begun.text
    pair, *attributes = begun.headers["set-cookie"].split("; ")
    name, _, value = pair.partition("=")
    return name, value, attributes


@pytest.fixture(scope="module")
def behind_proxy(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """A service whose clients come by HTTPS through a proxy that sends it HTTP."""
    with (
        postgres.fresh_database() as name,
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        running_service(
            settings_for(
                postgres.application_url(name),
                postgres.admin_url(name),
                redis.url,
                Path(directory),
                public_url=PUBLIC_URL,
            )
        ) as running,
    ):
        yield running


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "cors"},
        {**OPENED, "Sec-Purpose": "prefetch;prerender"},
        {**OPENED, "Purpose": "prefetch"},
    ],
    ids=str,
)
def test_what_no_reader_has_opened_gets_a_button_and_uses_no_link_up(
    browser: Any, link: str, headers: dict[str, str]
) -> None:
    answer = browser().get(f"{link}&next=/console/datasets", headers=headers)
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    token = link.rpartition("=")[2]
    assert f'name="link" value="{token}"' in answer.text
    reader = browser()
    begun = reader.post("/console/session", data={"link": token, "next": "/console/datasets"})
    assert (begun.status_code, begun.headers["location"]) == (303, "/console/datasets")
    assert reader.get("/console/datasets").status_code == 200
    assert browser().post("/console/session", data={"link": token}).status_code == 401


def test_head_uses_no_link_up(browser: Any, link: str) -> None:
    answer = browser().head(link, headers=OPENED)
    assert (answer.status_code, answer.content) == (200, b"")
    assert "set-cookie" not in answer.headers
    assert browser().get(link, headers=OPENED).status_code == 303


def test_a_form_of_another_site_uses_no_link_up(browser: Any, link: str) -> None:
    data = {"link": link.rpartition("=")[2]}
    refused = browser().post("/console/session", data=data, headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.status_code == 403
    assert browser().post("/console/session", data=data).status_code == 303


@pytest.mark.parametrize("wrong", ["x", "hws_" + "a" * 43, "hws_" + "a" * 44, "\N{SNOWMAN}"])
def test_a_wrong_link_is_refused(browser: Any, wrong: str) -> None:
    answer = browser().post("/console/session", data={"link": wrong})
    assert answer.status_code == 401
    assert "used already" in answer.text
    assert "set-cookie" not in answer.headers


def test_links_that_an_address_guesses_are_limited_as_its_keys_are(
    browser: Any, service: Service, link: str
) -> None:
    lookups = service.api.dependencies["credentials"]._lookups  # type: ignore[attr-defined]
    waiting, lookups.demand = lookups.demand, lambda _: ADDRESS_LOOKUPS_MAX
    try:
        answer = browser().post("/console/session", data={"link": new_secret()})
    finally:
        lookups.demand = waiting
    assert answer.status_code == 429
    assert answer.headers["content-type"].startswith("text/html")
    assert browser().get(link, headers=OPENED).status_code == 303


@pytest.mark.parametrize("target", ["/console/\N{SNOWMAN}", "/console/a\r\nb", "/consoles", "/console//\\x"])
def test_a_target_that_no_header_can_have_leads_to_the_first_page(
    browser: Any, operator_key: str, target: str
) -> None:
    begun = browser().post("/console/session", data={"api_key": operator_key, "next": target})
    assert (begun.status_code, begun.headers["location"]) == (303, "/console")


def test_a_sign_in_ends_the_session_that_the_browser_had(browser: Any, operator_key: str) -> None:
    client, copy = browser(), browser()
    client.post("/console/session", data={"api_key": operator_key})
    copy.cookies.update(client.cookies)
    first = dict(client.cookies)
    assert copy.get("/console/datasets").status_code == 200
    client.post("/console/session", data={"api_key": operator_key})
    assert dict(client.cookies) != first
    assert client.get("/console/datasets").status_code == 200
    until(lambda: copy.get("/console/datasets").status_code == 303, "the end of the session before")


def test_a_session_never_has_a_secret_that_a_client_chose(browser: Any, operator_key: str) -> None:
    client = browser()
    chosen = new_secret()
    name = cookie_of(browser(), operator_key)[0]
    begun = client.post(
        "/console/session", data={"api_key": operator_key}, headers={"Cookie": f"{name}={chosen}"}
    )
    assert begun.status_code == 303
    assert chosen not in begun.headers["set-cookie"]
    assert client.get("/console/datasets", headers={"Cookie": f"{name}={chosen}"}).status_code == 303


def test_a_suspended_tenant_signs_in_and_reads(browser: Any, service: Service) -> None:
    tenant = f"sign-in-suspended-{next(_numbers)}"
    key = service.new_key(tenant)
    with service.client(key) as api:
        assert api.post("/datasets", json=ORDERS).status_code == 201
    service.tenants.change(tenant, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    client = browser()
    assert client.post("/console/session", data={"api_key": key}).status_code == 303
    assert client.get("/console/datasets").status_code == 200


@pytest.mark.parametrize("path", ["/console", "/console/sign-in", "/console/session", "/console/nowhere"])
def test_options_of_the_console_need_no_session(browser: Any, path: str) -> None:
    answer = browser().options(path)
    assert answer.status_code == (404 if path.endswith("nowhere") else 204)
    assert answer.content == b"" or answer.status_code == 404


def test_head_of_a_page_has_its_status_and_no_body(browser: Any, operator_key: str) -> None:
    client = browser()
    assert client.head("/console/datasets").status_code == 303
    client.post("/console/session", data={"api_key": operator_key})
    answer = client.head("/console/datasets")
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_page_counts_as_one_request_of_its_key(browser: Any, service: Service, operator_key: str) -> None:
    with service.client(operator_key) as api:
        made = api.post("/keys", json={"name": "visitor", "scopes": ["read"]}).json()
        client = browser()
        client.post("/console/session", data={"api_key": made["api_key"]})
        sent = sum(len(client.get("/console/datasets").content) for _ in range(3))

        def counted() -> list[dict[str, Any]]:
            items = api.get("/usage", params={"by": "key"}).json()["items"]
            return [each for each in items if each["key_id"] == made["id"]]

        [usage] = until(counted, "the count of the requests", pause_seconds=0.2)
    assert usage["requests"] == 3
    assert usage["egress_bytes"] == sent


def test_a_cookie_is_for_https_where_clients_come_by_https(behind_proxy: Service) -> None:
    key = behind_proxy.new_key("proxied")
    with httpx2.Client(base_url=behind_proxy.url, trust_env=False, verify=TLS, headers=PAGE) as client:
        begun = client.post("/console/session", data={"api_key": key})
        assert "Secure" in begun.headers["set-cookie"]
        origin = {"Origin": PUBLIC_URL}
        assert client.post("/console/session", data={"api_key": key}, headers=origin).status_code == 303
        other = {"Origin": "https://evil.example"}
        assert client.post("/console/session", data={"api_key": key}, headers=other).status_code == 403


def test_a_cookie_of_https_is_one_of_the_host_alone(behind_proxy: Service) -> None:
    key = behind_proxy.new_key("hosted")
    with httpx2.Client(base_url=behind_proxy.url, trust_env=False, verify=TLS, headers=PAGE) as client:
        name, value, attributes = cookie_of(client, key)
        # What browsers require of this prefix.
        assert name.startswith("__Host-")
        assert {"Secure", "Path=/"} <= set(attributes)
        assert not [each for each in attributes if each.startswith("Domain")]
        page = client.get("/console/datasets", headers={"Cookie": f"{name}={value}"})
        assert page.status_code == 200
        # One that another host of the domain could have set.
        other = name.removeprefix("__Host-")
        assert client.get("/console/datasets", headers={"Cookie": f"{other}={value}"}).status_code == 303
        token = page.text.split('name="token" value="')[1].split('"')[0]
        ended = client.post(
            "/console/session/end", data={"token": token}, headers={"Cookie": f"{name}={value}"}
        )
        removed = ended.headers["set-cookie"]
        assert removed.startswith((f'{name}=""', f"{name}=;"))
        assert "Secure" in removed
        assert "Path=/;" in removed + ";"


def test_a_cookie_of_http_is_of_the_console_alone(browser: Any, operator_key: str) -> None:
    name, _, attributes = cookie_of(browser(), operator_key)
    assert name.startswith("headwater_console_")
    assert "Secure" not in attributes
    assert "Path=/console" in attributes


def test_the_form_of_the_sign_in_is_small(browser: Any, operator_key: str) -> None:
    large = {"api_key": operator_key, "next": "/console/" + "x" * 17_000}
    assert browser().post("/console/session", data=large).status_code == 413
    many = {"api_key": operator_key, **{f"f{number}": "" for number in range(1_001)}}
    assert browser().post("/console/session", data=many).status_code == 400


def test_a_link_of_a_stranger_replaces_no_session_unseen(
    browser: Any, service: Service, operator_key: str, link: str
) -> None:
    client = browser()
    assert client.post("/console/session", data={"api_key": operator_key}).status_code == 303
    response = client.get(link, headers=OPENED)
    assert (response.status_code, "set-cookie" in response.headers) == (200, False)
    assert "This link signs you in once" in response.text
    assert browser().get(link, headers=OPENED).status_code == 303


def test_a_sign_in_takes_no_files(browser: Any) -> None:
    parts = {"api_key": ("key.txt", b"hw_")}
    assert browser().post("/console/session", files=parts).status_code == 415


def test_files_of_pages_have_one_address(browser: Any) -> None:
    page = browser().get("/console/sign-in").text
    address = next(each for each in page.split('"') if each.endswith("console.css"))
    assert browser().get(address).status_code == 200
    assert browser().get("/console/static/another/console.css").status_code == 404
