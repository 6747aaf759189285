"""Sources of rows of a Postgres database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from tests.support.http import problem
from tests.support.postgres import TestServer
from tests.support.sources import Incoming, notes


class Ledgers:
    """A database with a table of notes. `url`, `password`: of its owner."""

    def __init__(self, owner_url: str) -> None:
        parts = urlsplit(owner_url)
        self.password = parts.password or ""
        self.url = f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"
        self._owner_url = owner_url

    def run(self, statement: str) -> None:
        """Runs a statement as the owner."""
        with psycopg.connect(self._owner_url) as connection:
            connection.execute(statement.encode())


@pytest.fixture
def ledgers(postgres: TestServer) -> Iterator[Ledgers]:
    with postgres.fresh_database() as name:
        found = Ledgers(postgres.owner_url(name))
        found.run("CREATE TABLE book (id bigint, note text, seen bigint)")
        found.run("INSERT INTO book VALUES (1, 'a', 1), (2, 'b %', 2), (3, 'c', 2), (4, 'd', 3)")
        yield found


def _register(incoming: Incoming, ledgers: Ledgers, **members: Any) -> httpx.Response:
    query = "SELECT id, note, seen FROM book WHERE note LIKE '%'"
    config = {"url": ledgers.url, "password": ledgers.password, "query": query}
    config = {
        name: value for name, value in (config | members.pop("config", {})).items() if value is not None
    }
    body = {"name": "db", "dataset": "book", "kind": "sql", "config": config, "mode": "once"}
    return incoming.client.post("/sources", json={**body, "create": {"record_key": ["id"]}, **members})


def test_rows_are_read_by_watermark_and_equal_values_together(incoming: Incoming, ledgers: Ledgers) -> None:
    made = _register(incoming, ledgers, config={"watermark": "seen"}, max_rows=2)
    assert ledgers.password not in made.text.replace(ledgers.url, "")
    path = made.headers["location"]
    source = incoming.run(path)
    assert (source["state"], source["position"]) == ("finished", {"watermark": "3"})
    assert source["lag"] == {"rows": 0}
    assert [job["result"]["position"] for job in incoming.jobs("book")] == [
        {"watermark": "2"},
        {"watermark": "3"},
    ]
    assert notes(incoming.rows("book")) == {1: "a", 2: "b %", 3: "c", 4: "d"}
    ledgers.run("UPDATE book SET note = 'changed', seen = 10 WHERE id = 1")
    incoming.client.patch(path, json={"state": "active"})
    assert incoming.run(path)["position"] == {"watermark": "10"}
    assert notes(incoming.rows("book")) == {1: "changed", 2: "b %", 3: "c", 4: "d"}


def test_source_starts_from_a_position(incoming: Incoming, ledgers: Ledgers) -> None:
    members = {"config": {"watermark": "seen"}, "position": {"watermark": "2"}}
    made = _register(incoming, ledgers, **members)
    assert made.json()["position"] == {"watermark": "2"}
    assert incoming.run(made.headers["location"])["position"] == {"watermark": "3"}
    assert notes(incoming.rows("book")) == {4: "d"}
    refused = _register(incoming, ledgers, name="other", **{**members, "position": {"offset": 3}})
    assert problem(refused, 422, "invalid-source")["errors"][0]["pointer"] == "/position/offset"


def test_snapshots_follow_deletions_and_are_read_when_rows_have_changed(
    incoming: Incoming, ledgers: Ledgers
) -> None:
    path = _register(incoming, ledgers, config={"query": None, "table": "public.book"}).headers["location"]
    assert incoming.run(path)["state"] == "finished"
    assert len(incoming.rows("book")) == 4
    incoming.client.patch(path, json={"state": "active"})
    assert incoming.run(path)["rounds"] == 1
    ledgers.run("DELETE FROM book WHERE id <> 2")
    incoming.client.patch(path, json={"state": "active"})
    assert incoming.run(path)["rounds"] == 2
    assert notes(incoming.rows("book")) == {2: "b %"}


@pytest.mark.parametrize(
    ("config", "state", "code"),
    [
        ({"query": "SELECT nothing FROM book"}, "failed", "source-failed"),
        ({"query": "DELETE FROM book RETURNING id"}, "failed", "source-failed"),
        ({"watermark": "absent"}, "failed", "source-failed"),
        ({"url": "postgresql://x@127.0.0.1:1/x"}, "active", "source-unavailable"),
        ({"url": "postgresql://x@169.254.1.1/x"}, "failed", "source-failed"),
    ],
)
def test_failures_are_waited_for_or_fail_the_source(
    incoming: Incoming, ledgers: Ledgers, config: dict[str, Any], state: str, code: str
) -> None:
    source = incoming.run(_register(incoming, ledgers, config=config).headers["location"])
    assert source["state"] == state
    assert source["last_error"]["type"] == f"/problems/{code}"


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"url": "mysql://x@h/x"}, "/config/url"),
        ({"url": "postgresql://x:secret@h/x"}, "/config/url"),
        ({"url": "postgresql:///x"}, "/config/url"),
        ({"url": "postgresql://h/x"}, "/config/url"),
        ({"password": "a\0"}, "/config/password"),
        ({"table": "book"}, "/config/table"),
        ({"query": None}, "/config/table"),
    ],
)
def test_invalid_config_is_refused(
    incoming: Incoming, ledgers: Ledgers, config: dict[str, Any], pointer: str
) -> None:
    found = problem(_register(incoming, ledgers, config=config), 400, "invalid-request")
    assert [each["pointer"] for each in found["errors"]] == [pointer]
