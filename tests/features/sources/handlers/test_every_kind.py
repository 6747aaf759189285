"""What holds for every kind of source: schemas that change in flight, bad records, and servers that come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.support.paged_api import paged_api
from tests.support.postgres import TestServer
from tests.support.proxy import BreakingProxy
from tests.support.schema_changes import change
from tests.support.sources import Incoming

Row = dict[str, Any]
FIELDS = [{"name": "id", "type": "int64"}, {"name": "size", "type": "int32"}]
# Does not fit the column `size`.
LARGE = 2**40


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a source reads. `add` adds rows with id and size, and with a note if they have one."""

    kind: str
    config: dict[str, Any]
    add: Callable[..., None]


Opens = Callable[[Incoming, TestServer], AbstractContextManager[Origin]]


@contextmanager
def folder(incoming: Incoming, _postgres: TestServer) -> Iterator[Origin]:
    names = count()
    config = {"path": incoming.folder.as_uri(), "format": "ndjson"}
    yield Origin(
        kind="files", config=config, add=lambda *rows: incoming.put(f"{next(names)}.ndjson", *rows) and None
    )


@contextmanager
def api(_incoming: Incoming, _postgres: TestServer) -> Iterator[Origin]:
    with paged_api([]) as paged:
        config = {
            "url": paged.url,
            "cursor_parameter": "after",
            "records": "data.items",
            "next_cursor": "paging.next",
        }
        yield Origin(kind="http", config=config, add=lambda *rows: paged.records.extend(rows))


@contextmanager
def database(_incoming: Incoming, postgres: TestServer) -> Iterator[Origin]:
    with postgres.fresh_database() as name:
        owner = postgres.owner_url(name)
        with psycopg.connect(owner) as connection:
            connection.execute("CREATE TABLE book (number bigserial, id bigint, size bigint)")

        def add(*rows: Row) -> None:
            with psycopg.connect(owner) as connection:
                if any("note" in row for row in rows):
                    connection.execute("ALTER TABLE book ADD COLUMN IF NOT EXISTS note text")
                for row in rows:
                    names = ", ".join(row)
                    values = ", ".join(f"%({each})s" for each in row)
                    connection.execute(f"INSERT INTO book ({names}) VALUES ({values})".encode(), row)

        yield Origin(kind="sql", config=rows_of(owner), add=add)


def rows_of(owner_url: str) -> dict[str, Any]:
    """The config of a source of the table `book`, by the number of its rows."""
    parts = urlsplit(owner_url)
    url = f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"
    return {"url": url, "password": parts.password, "table": "book", "watermark": "number"}


@contextmanager
def dataset(incoming: Incoming, _postgres: TestServer) -> Iterator[Origin]:
    fields = [{"name": "id", "type": "int64"}, {"name": "size", "type": "int64"}]
    incoming.client.post("/datasets", json={"name": "first", "schema": {"fields": fields}}).raise_for_status()

    def add(*rows: Row) -> None:
        body = {"operation": "insert", "merge_schema": True, "source": {"kind": "rows", "rows": rows}}
        incoming.client.post("/datasets/first/writes", json=body).raise_for_status()
        incoming.service.work()

    yield Origin(kind="dataset", config={"dataset": "first", "form": "rows"}, add=add)


@pytest.fixture(params=[folder, api, database, dataset], ids=["files", "http", "sql", "dataset"])
def origin(request: pytest.FixtureRequest, incoming: Incoming, postgres: TestServer) -> Iterator[Origin]:
    with request.param(incoming, postgres) as opened:
        # Without a key, a row that is written twice is there twice.
        numbered = [*FIELDS, *([{"name": "number", "type": "int64"}] if opened.kind == "sql" else [])]
        incoming.client.post(
            "/datasets", json={"name": "log", "schema": {"fields": numbered}}
        ).raise_for_status()
        yield opened


def register(incoming: Incoming, origin: Origin, **members: Any) -> str:
    body = {"name": "in", "dataset": "log", "kind": origin.kind, "config": origin.config, **members}
    answer = incoming.client.post("/sources", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


def again(incoming: Incoming, path: str) -> Row:
    """Has the source read on; returns it."""
    incoming.client.patch(path, json={"state": "active"}).raise_for_status()
    return incoming.run(path)


def rows(incoming: Incoming) -> list[tuple[Any, ...]]:
    """Id, size and note of the rows, by id."""
    return sorted((row["id"], row["size"], row.get("note")) for row in incoming.rows("log"))


def row(number: int, size: int = 1, **more: str) -> Row:
    return {"id": number, "size": size, **more}


def test_schema_changes_in_flight(incoming: Incoming, origin: Origin) -> None:
    origin.add(row(1), row(2))
    path = register(incoming, origin, merge_schema=True)
    assert incoming.run(path)["last_error"] is None
    origin.add(row(3))
    incoming.client.patch(path, json={"state": "active"})
    # The round is planned before the column is added and the type widened, and reads afterwards.
    incoming.plan(path)
    origin.add(row(4, LARGE, note="n"), row(5))
    assert incoming.run(path)["last_error"] is None
    assert again(incoming, path)["last_error"] is None
    types = {
        field["name"]: field["type"]
        for field in incoming.client.get("/datasets/log").json()["schema"]["fields"]
    }
    assert (types["size"], types["note"]) == ("int64", "string")
    assert rows(incoming) == [(1, 1, None), (2, 1, None), (3, 1, None), (4, LARGE, "n"), (5, 1, None)]


def test_schema_change_without_merge_schema_fails_the_source_until_the_dataset_has_it(
    incoming: Incoming, origin: Origin
) -> None:
    origin.add(row(1))
    path = register(incoming, origin)
    position = incoming.run(path)["position"]
    origin.add(row(2, note="n"))
    source = again(incoming, path)
    assert (source["state"], source["position"]) == ("failed", position)
    assert "note" in json.dumps(source["last_error"])
    added = {"kind": "add", "field": {"name": "note", "type": "string"}}
    assert change(incoming.client, "/datasets/log", added).status_code == 200
    assert again(incoming, path)["last_error"] is None
    assert rows(incoming) == [(1, 1, None), (2, 1, "n")]


def test_poison_row_fails_the_source_or_is_quarantined_once(incoming: Incoming, origin: Origin) -> None:
    origin.add(row(1), row(2))
    path = register(incoming, origin)
    before = incoming.run(path)
    origin.add(row(3, LARGE), row(4))
    failed = again(incoming, path)
    assert (failed["state"], failed["position"]) == ("failed", before["position"])
    assert failed["last_error"]["type"] == "/problems/schema-mismatch"
    assert [each[0] for each in rows(incoming)] == [1, 2]
    incoming.client.delete(path)
    # Files have no position to start from: all are read again.
    members = {} if origin.kind == "files" else {"position": before["position"]}
    path = register(incoming, origin, name="next", on_error="quarantine", **members)
    source = incoming.run(path)
    assert (source["state"], source["last_error"]) == ("active", None)
    read = [1, 1, 2, 2, 4] if origin.kind == "files" else [1, 2, 4]
    assert [each[0] for each in rows(incoming)] == read
    origin.add(row(5))
    assert again(incoming, path)["last_error"] is None
    assert [each[0] for each in rows(incoming)] == [*read, 5]
    [record] = incoming.client.get("/datasets/log/quarantine").json()["items"]
    assert "size" in json.dumps(record["errors"])
    assert str(LARGE) in json.dumps(record)


def test_database_that_goes_away_is_read_on_once_it_is_back(incoming: Incoming, postgres: TestServer) -> None:
    incoming.client.post(
        "/datasets",
        json={"name": "log", "schema": {"fields": [*FIELDS, {"name": "number", "type": "int64"}]}},
    ).raise_for_status()
    with database(incoming, postgres) as origin:
        origin.add(row(1), row(2))
        parts = urlsplit(origin.config["url"])
        direct = parts._replace(netloc=f"{parts.hostname}:{parts.port}").geturl()
        with BreakingProxy.before(direct) as proxy:
            port = urlsplit(proxy.url).port or 0
            url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
            through = Origin(kind="sql", config={**origin.config, "url": url}, add=origin.add)
            path = register(incoming, through)
            position = incoming.run(path)["position"]
            incoming.client.patch(path, json={"state": "active"})
            origin.add(row(3))
            # The round is queued, and then the server is away.
            incoming.plan(path)
        away = incoming.run(path)
        assert (away["state"], away["position"]) == ("active", position)
        assert away["last_error"]["type"] == "/problems/source-unavailable"
        origin.add(row(4))
        with BreakingProxy.before(direct, port=port):
            source = again(incoming, path)
            assert (source["last_error"], source["failures"]) == (None, 0)
            assert again(incoming, path)["lag"] == {"rows": 0}
        assert [each[0] for each in rows(incoming)] == [1, 2, 3, 4]
