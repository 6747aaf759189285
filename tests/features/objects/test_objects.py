"""Objects of tables: ranges, conditions, listings, by hand and with Arrow's client."""

from __future__ import annotations

import logging
import os
from base64 import urlsafe_b64encode
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pyarrow.fs as pafs
import pytest

from app.features.objects.values import BUCKET
from tests.features.objects.conftest import World
from tests.support.http import problem
from tests.support.tables_in_s3 import NAMESPACE, KnownContent, error_code, file_system
from tests.support.waiting import until

PATHS = ["a/1", "a/2", "a/b/1", "b", "country=DE/day=1%2F2 ü/f.avro", "z+~/&<x>'\".json"]


@pytest.mark.parametrize("in_memory", [False, True])
def test_object_is_sent_whole_and_in_parts(world: World, in_memory: bool) -> None:
    content = world.tree.contents["m.json"] = KnownContent(
        os.urandom(3_000_000), media_type="application/json", in_memory=in_memory
    )
    table = world.table()
    whole = table.get("notes/m.json")
    assert whole.status_code == 200
    assert whole.content == content.content
    assert whole.headers["etag"] == '"e1"'
    assert whole.headers["content-type"] == "application/json"
    assert max((count for _, count in content.reads), default=0) <= 1024 * 1024
    assert bool(content.reads) != in_memory
    for text, expected in (
        ("bytes=0-9", slice(0, 10)),
        ("bytes=2999990-", slice(2_999_990, None)),
        ("bytes=-7", slice(-7, None)),
        ("bytes=100-2500000", slice(100, 2_500_001)),
    ):
        part = table.get("notes/m.json", headers={"Range": text})
        assert part.status_code == 206
        assert part.content == content.content[expected]
        assert part.headers["content-range"].endswith("/3000000")
    beyond = table.get("notes/m.json", headers={"Range": "bytes=3000000-"})
    assert (beyond.status_code, error_code(beyond)) == (416, "InvalidRange")
    assert beyond.headers["content-range"] == "bytes */3000000"


def test_head_reads_no_byte(world: World) -> None:
    content = world.tree.contents["m.json"] = KnownContent(b"x" * 500_000)
    answer = world.table().send("HEAD", f"/{world.table().base}notes/m.json", {"Range": "bytes=0-9"})
    assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "500000", b"")
    assert content.reads == []
    assert world.table().send("HEAD", f"/{world.table().base}notes/other").status_code == 404


def test_conditions_name_the_etag(world: World) -> None:
    world.tree.contents["m.json"] = KnownContent(b"abc", etag="e7")
    table = world.table()
    for field, tag, status in (
        ("If-None-Match", '"e7"', 304),
        ("If-None-Match", '"e8"', 200),
        ("If-Match", '"e7"', 200),
        ("If-Match", '"e8"', 412),
    ):
        assert table.get("notes/m.json", headers={field: tag}).status_code == status


def test_listing_has_each_key_once_on_pages_of_any_size(world: World) -> None:
    world.tree.contents.update({path: KnownContent(b"x" * 7) for path in PATHS})
    table = world.table()
    expected = [f"{table.base}notes/{path}" for path in sorted(PATHS, key=str.encode)]
    for version in ("list-type=2&", ""):
        for size in (1, 2, 5, 1000):
            keys, after = [], ""
            for _ in range(len(PATHS) + 1):
                query = f"?{version}prefix={_quoted(table.base + 'notes')}&max-keys={size}{after}"
                document = ET.fromstring(table.send("GET", query).content)
                keys += [str(each.text) for each in document.findall(f"{NAMESPACE}Contents/{NAMESPACE}Key")]
                if document.findtext(f"{NAMESPACE}IsTruncated") == "false":
                    break
                token = document.findtext(f"{NAMESPACE}NextContinuationToken")
                mark = document.findtext(f"{NAMESPACE}NextMarker")
                after = f"&continuation-token={_quoted(token)}" if token else f"&marker={_quoted(str(mark))}"
            assert keys == expected


def test_listing_with_a_delimiter_has_each_folder_once(world: World) -> None:
    world.tree.contents.update({path: KnownContent(b"x") for path in PATHS})
    table = world.table()
    for size in (1, 2, 1000):
        prefixes, keys, after = [], [], ""
        for _ in range(len(PATHS) + 1):
            query = f"?list-type=2&delimiter=%2F&prefix={_quoted(table.base)}notes%2F&max-keys={size}{after}"
            document = ET.fromstring(table.send("GET", query).content)
            keys += [str(each.text) for each in document.findall(f"{NAMESPACE}Contents/{NAMESPACE}Key")]
            prefixes += [
                str(each.text) for each in document.findall(f"{NAMESPACE}CommonPrefixes/{NAMESPACE}Prefix")
            ]
            if document.findtext(f"{NAMESPACE}IsTruncated") == "false":
                break
            token = document.findtext(f"{NAMESPACE}NextContinuationToken")
            after = f"&continuation-token={_quoted(str(token))}"
        assert keys == [f"{table.base}notes/b"]
        assert prefixes == [f"{table.base}notes/{each}/" for each in ("a", "country=DE", "z+~")]


def test_arrow_reads_and_lists_a_table(world: World) -> None:
    world.tree.contents.update({path: KnownContent(path.encode() * 10) for path in PATHS})
    table = world.table()
    files = file_system(table)
    base = f"{BUCKET}/{table.base}notes"
    infos = files.get_file_info(pafs.FileSelector(base, recursive=True))
    assert {info.path for info in infos if info.is_file} == {f"{base}/{path}" for path in PATHS}
    for path in PATHS:
        with files.open_input_file(f"{base}/{path}") as file:
            assert file.read_at(3, 2) == (path.encode() * 10)[2:5]
            assert file.read() == path.encode() * 10
    with (
        pytest.raises(OSError, match=r"(?i)read only|access.denied"),
        files.open_output_stream(f"{base}/new") as out,
    ):
        out.write(b"x")
    with pytest.raises(OSError):
        files.delete_file(f"{base}/b")


def test_region_of_the_bucket(world: World) -> None:
    table = world.table()
    assert b"<LocationConstraint" in table.send("GET", "?location").content
    head = table.send("HEAD", "")
    assert (head.status_code, head.headers["x-amz-bucket-region"]) == (200, "us-east-1")


@pytest.mark.parametrize("query", ["?acl", "?versioning", "?uploads", "?list-type=2&prefix=x&wild=1"])
def test_other_requests_of_the_protocol_are_refused(
    world: World, query: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answer = world.table().send("GET", query)
        assert (answer.status_code, error_code(answer)) == (501, "NotImplemented")
        request_id = answer.headers["x-amz-request-id"]

        def lines() -> list[logging.LogRecord]:
            return [
                each for each in caplog.records if getattr(each, "facts", {}).get("request") == request_id
            ]

        until(lines, "the access line")
    # The service does what it should: its log has the request, and no error.
    records = lines()
    assert [(each.name, each.levelname) for each in records] == [("headwater.access", "INFO")]


@pytest.mark.parametrize(
    "query", ["prefix={base}data%2F0%2F%00", "prefix={base}&start-after={base}data%2F0%2F%00x",
              "prefix={base}&continuation-token={token}"],
)  # fmt: skip
def test_listing_with_a_nul_character_is_refused(world: World, query: str) -> None:
    table = world.table()
    token = urlsafe_b64encode(f"{table.base}data/0/\0".encode()).decode()
    values = {"base": _quoted(table.base), "token": _quoted(token)}
    answer = table.send("GET", f"?list-type=2&{query.format(**values)}")
    assert (answer.status_code, error_code(answer)) == (400, "InvalidArgument")


def test_listing_of_characters_that_xml_cannot_have_is_a_document(world: World) -> None:
    table = world.table()
    answer = table.send("GET", f"?delimiter=%01&prefix={_quoted(table.base)}%02")
    assert answer.status_code == 200
    assert ET.fromstring(answer.content).findtext(f"{NAMESPACE}Prefix") == f"{table.base}\ufffd"


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_writes_are_refused_with_what_to_do_instead(world: World, method: str) -> None:
    table = world.table()
    for answer in (
        table.send(method, f"/{table.base}notes/m.json"),
        table.send(method, "?delete"),
        table.send(method, f"/{table.base}m", body_hash="STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
    ):
        assert (answer.status_code, error_code(answer)) == (403, "AccessDenied")
        assert "POST /datasets/{dataset}/writes" in answer.text


def test_problems_of_other_paths_are_documents(world: World) -> None:
    problem(world.client.get("/datasets/none"), 404, "not-found")


def _quoted(text: str) -> str:
    return quote(text, safe="")
