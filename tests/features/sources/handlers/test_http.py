"""Sources of JSON APIs with pages, read from a real server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.support.http import problem
from tests.support.paged_api import Paged, paged_api
from tests.support.sources import Incoming, notes


@pytest.fixture
def api() -> Iterator[Paged]:
    with paged_api([{"id": number, "note": f"n{number}"} for number in range(5)]) as found:
        yield found


def _register(incoming: Incoming, api: Paged, **members: Any) -> httpx2.Response:
    config = {
        "url": api.url,
        "cursor_parameter": "after",
        "records": "data.items",
        "next_cursor": "paging.next",
        **members.pop("config", {}),
    }
    body = {"name": "api", "dataset": "orders", "kind": "http", "config": config, "mode": "continuous"}
    return incoming.client.post("/sources", json={**body, **members})


def _read_on(incoming: Incoming, path: str) -> dict[str, Any]:
    incoming.client.patch(path, json={"state": "active"})
    return incoming.run(path)


def test_pages_are_read_to_the_last_and_on_from_there(incoming: Incoming, events: str, api: Paged) -> None:
    # Without a key, a record that is read twice is there twice.
    fields = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
    incoming.client.post("/datasets", json={"name": "log", "schema": {"fields": fields}})
    path = _register(incoming, api, dataset="log").headers["location"]
    source = incoming.run(path)
    assert source["position"] == {"cursor": "4", "read": 1}
    api.records += [{"id": number, "note": f"n{number}"} for number in range(5, 8)]
    assert _read_on(incoming, path)["position"] == {"cursor": "8", "read": 0}
    before = len(incoming.jobs("log"))
    _read_on(incoming, path)
    assert len(incoming.jobs("log")) == before
    assert [row["id"] for row in incoming.rows("log")] == list(range(8))


def test_rounds_are_bounded_by_pages(incoming: Incoming, orders: str, api: Paged) -> None:
    path = _register(incoming, api, max_items=1, mode="once").headers["location"]
    source = incoming.run(path)
    assert (source["state"], source["rounds"]) == ("finished", 3)
    assert notes(incoming.rows()) == {number: f"n{number}" for number in range(5)}


def test_circle_that_is_longer_than_a_round_fails_the_source(
    incoming: Incoming, orders: str, api: Paged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def circle(path: str) -> bytes:
        number = int(parse_qs(urlsplit(path).query).get("after", ["0"])[0])
        page = {"data": {"items": [{"id": number}]}, "paging": {"next": str((number + 1) % 3)}}
        return json.dumps(page).encode()

    monkeypatch.setattr(api, "answer", circle)
    path = _register(incoming, api, max_items=1, mode="once").headers["location"]
    source = incoming.run(path)
    assert (source["state"], source["last_error"]["type"]) == ("failed", "/problems/source-failed")
    assert "leads in a circle" in source["last_error"]["detail"]
    assert source["rounds"] <= 3 * 3


def test_token_is_sent_and_never_shown(incoming: Incoming, orders: str, api: Paged) -> None:
    config = {"token": "top-secret", "headers": {"X-Team": "one"}}
    made = _register(incoming, api, config=config)
    source = incoming.run(made.headers["location"])
    assert source["position"] == {"cursor": "4", "read": 1}
    assert "top-secret" not in made.text
    assert "top-secret" not in json.dumps([source, incoming.jobs()])
    assert "top-secret" not in incoming.client.get(f"{orders}/timeline").text
    path, headers = api.requests[-1]
    assert (headers["Authorization"], headers["X-Team"]) == ("Bearer top-secret", "one")
    assert path == "/records?kind=order&after=4"


@pytest.mark.parametrize(
    ("status", "text", "state", "code"),
    [
        (503, None, "active", "source-unavailable"),
        (429, None, "active", "source-unavailable"),
        (403, b"not for you", "failed", "source-failed"),
        (302, b"", "failed", "source-failed"),
        (200, b"<html>", "failed", "source-failed"),
        (200, b'{"data": {"items": {}}}', "failed", "source-failed"),
        (200, b'{"items": []}', "failed", "source-failed"),
        (200, b'{"data": {"list": []}}', "failed", "source-failed"),
        (200, b'{"data": {"items": [{"id": "x"}]}}', "failed", "schema-mismatch"),
        (200, b'{"data": {"items": [{"id": 1}]}, "paging": {"next": "a\\u0000"}}', "failed", "source-failed"),
    ],
)
def test_failures_are_waited_for_or_fail_the_source(
    incoming: Incoming, orders: str, api: Paged, status: int, text: bytes | None, state: str, code: str
) -> None:
    api.status, api.text = status, text
    path = _register(incoming, api).headers["location"]
    source = incoming.run(path)
    assert source["state"] == state
    assert source["last_error"]["type"] == f"/problems/{code}"
    api.status, api.text = 200, None
    assert _read_on(incoming, path)["last_error"] is None
    assert len(incoming.rows()) == 5


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ({"items": []}, 'the member "data" is missing: the page has only "items"'),
        ({"data": {"list": []}}, 'the member "data.items" is missing: "data" has only "list"'),
        ({"data": {}}, 'the member "data.items" is missing: "data" has no member'),
        ({f"m{number}": 0 for number in range(12)}, '"m9" and 2 more; the first page has'),
    ],
)
def test_missing_list_of_records_is_named_with_the_members_that_are_there(
    incoming: Incoming, orders: str, api: Paged, page: dict[str, Any], reason: str
) -> None:
    api.text = json.dumps(page).encode()
    source = incoming.run(_register(incoming, api).headers["location"])
    assert reason in source["last_error"]["detail"]


@pytest.mark.parametrize(
    "text", [b'{"data": null}', b'{"data": {"items": null}}', b'{"data": {"items": []}}', b"null"]
)
def test_list_that_is_null_has_no_records(incoming: Incoming, orders: str, api: Paged, text: bytes) -> None:
    api.text = text
    source = incoming.run(_register(incoming, api).headers["location"])
    assert (source["state"], source["last_error"]) == ("active", None)


HALVES = (
    b'{"about": "\\udfff", "data": {"items": [{"id": 1, "note": "a"}, {"id": 2, "note": "\\ud800"},'
    b' {"id": 3, "note": "\\ud83d\\ude00"}, {"id": 4, "note": NaN}, {"id": 5, "\\ud800": "x"}]}}'
)


@pytest.mark.parametrize("registered", [False, True])
def test_record_with_half_a_character_is_quarantined(
    incoming: Incoming, api: Paged, request: pytest.FixtureRequest, registered: bool
) -> None:
    members: dict[str, Any] = {"dataset": "fresh", "create": {"record_key": ["id"]}, "mode": "once"}
    if registered:
        request.getfixturevalue("orders")
        members = {"mode": "once"}
    dataset = "orders" if registered else "fresh"
    api.text = HALVES
    source = incoming.run(_register(incoming, api, **members, on_error="quarantine").headers["location"])
    assert (source["state"], source["last_error"]) == ("finished", None)
    assert notes(incoming.rows(dataset)) == {1: "a", 3: "\N{GRINNING FACE}"}
    bad = incoming.client.get(f"/datasets/{dataset}/quarantine").json()["items"]
    assert [record["errors"][0]["pointer"] for record in bad] == ["/note", "/note", "/\\ud800"]
    assert [record["payload"] for record in bad] == [
        '{"id": 2, "note": "\\ud800"}',
        '{"id": 4, "note": NaN}',
        '{"id": 5, "\\ud800": "x"}',
    ]


def test_record_with_half_a_character_is_named_with_its_page(
    incoming: Incoming, orders: str, api: Paged
) -> None:
    api.text = HALVES.replace(b"NaN", b'"b"')
    source = incoming.run(_register(incoming, api).headers["location"])
    assert source["state"] == "failed"
    detail = source["last_error"]["detail"]
    assert detail.startswith("the first page: ")
    assert "/rows/1/note: expected string, got one with a lone surrogate" in detail


def test_line_of_a_server_is_shown_short_and_without_controls(incoming: Incoming, orders: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as connection:
                connection.recv(10_000)
                connection.sendall(b"no status\0" + b"x" * 60_000 + b"\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        paged = Paged(records=[], url=url)
        source = incoming.run(_register(incoming, paged).headers["location"])
        thread.join()
    detail = source["last_error"]["detail"]
    assert "no status" in detail
    assert len(detail) < 500
    assert detail.isprintable()


def test_page_of_very_many_records_is_refused(incoming: Incoming, orders: str, api: Paged) -> None:
    api.text = b'{"data": {"items": [' + b"1, " * 200_000 + b"1]}}"
    source = incoming.run(_register(incoming, api).headers["location"])
    assert source["state"] == "failed"
    assert "more than 200000 records" in source["last_error"]["detail"]


def test_commas_within_records_do_not_count(incoming: Incoming, orders: str, api: Paged) -> None:
    api.records = [{"id": number, "note": "," * 100_000} for number in range(5)]
    api.page_size = 5
    incoming.run(_register(incoming, api).headers["location"])
    assert len(incoming.rows()) == 5


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"headers": {"Host": "internal"}}, "/config/headers"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "/config/headers"),
        ({"token": "a\nb"}, "/config/token"),
        ({"cursor_parameter": ""}, "/config/cursor_parameter"),
        ({"records": 'data."items"'}, "/config/records"),
    ],
)
def test_invalid_config_is_refused(
    incoming: Incoming, orders: str, api: Paged, config: dict[str, Any], pointer: str
) -> None:
    found = problem(_register(incoming, api, config=config), 400, "invalid-request")
    assert [each["pointer"] for each in found["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data", "private address"),
        ("http://[::1]/", "private address"),
        ("ftp://example.org/", "https://"),
        ("http://user:secret@example.org/", "user name"),
    ],
)
def test_address_that_is_not_admitted_is_refused(
    incoming: Incoming, orders: str, api: Paged, url: str, reason: str
) -> None:
    found = problem(_register(incoming, api, config={"url": url}), 422, "invalid-source")
    assert [each["pointer"] for each in found["errors"]] == ["/config/url"]
    assert reason in found["detail"]
    assert incoming.client.get("/sources").json()["items"] == []
