"""Sign-in to the console at an OpenID Connect issuer: the way there and back, and all that may go wrong on it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from app.infra.identifiers import new_id
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http import TLS
from tests.support.issuer import LocalIssuer, running_issuer
from tests.support.pages import PageElement, checked_page, page
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for
from tests.support.waiting import until

CLIENT = "headwater-console"
SECRET = "s3cret/with:signs"
LABEL = "Sign in at <Acme>"


@pytest.fixture(scope="module")
def issuers() -> Iterator[tuple[LocalIssuer, LocalIssuer, LocalIssuer]]:
    """One with a public client, one whose client has a secret, and one without a client."""
    with ExitStack() as stack:
        public, secret, other = (stack.enter_context(running_issuer()) for _ in range(3))
        yield public, secret, other


@pytest.fixture(scope="module")
def service(
    postgres: TestServer, redis: EmbeddedValkey, issuers: tuple[LocalIssuer, LocalIssuer, LocalIssuer]
) -> Iterator[Service]:
    public, secret, other = issuers
    entries = [
        public.entry(client_id=CLIENT, label=LABEL),
        secret.entry(client_id=CLIENT, client_secret=SECRET, sign_in_scopes=["openid", "headwater"]),
        other.entry(),
    ]
    with (
        postgres.fresh_database() as name,
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        running_service(
            settings_for(
                postgres.application_url(name),
                postgres.admin_url(name),
                redis.url,
                Path(directory),
                oidc_issuers=json.dumps(entries),
            )
        ) as running,
    ):
        yield running


@pytest.fixture
def issuer(issuers: tuple[LocalIssuer, LocalIssuer, LocalIssuer], tenant: str) -> LocalIssuer:
    """The first of them, whose tokens name the tenant."""
    public = issuers[0]
    public.access_claims = {"tenant": tenant, "scope": "read write"}
    public.identity_claims, public.reply = {}, None
    return public


@pytest.fixture
def tenant(service: Service) -> str:
    name = f"acme-{new_id()[-12:]}-x"
    service.tenants.add_tenant(name)
    return name


def button(client: httpx2.Client, text: str, target: str = "") -> str:
    query = f"?next={target}" if target else ""
    return page(client, f"/console/sign-in{query}").link(text)


def sent_to(client: httpx2.Client, target: str = "", text: str = LABEL) -> str:
    """The address at the issuer to which the button leads."""
    begun = client.get(button(client, text, target))
    assert begun.status_code == 303, begun.text
    return begun.headers["location"]


def back_from(address: str) -> str:
    """The path and query to which the issuer sends the browser back."""
    with httpx2.Client(trust_env=False, verify=TLS) as client:
        parts = urlsplit(client.get(address).headers["location"])
    return f"{parts.path}?{parts.query}"


def refused(client: httpx2.Client, path: str, status: int = 401) -> PageElement:
    """The page of the sign-in that a refused way back gets. No session begins."""
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    root = checked_page(answer)
    assert client.get("/console/datasets").status_code == 303
    return root


def test_person_signs_in_with_what_the_claims_give(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, tenant: str
) -> None:
    client = browser()
    address = sent_to(client, "/console/datasets")
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert address.startswith(f"{issuer.url}/authorize?")
    assert (query["client_id"], query["scope"]) == (CLIENT, "openid")
    [cookie] = [each for each in client.cookies.jar if each.name.endswith("_oidc")]
    assert cookie.path == "/console/oidc"
    back = back_from(address)
    ended = client.get(back)
    assert (ended.status_code, ended.headers["location"]) == (303, "/console/datasets")
    assert not [each for each in client.cookies.jar if each.name.endswith("_oidc")]
    root = page(client, "/console/datasets")
    assert tenant in root.text
    assert "Signed in as ada" in root.text
    assert "read, write" in root.text
    assert page(client, "/console/keys", 403)
    # A reload of the way back signs in no one.
    assert refused_again(browser(), back)


def refused_again(client: httpx2.Client, back: str) -> bool:
    return "begin again" in refused(client, back).text


def test_sign_in_is_in_the_audit_as_its_person(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, service: Service
) -> None:
    issuer.access_claims["scope"] = "read manage"
    client = browser()
    back = back_from(sent_to(client))
    assert client.get(back).status_code == 303
    assert refused_again(browser(), back)
    service.api.counts.flush(everything=True)
    rows = page(client, "/console/audit?operation=sign_in").one("table").rows()[1:]
    assert ["ada" in row[1] and "303" in row[4] for row in rows] == [True]


def test_client_with_a_secret_sends_it(
    browser: Callable[[], httpx2.Client], issuers: tuple[LocalIssuer, ...], tenant: str
) -> None:
    secret = issuers[1]
    secret.access_claims = {"tenant": tenant}
    # As RFC 6749 has it in HTTP Basic.
    secret.client_secret = "s3cret%2Fwith%3Asigns"
    client = browser()
    address = sent_to(client, text=urlsplit(secret.url).netloc)
    assert parse_qs(urlsplit(address).query)["scope"] == ["openid headwater"]
    assert client.get(back_from(address)).headers["location"] == "/console"
    assert client.get("/console/datasets").status_code == 200
    secret.client_secret = "another"
    client = browser()
    text = refused(client, back_from(sent_to(client, text=urlsplit(secret.url).netloc))).text
    assert "refuses the sign-in: invalid_client" in text


def test_only_issuers_with_a_client_have_a_button(
    browser: Callable[[], httpx2.Client], issuers: tuple[LocalIssuer, ...]
) -> None:
    client = browser()
    root = page(client, "/console/sign-in")
    assert [each.text for each in root.all("a") if "/console/oidc/" in each.attributes["href"]] == [
        LABEL,
        urlsplit(issuers[1].url).netloc,
    ]
    assert client.get("/console/oidc/nothing/begin").status_code == 404


@pytest.mark.parametrize("state", ["", "x", "\N{SNOWMAN}"])
def test_wrong_state_begins_no_session(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, state: str
) -> None:
    client = browser()
    code = parse_qs(urlsplit(back_from(sent_to(client))).query)["code"][0]
    wrong = str(httpx2.URL("/console/oidc/callback", params={"code": code, "state": state}))
    assert "another browser" in refused(client, wrong).text
    assert issuer.reply is None


def test_way_back_of_another_browser_begins_no_session(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer
) -> None:
    attacker, victim = browser(), browser()
    back = back_from(sent_to(attacker))
    assert "another browser" in refused(victim, back).text
    sent_to(victim)
    assert "another browser" in refused(victim, back).text
    assert attacker.get(back).status_code == 303


def test_code_is_used_once(browser: Callable[[], httpx2.Client], issuer: LocalIssuer) -> None:
    first, second = browser(), browser()
    back = back_from(sent_to(first))
    second.cookies.update(first.cookies)
    assert first.get(back).headers["location"] == "/console"
    assert "refuses the sign-in: invalid_grant" in refused(second, back).text


def test_head_uses_no_code_up(browser: Callable[[], httpx2.Client], issuer: LocalIssuer) -> None:
    client = browser()
    back = back_from(sent_to(client))
    assert client.head(back).content == b""
    assert client.get(back).status_code == 303


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        ({"nonce": "other"}, "belongs to another sign-in"),
        ({"nonce": None}, "nonce"),
        ({"aud": "another"}, "Audience"),
        ({"aud": [CLIENT, "another"]}, "another client"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "another client"),
        ({"sub": "eve"}, "tokens of different people"),
        ({"exp": 1}, "expired"),
        ({"iss": "https://evil.example"}, "issuer of the token is not accepted"),
    ],
    ids=str,
)
def test_id_token_of_something_else_is_refused(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, identity: dict[str, Any], words: str
) -> None:
    issuer.identity_claims = identity
    client = browser()
    assert words in refused(client, back_from(sent_to(client))).text


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ({"aud": "another"}, "meant for another audience"),
        ({"tenant": "no-such-tenant"}, "tenant of the token does not exist"),
        ({"exp": 1}, "token has expired"),
        ({"exp": int(time.time()) + 10**6}, "valid for more than"),
        ({"tenant": None}, "is not a tenant"),
    ],
    ids=["audience", "tenant", "expired", "lasting", "no-tenant"],
)
def test_access_token_that_the_api_refuses_begins_no_session(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, access: dict[str, Any], words: str
) -> None:
    issuer.access_claims |= access
    client = browser()
    assert words in refused(client, back_from(sent_to(client))).text


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"error": "server_error", "error_description": "<script>"}, "gives no access token"),
        ({"access_token": "opaque"}, "gives no access token and ID token"),
        ({"access_token": "opaque", "id_token": "x"}, "well-formed token"),
    ],
    ids=str,
)
def test_reply_without_tokens_is_named(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, reply: dict[str, Any], words: str
) -> None:
    issuer.reply = reply
    client = browser()
    assert words in refused(client, back_from(sent_to(client))).text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"error": "access_denied"}, "was cancelled or refused"),
        ({"error": "<b>odd</b>", "error_description": "x"}, "refuses the sign-in: <b>odd</b>"),
        ({}, "has sent no code"),
        ({"code": "x" * 5_000}, "has sent no code"),
        ({"code": "x", "iss": "https://evil.example"}, "begin again"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_of_the_issuer_become_a_page(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, query: dict[str, str], words: str
) -> None:
    client = browser()
    state = parse_qs(urlsplit(sent_to(client)).query)["state"][0]
    back = str(httpx2.URL("/console/oidc/callback", params={"state": state, **query}))
    assert words in refused(client, back).text


def test_sign_ins_that_wait_are_limited_by_address(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, service: Service
) -> None:
    client = browser()
    back = back_from(sent_to(client))
    turns = service.api.dependencies["sign_ins"]._turns  # type: ignore[attr-defined]
    waiting, turns.demand = turns.demand, lambda _: 10
    try:
        assert "too many people" in checked_page(client.get(button(client, LABEL))).text.lower()
        assert "too many people" in refused(client, back).text.lower()
    finally:
        turns.demand = waiting
    assert client.get(back_from(sent_to(client))).status_code == 303


def test_token_reaches_its_own_tenant_only(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer, service: Service, tenant: str
) -> None:
    other = f"other-{new_id()[-12:]}-x"
    service.tenants.add_tenant(other)
    issuer.access_claims["tenant"] = other
    client = browser()
    client.get(back_from(sent_to(client)))
    root = page(client, "/console/datasets")
    assert other in root.text
    assert tenant not in root.text


def test_session_ends_with_its_token(browser: Callable[[], httpx2.Client], issuer: LocalIssuer) -> None:
    issuer.access_claims["exp"] = int(time.time()) + 3
    client = browser()
    ended = client.get(back_from(sent_to(client)))
    assert ended.status_code == 303
    [cookie] = [each for each in ended.headers.get_list("set-cookie") if "_oidc" not in each]
    assert int(cookie.split("Max-Age=")[1].split(";")[0]) <= 3
    name, value = cookie.split(";")[0].split("=", 1)
    kept = {"Cookie": f"{name}={value}"}
    until(lambda: client.get("/console/datasets", headers=kept).status_code == 303, "the end of the session")


def test_session_lasts_longer_than_a_check_of_its_token(
    browser: Callable[[], httpx2.Client], issuer: LocalIssuer
) -> None:
    client = browser()
    ended = client.get(back_from(sent_to(client)))
    [cookie] = [each for each in ended.headers.get_list("set-cookie") if "_oidc" not in each]
    assert 200 < int(cookie.split("Max-Age=")[1].split(";")[0]) <= 300


def test_issuer_that_cannot_be_reached_is_named_and_others_go_on(
    postgres: TestServer, redis: EmbeddedValkey
) -> None:
    with ExitStack() as stack:
        issuer = stack.enter_context(running_issuer())
        name = stack.enter_context(postgres.fresh_database())
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="headwater-tests-")))
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        setting = json.dumps([issuer.entry(client_id=CLIENT, label="Away")])
        service = stack.enter_context(running_service(settings_for(*urls, directory, oidc_issuers=setting)))
        client = stack.enter_context(
            httpx2.Client(base_url=service.url, trust_env=False, verify=TLS, headers={"Accept": "text/html"})
        )
        issuer.status = 500
        answer = client.get(button(client, "Away"))
        assert answer.status_code == 502
        assert "Away cannot be reached" in checked_page(answer).one("p", role="alert").text
        key = service.new_key("key-holder")
        assert client.post("/console/session", data={"api_key": key}).status_code == 303


def test_session_ends_if_its_issuer_is_removed(postgres: TestServer, redis: EmbeddedValkey) -> None:
    with ExitStack() as stack:
        issuer = stack.enter_context(running_issuer())
        name = stack.enter_context(postgres.fresh_database())
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="headwater-tests-")))
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)

        def visits(
            setting: str, cookies: httpx2.Cookies | None, *, signs_in: bool
        ) -> tuple[int, httpx2.Cookies]:
            with running_service(settings_for(*urls, directory, oidc_issuers=setting)) as service:
                if signs_in:
                    service.tenants.add_tenant("acme")
                # The name of the cookie has the host in it, whose port is another one after a restart.
                headers = {"Accept": "text/html", "Host": "lake.example:8080"}
                with httpx2.Client(
                    base_url=service.url, trust_env=False, verify=TLS, headers=headers
                ) as client:
                    client.cookies.update(cookies or {})
                    if signs_in:
                        address = client.get(button(client, "Acme")).headers["location"]
                        assert client.get(back_from(address)).status_code == 303
                    return client.get("/console/datasets").status_code, client.cookies

        entry = issuer.entry(client_id=CLIENT, label="Acme")
        status, cookies = visits(json.dumps([entry]), None, signs_in=True)
        assert status == 200
        assert visits(json.dumps([entry]), cookies, signs_in=False)[0] == 200
        others = json.dumps([{**entry, "issuer": "https://login.example"}])
        assert visits(others, cookies, signs_in=False)[0] == 303
