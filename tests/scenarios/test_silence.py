"""Whatever makes no progress says so within two rounds, on the page of its resource: the state, the reason, and what to
do. Each kind is started on input that is empty, unreadable, readable in part, that breaks off, and that never ends.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import fastavro
import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.kernel.format.errors import DerivationFailed
from tests.support.http_bodies import http_bodies, page
from tests.support.postgres import TestServer
from tests.support.service import Service
from tests.support.shares import share
from tests.support.sources import Incoming

Row = dict[str, Any]
Config = dict[str, Any]
CREATE = {"record_key": ["id"]}


@pytest.fixture
def incoming(client: httpx2.Client, service: Service) -> Incoming:
    """A folder that sources of a tenant of its own may read."""
    return Incoming.of(client, service)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the page of a source must say: its state, the code of the reason, and words of it."""

    state: str
    code: str | None
    words: str = ""


WAITS_FOR_A_FILE = Expected(state="active", code="source-empty", words="waits for a file with a row")
WAITS_FOR_A_RECORD = Expected(state="active", code="source-empty", words="waits for a record")
WAITS_FOR_A_ROW = Expected(state="active", code="source-empty", words="waits for a row")
REGISTERED = Expected(state="active", code=None)


def broken(words: str) -> Expected:
    return Expected(state="failed", code="malformed-body", words=words)


def unusable(words: str) -> Expected:
    return Expected(state="failed", code="source-failed", words=words)


def out_of_reach(words: str) -> Expected:
    return Expected(state="active", code="source-unavailable", words=words)


def two_rounds(incoming: Incoming, body: Row) -> Row:
    """The source after two rounds, the same after each."""
    answer = incoming.client.post(
        "/sources", json={"name": "in", "dataset": "fresh", "create": CREATE, **body}
    )
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    source = incoming.run(path)
    if source["state"] == "active":
        # It is due at once, and keeps what it knows.
        incoming.client.patch(path, json={"interval_seconds": 60}).raise_for_status()
        again = incoming.run(path)
        assert _stated(again) == _stated(source)
        source = again
    return source


def _stated(source: Row) -> tuple[Any, Any]:
    return source["state"], (source["last_error"] or {}).get("type")


def check(source: Row, expected: Expected) -> None:
    error = source["last_error"]
    assert source["state"] == expected.state, error
    if expected.code is None:
        assert error is None
        assert source["dataset"]["id"] is not None
        return
    assert error is not None, "it is silent"
    assert error["type"] == f"/problems/{expected.code}", error
    assert expected.words in error["detail"], error
    assert source["dataset"]["id"] is None


def _avro(*rows: Row) -> bytes:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    fastavro.writer(sink, schema, rows)
    return sink.getvalue()


def _parquet(columns: Row) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _arrow() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"id": pa.array([1, 2])})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


BOM = b"\xef\xbb\xbf"
ROW = b'{"id": 1}\n'
FILES: dict[str, tuple[str, bytes | None, Expected]] = {
    "no file": ("ndjson", None, WAITS_FOR_A_FILE),
    "an empty file": ("ndjson", b"", WAITS_FOR_A_FILE),
    "an empty Parquet file": ("parquet", b"", WAITS_FOR_A_FILE),
    "blank lines": ("ndjson", b"\n \n", WAITS_FOR_A_FILE),
    "an empty array": ("json", b"[]", WAITS_FOR_A_FILE),
    "a header of CSV": ("csv", b"id,note\n", WAITS_FOR_A_FILE),
    "Avro without records": ("avro", _avro(), REGISTERED),
    "Parquet without rows": ("parquet", _parquet({"id": pa.array([], pa.int64())}), REGISTERED),
    "a byte order mark": ("ndjson", BOM, broken("file 1")),
    "a byte order mark of CSV": ("csv", BOM, broken("file 1")),
    "a byte order mark of JSON": ("json", BOM, broken("file 1")),
    "invalid UTF-8": ("ndjson", b"\xff\xfe{", broken("file 1")),
    "invalid UTF-8 of CSV": (
        "csv",
        b"id\n\xff\n",
        Expected(
            state="failed",
            code="schema-mismatch",
            words="file 1: /rows/0/id: expected string, got invalid UTF-8",
        ),
    ),
    "an object without members": ("ndjson", b"{}\n", unusable("file 1 has rows without a value")),
    "a row without a value": ("ndjson", b'{"id": null}\n', unusable("file 1 has rows without a value")),
    "no JSON": ("json", b"<html>", broken("file 1")),
    "another format": ("parquet", ROW, broken("file 1")),
    "gzip that is none": ("ndjson.gz", ROW, broken("file 1: the body is not gzip")),
    "gzip that breaks off": (
        "ndjson.gz",
        gzip.compress(ROW * 99)[:-9],
        broken("file 1: the gzip body is truncated"),
    ),
    "Avro that breaks off": ("avro", _avro({"id": 1})[:-5], broken("file 1: it is cut off")),
    "Parquet that breaks off": ("parquet", _parquet({"id": [1]})[:-7], broken("file 1")),
    "Arrow that breaks off": ("arrow", _arrow()[:60], broken("file 1")),
    "a line that breaks off": ("ndjson", b'{"id": 1', broken("file 1")),
    "a long line that breaks off": ("ndjson", b'{"id": "' + b"x" * 5_000_000, broken("file 1")),
}


@share(4)
@pytest.mark.parametrize("case", FILES)
def test_first_file_of_a_source_that_registers_its_dataset(incoming: Incoming, case: str) -> None:
    name, content, expected = FILES[case]
    form, _, packed = name.partition(".")
    if content is not None:
        incoming.put_bytes("1", content)
    config = {"path": incoming.folder.as_uri(), "format": form, "gzip": bool(packed)}
    check(two_rounds(incoming, {"kind": "files", "config": config}), expected)


@pytest.mark.parametrize("mode", ["continuous", "once"])
def test_rows_behind_many_files_without_one_are_found(incoming: Incoming, mode: str) -> None:
    for number in range(45):
        incoming.put_bytes(f"{number:02}", b"" if number % 2 else b"\n")
    source = two_rounds(incoming, {**incoming.source(dataset="fresh", create=CREATE), "mode": mode})
    assert source["last_error"]["type"] == "/problems/source-empty"
    assert source["state"] == ("finished" if mode == "once" else "active")
    assert ("is not registered" in source["last_error"]["detail"]) == (mode == "once")
    incoming.put("99", {"id": 1})
    path = f"/sources/{source['id']}"
    incoming.client.patch(path, json={"state": "active"}).raise_for_status()
    source = incoming.run(path)
    assert (source["last_error"], source["position"]["files"]) == (None, 46)
    assert incoming.rows("fresh") == [{"id": 1}]


def test_rows_without_a_value_are_read_if_others_have_one(incoming: Incoming) -> None:
    incoming.put_bytes("1", b"{}\n")
    incoming.put("2", {"note": "a"})
    source = two_rounds(incoming, {**incoming.source(), "dataset": "fresh", "create": {}})
    assert (source["state"], source["last_error"]) == ("finished", None)
    assert incoming.rows("fresh") == [{"note": "a"}, {"note": None}]


def test_source_that_waits_takes_the_dataset_that_others_register(incoming: Incoming) -> None:
    incoming.put_bytes("1", b"{}\n")
    source = two_rounds(incoming, {**incoming.source(), "dataset": "fresh", "create": CREATE})
    assert "register the dataset first" in source["last_error"]["detail"]
    fields = [{"name": "id", "type": "int64"}]
    incoming.client.post("/datasets", json={"name": "fresh", "schema": {"fields": fields}}).raise_for_status()
    path = f"/sources/{source['id']}"
    incoming.client.patch(path, json={"state": "active"}).raise_for_status()
    assert incoming.run(path)["last_error"] is None
    assert incoming.rows("fresh") == [{"id": None}]


def _answers(body: bytes, *headers: str, length: int | None = None) -> Callable[[str], Iterator[bytes]]:
    return lambda _path: iter([page(body, *headers, length=length)])


def _circle(path: str) -> Iterator[bytes]:
    following = {"a": "b", "b": "c"}.get(path.partition("after=")[2], "a")
    yield page(json.dumps({"rows": [{"id": 1}], "next": following}).encode())


def _pages_for_ever(path: str) -> Iterator[bytes]:
    number = int(path.partition("after=")[2] or 0)
    yield page(json.dumps({"rows": [], "next": number + 1}).encode())


def _bytes_for_ever(_path: str) -> Iterator[bytes]:
    yield page(b"[", length=2**40)
    yield from itertools.repeat(b" " * 65_536)


PAGE = b'{"rows": [{"id": 1}], "next": null}'
CHUNKED = "Transfer-Encoding: chunked"
PAGES: dict[str, tuple[Callable[[str], Iterator[bytes]], Expected]] = {
    "no record": (_answers(b'{"rows": []}'), WAITS_FOR_A_RECORD),
    "null": (_answers(b"null"), WAITS_FOR_A_RECORD),
    "a list that is null": (_answers(b'{"rows": null}'), WAITS_FOR_A_RECORD),
    "another list": (
        _answers(b'{"items": [{"id": 1}]}'),
        unusable('the member "rows" is missing: the page has only "items"; the first page has'),
    ),
    "an error with status 200": (
        _answers(b'{"error": "quota exceeded", "code": 3}'),
        unusable('the member "rows" is missing: the page has only "error", "code"'),
    ),
    "an empty object": (_answers(b"{}"), unusable('the member "rows" is missing: the page has no member')),
    "half a character": (
        _answers(b'{"rows": [{"id": "\\ud800"}]}'),
        Expected(state="failed", code="schema-mismatch", words="the first page: /rows/0/id: "),
    ),
    "half a character in the cursor": (
        _answers(b'{"rows": [{"id": 1}], "next": "\\ud800"}'),
        unusable("the member next: /: the text has the escape \\ud800, which is half of a surrogate pair"),
    ),
    "an empty body": (_answers(b""), unusable("the first page has 0 bytes")),
    "a page of the web": (_answers(b"<html>"), unusable("the first page has 6 bytes")),
    "invalid UTF-8": (_answers(b'{"rows": [{"id": "\xff"}]}'), broken("the first page")),
    "records without members": (_answers(b'{"rows": [{}]}'), unusable("has rows without a value")),
    "a body that is too short": (
        _answers(PAGE[:20], length=99),
        out_of_reach("the first page: it broke off after 20 bytes (99 were announced)"),
    ),
    "a chunk that breaks off": (
        _answers(b"23\r\n" + PAGE[:9], CHUNKED, length=-1),
        out_of_reach("the first page: it broke off after 9 bytes"),
    ),
    "chunks without an end": (
        _answers(b"23\r\n" + PAGE + b"\r\n", CHUNKED, length=-1),
        out_of_reach("the first page: it broke off after 35 bytes"),
    ),
    "a body without a length": (
        _answers(PAGE[:20], length=-1),
        out_of_reach("the first page: it broke off after 20 bytes"),
    ),
    "gzip that breaks off": (
        _answers(gzip.compress(PAGE)[:-9], "Content-Encoding: gzip"),
        out_of_reach("the end of gzip is missing"),
    ),
    "gzip that is none": (_answers(PAGE, "Content-Encoding: gzip"), unusable("not gzip")),
    "gzip": (_answers(gzip.compress(PAGE), "Content-Encoding: gzip"), REGISTERED),
    "another encoding": (_answers(PAGE, "Content-Encoding: br"), unusable("Content-Encoding 'br'")),
    "no answer": (lambda _path: iter(()), out_of_reach("does not answer")),
    "a circle": (_circle, unusable("the page at cursor 'c' is followed by the one at cursor 'a'")),
    "pages for ever": (_pages_for_ever, WAITS_FOR_A_RECORD),
    "bytes for ever": (_bytes_for_ever, unusable("pages of more than 33554432 bytes")),
}


@share(4)
@pytest.mark.parametrize("case", PAGES)
def test_first_page_of_a_source_that_registers_its_dataset(incoming: Incoming, case: str) -> None:
    answer, expected = PAGES[case]
    with http_bodies(answer) as url:
        config = {"url": url, "cursor_parameter": "after", "records": "rows", "next_cursor": "next"}
        check(two_rounds(incoming, {"kind": "http", "config": config}), expected)


ROWS: dict[str, tuple[Config, Expected]] = {
    "no row by watermark": ({"query": "SELECT 1 AS id WHERE false", "watermark": "id"}, WAITS_FOR_A_ROW),
    "no row of a snapshot": ({"query": "SELECT 1 AS id WHERE false"}, REGISTERED),
    "no row of unknown types": ({"query": "SELECT 1 AS id, '{}'::json AS doc WHERE false"}, WAITS_FOR_A_ROW),
    "a watermark that is null": (
        {"query": "SELECT 1 AS id, NULL::int AS seen", "watermark": "seen"},
        unusable("1 rows have no value in the column 'seen'"),
    ),
    "a query that is none": ({"query": "SELECT nothing"}, unusable("refuses the query")),
    "a row that fails": (
        {"query": "SELECT 1 / (3 - n) AS id FROM generate_series(1, 5) AS n"},
        unusable("division by zero"),
    ),
    "rows for ever": (
        {"query": "SELECT n AS id, 1 AS seen FROM generate_series(1, 10000000000) AS n", "watermark": "seen"},
        out_of_reach("takes more than"),
    ),
    "no server": ({"query": "SELECT 1 AS id", "port": 1}, out_of_reach("is out of reach")),
}


@share(3)
@pytest.mark.parametrize("case", ROWS)
def test_first_rows_of_a_source_that_registers_its_dataset(
    incoming: Incoming, postgres: TestServer, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Endless rows take that long.
    monkeypatch.setattr("app.features.sources.service.register._SAMPLE_SECONDS", 2.0)
    members, expected = ROWS[case]
    with postgres.fresh_database() as name:
        parts = urlsplit(postgres.owner_url(name))
        port = members.get("port", parts.port)
        config = {
            "url": f"postgresql://{parts.username}@{parts.hostname}:{port}{parts.path}",
            "password": parts.password,
            **{member: value for member, value in members.items() if member != "port"},
        }
        check(two_rounds(incoming, {"kind": "sql", "config": config}), expected)


CHANGED = {"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1, "note": "a"}]}}


def _endless_error(_path: str) -> Iterator[bytes]:
    yield page(b"no", length=2**40).replace(b"200 OK", b"500 No")
    yield from itertools.repeat(b"x" * 65_536)


def _status(status: str) -> Callable[[str], Iterator[bytes]]:
    return lambda _path: iter([page(b"").replace(b"200 OK", status.encode())])


RECEIVERS: dict[str, tuple[Callable[[str], Iterator[bytes]], int | None, str]] = {
    "nobody is there": (_status("404 Not Found"), 404, "Not Found"),
    "not modified": (_status("304 Not Modified"), 304, "Not Modified"),
    "a redirect": (_status("307 Temporary Redirect"), 307, "redirects are not followed"),
    "no answer": (lambda _path: iter(()), None, "RemoteDisconnected"),
    "no HTTP": (lambda _path: iter([b"\0\0\0\r\n\r\n"]), None, "BadStatusLine"),
    "an endless error": (_endless_error, 500, "noxxx"),
}


@share(3)
@pytest.mark.parametrize("case", RECEIVERS)
def test_receiver_that_takes_no_message(
    client: httpx2.Client, service: Service, orders: str, case: str
) -> None:
    answer, status, words = RECEIVERS[case]
    with http_bodies(answer) as url:
        made = client.post("/webhooks", json={"dataset": "orders", "url": url})
        assert made.status_code == 201, made.text
        path = made.headers["location"]
        webhook = client.get(path).json()
        assert (webhook["pending"], webhook["retry"], webhook["error"]) == (0, None, None)
        client.post(f"{orders}/writes", json=CHANGED).raise_for_status()
        # A second message is not begun as long as the first one waits.
        service.work()
        webhook = client.get(path).json()
        client.delete(path).raise_for_status()
    if webhook["retry"] is not None:
        assert (webhook["state"], webhook["pending"]) == ("active", 1)
        assert (webhook["retry"]["status"], webhook["retry"]["attempts"] > 0) == (status, True)
        assert words in webhook["retry"]["error"]
        assert webhook["retry"]["next_attempt_at"] is not None
    else:
        # On a slow machine, all attempts were made meanwhile.
        assert webhook["failures"] == 1


def test_view_that_cannot_be_computed(
    client: httpx2.Client, service: Service, new_view: Callable[..., Row], orders: str
) -> None:
    def fail(rows: list[Row]) -> list[Row]:
        if rows:
            raise DerivationFailed("division by zero", condition="DIVIDE_BY_ZERO")
        return []

    view = new_view("ratios", "SELECT id, 1 / (id - 1) AS ratio FROM orders", fail)
    path = view["links"]["self"]
    service.work()
    empty = client.get(path).json()
    assert (empty["freshness"], empty["error"]) == ("current", None)
    client.post(f"{orders}/writes", json=CHANGED).raise_for_status()
    service.work()
    failed = client.get(path).json()
    assert (failed["state"], failed["freshness"]) == ("active", "failed")
    assert "division by zero" in failed["error"]["detail"]
    [read] = failed["inputs"]
    assert (read["offset"], read["lag"]) == (0, 1)


def test_export_that_cannot_be_written(client: httpx2.Client, service: Service, orders: str) -> None:
    tenant = client.get("/me").json()["tenant"]["id"]
    folder = service.settings.data_dir / "outgoing" / tenant
    folder.mkdir(parents=True)
    (folder / "taken").write_text("not a folder")
    new = {
        "query": "changes",
        "format": "ndjson",
        "schedule": {"every_seconds": 60},
        "destination": (folder / "taken").as_uri(),
    }
    path = client.post(f"{orders}/exports", json=new).headers["location"]
    service.work()
    empty = client.get(path).json()
    assert (empty["state"], empty["offset"], empty["error"]) == ("active", 0, None)
    client.post(f"{orders}/writes", json=CHANGED).raise_for_status()
    client.post(f"{path}/runs").raise_for_status()
    service.work()
    failed = client.get(path).json()
    assert (failed["state"], failed["offset"]) == ("active", 0)
    assert failed["error"]["type"] == "/problems/destination-failed"
    assert "taken" in failed["error"]["detail"]
    assert failed["runs"][0]["state"] == "failed"
