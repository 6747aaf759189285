"""Sources of rows of a database, of Postgres and of MariaDB."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from app.kernel.format.schema.types import Form, foreign_types
from tests.support.http import problem
from tests.support.mariadb.server import Mariadb
from tests.support.postgres import TestServer
from tests.support.shares import share
from tests.support.sources import Incoming, notes


class Ledgers:
    """A database with a table of notes. `url`, `password`: of a user. `place`: the schema of the table."""

    def __init__(self, url: str, password: str, place: str, run: Callable[[str], object]) -> None:
        self.url = url
        self.password = password
        self.place = place
        self.run = run

    @classmethod
    def of_postgres(cls, owner_url: str) -> Ledgers:
        """A database of Postgres."""
        parts = urlsplit(owner_url)

        def run(statement: str) -> None:
            with psycopg.connect(owner_url) as connection:
                connection.execute(statement.encode())

        url = f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"
        return cls(url, parts.password or "", "public", run)

    @classmethod
    def of_mariadb(cls, server: Mariadb, name: str) -> Ledgers:
        """A database of MariaDB."""
        return cls(server.url(name), server.password, name, partial(server.run, database=name))


@pytest.fixture(params=["postgres", "mariadb"])
def ledgers(request: pytest.FixtureRequest) -> Iterator[Ledgers]:
    with ExitStack() as stack:
        if request.param == "postgres":
            server: TestServer = request.getfixturevalue("postgres")
            found = Ledgers.of_postgres(server.owner_url(stack.enter_context(server.fresh_database())))
        else:
            found = Ledgers.of_mariadb(
                request.getfixturevalue("mariadb"), request.getfixturevalue("mariadb_database")
            )
        found.run("CREATE TABLE book (id bigint, note varchar(20), seen bigint)")
        found.run("INSERT INTO book VALUES (1, 'a', 1), (2, 'b %', 2), (3, 'c', 2), (4, 'd', 3)")
        yield found


def _register(incoming: Incoming, ledgers: Ledgers, **members: Any) -> httpx2.Response:
    query = "SELECT id, note, seen FROM book WHERE note LIKE '%'"
    config = {"url": ledgers.url, "password": ledgers.password, "query": query}
    config = {
        name: value for name, value in (config | members.pop("config", {})).items() if value is not None
    }
    body = {"name": "db", "dataset": "book", "kind": "sql", "config": config, "mode": "once"}
    return incoming.client.post("/sources", json={**body, "create": {"record_key": ["id"]}, **members})


@share(2)
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
    path = _register(incoming, ledgers, config={"query": None, "table": f"{ledgers.place}.book"}).headers[
        "location"
    ]
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
        ({"url": "mysql://x@127.0.0.1:1/x"}, "active", "source-unavailable"),
    ],
)
def test_failures_are_waited_for_or_fail_the_source(
    incoming: Incoming, ledgers: Ledgers, config: dict[str, Any], state: str, code: str
) -> None:
    source = incoming.run(_register(incoming, ledgers, config=config).headers["location"])
    assert source["state"] == state
    assert source["last_error"]["type"] == f"/problems/{code}"


@pytest.mark.parametrize("scheme", ["postgresql", "mysql", "mariadb"])
def test_address_that_is_not_admitted_is_refused(incoming: Incoming, scheme: str) -> None:
    nowhere = Ledgers(f"{scheme}://x@169.254.1.1/x", "", "", print)
    found = problem(_register(incoming, nowhere), 422, "invalid-source")
    assert [each["pointer"] for each in found["errors"]] == ["/config/url"]
    assert "is a private address" in found["detail"]


def test_rows_without_a_watermark_fail_the_source_until_they_have_one(
    incoming: Incoming, ledgers: Ledgers
) -> None:
    ledgers.run("UPDATE book SET seen = NULL WHERE id IN (1, 4)")
    path = _register(incoming, ledgers, config={"watermark": "seen"}).headers["location"]
    source = incoming.run(path)
    assert (source["state"], source["last_error"]["type"]) == ("failed", "/problems/source-failed")
    assert "2 rows have no value in the column 'seen'" in source["last_error"]["detail"]
    ledgers.run("UPDATE book SET seen = id WHERE seen IS NULL")
    incoming.client.patch(path, json={"state": "active"})
    assert incoming.run(path)["state"] == "finished"
    assert notes(incoming.rows("book")) == {1: "a", 2: "b %", 3: "c", 4: "d"}


@pytest.mark.parametrize(
    ("value", "type_", "read"),
    [
        ("9223372036854775807", "int64", 9223372036854775807),
        ("9223372036854775808", "decimal(38, 0)", "9223372036854775808"),
        ("0.5", "double", 0.5),
        ("12345678901234567890.123456789", "decimal(38, 9)", "12345678901234567890.123456789"),
        ("1e37", "decimal(38, 0)", "1" + "0" * 37),
    ],
)
@pytest.mark.parametrize("ledgers", ["postgres"], indirect=True)
def test_bare_numeric_has_every_digit(
    incoming: Incoming, ledgers: Ledgers, value: str, type_: str, read: object
) -> None:
    query = f"SELECT 1 AS id, {value}::numeric AS n"
    path = _register(incoming, ledgers, config={"query": query}).headers["location"]
    assert incoming.run(path)["state"] == "finished", incoming.found(path)
    fields = incoming.client.get("/datasets/book").json()["schema"]["fields"]
    assert {field["name"]: field["type"] for field in fields} == {"id": "int32", "n": type_}
    assert incoming.rows("book") == [{"id": 1, "n": read}]


@pytest.mark.parametrize("ledgers", ["postgres"], indirect=True)
def test_bare_numeric_that_no_type_holds_is_named(incoming: Incoming, ledgers: Ledgers) -> None:
    query = f"SELECT 1 AS id, {'9' * 39}::numeric AS n"
    source = incoming.run(_register(incoming, ledgers, config={"query": query}).headers["location"])
    assert (source["state"], source["last_error"]["type"]) == ("failed", "/problems/schema-mismatch")
    assert "/rows/0/n" in source["last_error"]["detail"]


@pytest.mark.parametrize("ledgers", ["postgres"], indirect=True)
def test_types_of_postgres_are_those_of_the_table(incoming: Incoming, ledgers: Ledgers) -> None:
    table = {name: type_ for name, type_ in foreign_types(Form.POSTGRES).items() if name != "arrays"}
    columns = [f"NULL::{name.replace('p, s', '7, 2')} AS c{place}" for place, name in enumerate(table)]
    query = f"SELECT 1 AS id, {', '.join(columns)}"
    path = _register(incoming, ledgers, config={"query": query}).headers["location"]
    assert incoming.run(path)["state"] == "finished", incoming.found(path)
    fields = incoming.client.get("/datasets/book").json()["schema"]["fields"]
    types = [field["type"] for field in fields if field["name"] != "id"]
    assert types == [type_.replace("p, s", "7, 2") for type_ in table.values()]


@pytest.mark.parametrize("ledgers", ["postgres"], indirect=True)
def test_uuids_and_bytes_of_postgres_are_read(incoming: Incoming, ledgers: Ledgers) -> None:
    values = f"'0190163D-8694-739b-aea5-966c26f8ad91'::uuid AS u, '\\x{'00ff27' * 40}'::bytea AS b"
    path = _register(incoming, ledgers, config={"query": f"SELECT 1 AS id, {values}"}).headers["location"]
    assert incoming.run(path)["state"] == "finished", incoming.found(path)
    content = base64.b64encode(bytes.fromhex("00ff27" * 40)).decode()
    assert incoming.rows("book") == [{"id": 1, "u": "0190163d-8694-739b-aea5-966c26f8ad91", "b": content}]


@pytest.mark.parametrize("ledgers", ["postgres"], indirect=True)
def test_bytes_of_postgres_are_no_watermark(incoming: Incoming, ledgers: Ledgers) -> None:
    config = {"query": "SELECT 1 AS id, '\\x00'::bytea AS b", "watermark": "b"}
    source = incoming.run(_register(incoming, ledgers, config=config).headers["location"])
    assert (source["state"], source["last_error"]["type"]) == ("failed", "/problems/source-failed")
    assert "cannot be the watermark" in source["last_error"]["detail"]


@pytest.mark.parametrize("config", [{"watermark": "number"}, {}], ids=["watermark", "snapshot"])
@pytest.mark.parametrize("ledgers", ["postgres"], indirect=True)
def test_oids_are_whole_numbers(incoming: Incoming, ledgers: Ledgers, config: dict[str, Any]) -> None:
    query = 'SELECT id, id::oid AS number, 4294967295::oid AS "the ""last""" FROM book'
    path = _register(incoming, ledgers, config={"query": query, **config}).headers["location"]
    assert incoming.run(path)["state"] == "finished", incoming.found(path)
    assert incoming.rows("book")[0] == {"id": 1, "number": 1, 'the "last"': 4294967295}
    fields = incoming.client.get("/datasets/book").json()["schema"]["fields"]
    assert [field["type"] for field in fields] == ["int64", "int64", "int64"]


@pytest.mark.parametrize(
    "url",
    [
        "oracle://x@h/x",
        "mysql://h/x",
        "postgresql://x:secret@h/x",
        "postgresql:///x",
        "postgresql://h/x",
    ],
)
def test_url_that_is_not_one_of_a_database_is_refused(incoming: Incoming, ledgers: Ledgers, url: str) -> None:
    found = problem(_register(incoming, ledgers, config={"url": url}), 422, "invalid-source")
    assert [each["pointer"] for each in found["errors"]] == ["/config/url"]


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
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


_TYPES = {
    "id": "int64",
    "note": "string",
    "seen": "int64",
    "price": "decimal(12, 4)",
    "day": "date",
    "local": "timestamp_ntz",
    "at": "timestamp",
}


@pytest.mark.parametrize("config", [{"watermark": "seen"}, {}])
def test_a_dataset_that_is_created_has_the_types_of_the_database(
    incoming: Incoming, ledgers: Ledgers, config: dict[str, Any]
) -> None:
    moment = "timestamptz" if ledgers.place == "public" else "timestamp(6) NULL"
    local = "timestamp" if ledgers.place == "public" else "datetime(6)"
    ledgers.run(
        f"ALTER TABLE book ADD price decimal(12, 4), ADD day date, ADD local {local}, ADD at {moment}"
    )
    ledgers.run("DELETE FROM book WHERE id > 2")
    ledgers.run(
        "UPDATE book SET price = 12345678.9012, day = '2026-11-21', local = '2026-11-21 10:00:00.000001',"
        " at = '2026-11-21 10:00:00.25' WHERE id = 1"
    )
    path = _register(incoming, ledgers, config={"query": "SELECT * FROM book", **config}).headers["location"]
    assert incoming.run(path)["state"] == "finished", incoming.found(path)
    fields = incoming.client.get("/datasets/book").json()["schema"]["fields"]
    assert {field["name"]: field["type"] for field in fields} == _TYPES
    rows = {row["id"]: row for row in incoming.rows("book")}
    assert {name: rows[1][name] for name in ("price", "day", "local", "at")} == {
        "price": "12345678.9012",
        "day": "2026-11-21",
        "local": "2026-11-21T10:00:00.000001",
        "at": "2026-11-21T10:00:00.250000Z",
    }
    assert rows[2]["price"] is None


def test_rows_that_fit_no_type_go_to_the_quarantine(incoming: Incoming, ledgers: Ledgers) -> None:
    if ledgers.place == "public":
        ledgers.run("ALTER TABLE book ADD day date")
        ledgers.run("UPDATE book SET day = CASE id WHEN 3 THEN date 'infinity' ELSE date '2026-11-21' END")
    else:
        ledgers.run("ALTER TABLE book ADD day date")
        ledgers.run("UPDATE IGNORE book SET day = CASE id WHEN 3 THEN '0000-00-00' ELSE '2026-11-21' END")
    config = {"query": "SELECT * FROM book", "watermark": "seen"}
    path = _register(incoming, ledgers, config=config, on_error="quarantine").headers["location"]
    assert incoming.run(path)["position"] == {"watermark": "3"}
    assert sorted(notes(incoming.rows("book"))) == [1, 2, 4]


@pytest.mark.parametrize("ledgers", ["postgres"], indirect=True)
def test_columns_without_a_type_of_their_own_are_inferred(incoming: Incoming, ledgers: Ledgers) -> None:
    query = "SELECT id, ARRAY[id, 2] AS pair, json_build_object('n', note) AS doc, id * 1.5 AS free FROM book"
    path = _register(incoming, ledgers, config={"query": query}).headers["location"]
    assert incoming.run(path)["state"] == "finished", incoming.found(path)
    fields = incoming.client.get("/datasets/book").json()["schema"]["fields"]
    assert {field["name"]: field["type"] for field in fields} == {
        "id": "int64",
        "pair": "list<int64>",
        "doc": "struct<n: string>",
        "free": "double",
    }
