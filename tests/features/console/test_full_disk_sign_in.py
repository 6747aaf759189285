"""The sign-in while the disk of the database is full: triggers refuse sessions and links, as Postgres does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

import httpx2
import pytest
from psycopg import sql

from app.features.console.sealed_keys import SEALED_SECONDS, SealedKeys, is_sealed
from app.features.objects.service.secrets import KnownSecrets
from app.infra.identifiers import new_id
from tests.support.http import ORDERS
from tests.support.postgres import TestServer
from tests.support.service import SCOPES, Service
from tests.support.waiting import until

NewBrowser: TypeAlias = Callable[[], httpx2.Client]
FullDisk: TypeAlias = Callable[[], AbstractContextManager[None]]
TABLES = ("console_sessions", "console_links")
FUNCTION = """
CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
END $$
"""
TRIGGER = "CREATE TRIGGER full_disk BEFORE INSERT OR DELETE ON {} EXECUTE FUNCTION disk_is_full()"
KEY = "hw_" + "k" * 43
PAGE = "/console/datasets"
END = "/console/session/end"


@pytest.fixture
def key(service: Service) -> str:
    return service.new_key(f"full-disk-{new_id()}", SCOPES)


@pytest.fixture
def full_disk(service: Service, postgres: TestServer) -> FullDisk:
    """Meanwhile sessions and links can be neither stored nor deleted."""
    name = service.settings.database_url.rsplit("/", 1)[1]

    @contextmanager
    def run() -> Iterator[None]:
        with postgres.administration(name) as owner:
            owner.execute(FUNCTION)
            for table in TABLES:
                owner.execute(sql.SQL(TRIGGER).format(sql.Identifier(table)))
            try:
                yield
            finally:
                owner.execute("DROP FUNCTION disk_is_full CASCADE")

    return run


def begin(client: httpx2.Client, key: str) -> str:
    """Signs in. Returns the value of the cookie."""
    answer = client.post("/console/session", data={"api_key": key})
    assert answer.status_code == 303, answer.text
    return str(client.cookies[cookie_name(client)])


def cookie_name(client: httpx2.Client) -> str:
    [name] = [each for each in client.cookies if "notice" not in each]
    return name


def form_token(client: httpx2.Client) -> str:
    return client.get(PAGE).text.split('name="token" value="')[1].split('"')[0]


def test_a_key_signs_in_and_reads(browser: NewBrowser, key: str, full_disk: FullDisk) -> None:
    client = browser()
    with full_disk():
        cookie = begin(client, key)
        assert is_sealed(cookie)
        assert key not in cookie
        page = client.get("/console/service")
        assert page.status_code == 200
        assert "The disk of the database is full" in page.text
    # It is of no use for the API, and lasts when there is space again; who signs in then gets an ordinary session.
    assert client.get("/datasets", headers={"Authorization": f"Bearer {cookie}"}).status_code == 401
    assert client.get(PAGE).status_code == 200
    assert not is_sealed(begin(client, key))


def test_its_cookie_is_protected_and_short(browser: NewBrowser, key: str, full_disk: FullDisk) -> None:
    with full_disk():
        answer = browser().post("/console/session", data={"api_key": key})
    [cookie] = [each for each in answer.headers.get_list("set-cookie") if "hwe_" in each]
    assert {"HttpOnly", "SameSite=lax", "Path=/console"} <= set(cookie.split("; "))
    [seconds] = [int(part[8:]) for part in cookie.split("; ") if part.startswith("Max-Age=")]
    assert SEALED_SECONDS - 60 < seconds <= SEALED_SECONDS


def test_its_forms_need_its_token_and_a_sign_out_removes_its_cookie(
    browser: NewBrowser, key: str, full_disk: FullDisk
) -> None:
    client, other = browser(), browser()
    with full_disk():
        begin(client, key)
        begin(other, key)
        for token in ("", form_token(other)):
            assert client.post(END, data={"token": token}).status_code == 403
        data, foreign = {"token": form_token(client)}, {"Sec-Fetch-Site": "cross-site"}
        assert client.post(END, data=data, headers=foreign).status_code == 403
        assert client.post(END, data=data).status_code == 303
        assert client.get(PAGE).status_code == 303


def test_a_browser_that_is_signed_in_signs_in_with_another_key(
    browser: NewBrowser, key: str, full_disk: FullDisk, service: Service
) -> None:
    client = browser()
    assert not is_sealed(begin(client, key))
    with full_disk():
        other = f"full-disk-{new_id()}"
        assert is_sealed(begin(client, service.new_key(other, SCOPES)))
        assert other in client.get(PAGE).text


def test_it_ends_with_its_key(browser: NewBrowser, service: Service, key: str, full_disk: FullDisk) -> None:
    client = browser()
    with full_disk(), service.client(key) as api:
        short = api.post("/keys", json={"name": "short", "scopes": ["read"]}).json()
        begin(client, short["api_key"])
        assert client.get(PAGE).status_code == 200
        assert api.delete(f"/keys/{short['id']}").status_code == 204
        until(lambda: client.get(PAGE).status_code == 303, "the end of the session")
        assert client.post("/console/session", data={"api_key": short["api_key"]}).status_code == 401


def test_it_sees_its_tenant_alone(
    browser: NewBrowser, service: Service, key: str, full_disk: FullDisk
) -> None:
    with service.client(key) as api:
        path = api.post("/datasets", json=ORDERS).headers["location"]
    own, stranger = browser(), browser()
    with full_disk():
        begin(own, key)
        begin(stranger, service.new_key(f"full-disk-{new_id()}", SCOPES))
        assert own.get(f"/console{path}").status_code == 200
        assert stranger.get(f"/console{path}").status_code == 404


def test_a_forged_cookie_is_no_session(browser: NewBrowser, key: str, full_disk: FullDisk) -> None:
    client = browser()
    with full_disk():
        cookie = begin(client, key)
        # In the generation, the nonce, the end, the key and the tag.
        for place in (6, 14, 28, 60, len(cookie) - 10):
            other = "B" if cookie[place] == "A" else "A"
            forgery = f"{cookie[:place]}{other}{cookie[place + 1 :]}"
            forger = browser()
            forger.cookies.set(cookie_name(client), forgery, path="/console")
            assert forger.get(PAGE).status_code == 303, place
        assert client.get(PAGE).status_code == 200


def test_a_link_names_the_sign_in_with_the_key(
    browser: NewBrowser, service: Service, key: str, full_disk: FullDisk
) -> None:
    with full_disk(), service.client(key) as api:
        answer = api.post("/sign-in-links")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        detail, _, page = answer.json()["detail"].partition(": sign in with the API key at ")
        assert detail.startswith("The disk of the database is full")
        assert "API key" in browser().get(page).text


def sealed_keys(secret: bytes, moment: float = 1_000.0, generation: int = 1) -> SealedKeys:
    return SealedKeys(secrets=KnownSecrets(lambda: {generation: secret}), clock=lambda: moment)


def test_a_sealed_key_is_opened_by_each_process_until_its_end() -> None:
    secret = b"a" * 32
    text = sealed_keys(secret).seal(KEY, 1_010)
    assert is_sealed(text)
    assert sealed_keys(secret).open(text) == (KEY, 10.0)
    assert sealed_keys(secret, 1_009.5).open(text) == (KEY, 0.5)
    assert sealed_keys(secret, 1_010.0).open(text) is None


def test_a_sealed_key_is_not_opened_with_another_secret() -> None:
    text = sealed_keys(b"a" * 32).seal(KEY, 1_010)
    assert sealed_keys(b"b" * 32).open(text) is None
    assert sealed_keys(b"a" * 32, generation=2).open(text) is None


def test_two_sessions_of_a_key_have_different_cookies() -> None:
    keys = sealed_keys(b"a" * 32)
    assert keys.seal(KEY, 1_010) != keys.seal(KEY, 1_010)
