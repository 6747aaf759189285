"""Downloads of exported files, whole and in part."""

import pytest

from tests.support.exports import exported
from tests.support.http import problem, upsert


@pytest.fixture(scope="module")
def file(service):
    """A client, the path of a file of two lines, and its content."""
    with service.client(service.new_key("downloader")) as client:
        body = {
            "name": "orders",
            "schema": {"fields": [{"name": "id", "type": "int64"}]},
            "record_key": ["id"],
        }
        path = client.post("/datasets", json=body).headers["location"]
        client.post(f"{path}/writes", json=upsert(*({"id": number} for number in range(200))))
        service.work()
        run = exported(client, service, path, query="incremental", format="ndjson")
        link = run["files"][0]["links"]["self"]
        yield client, link, client.get(link).content


def test_download_has_size_name_and_checksum(file):
    client, link, content = file
    answer = client.get(link)
    run = client.get(link.partition("/files/")[0]).json()
    (listed,) = run["files"]
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-length"] == str(len(content)) == str(listed["size_bytes"])
    assert answer.headers["content-disposition"] == f'attachment; filename="{listed["name"]}"'
    assert answer.headers["accept-ranges"] == "bytes"
    assert f"xxh3-128:{answer.headers['etag'].strip(chr(34))}" == listed["checksum"]
    head = client.head(link)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "content-length", "etag", "accept-ranges", "content-disposition"):
        assert head.headers[name] == answer.headers[name]


@pytest.mark.parametrize(
    ("requested_range", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=5-9", 5, 9),
        ("Bytes = 5-9", 5, 9),
        ("bytes=10-", 10, None),
        ("bytes=-7", -7, None),
        ("bytes=-99999999", 0, None),
        ("bytes=3-99999999", 3, None),
    ],
)
def test_range_request_returns_the_requested_bytes(file, requested_range, first, last):
    client, link, content = file
    answer = client.get(link, headers={"Range": requested_range})
    expected = content[first:] if last is None else content[first : last + 1]
    assert (answer.status_code, answer.content) == (206, expected)
    begin = first % len(content)
    end = begin + len(expected) - 1
    assert answer.headers["content-range"] == f"bytes {begin}-{end}/{len(content)}"
    assert answer.headers["content-length"] == str(len(expected))


@pytest.mark.parametrize(
    "requested_range", ["bytes=0-1,4-5", "lines=0-1", "bytes=", "bytes=9-5", "bytes=x-", "bytes=--1"]
)
def test_range_other_than_one_byte_range_is_ignored(file, requested_range):
    client, link, content = file
    answer = client.get(link, headers={"Range": requested_range})
    assert (answer.status_code, answer.content) == (200, content)


@pytest.mark.parametrize("requested_range", ["bytes=99999999-", "bytes=99999999-100000000", "bytes=-0"])
def test_range_beyond_the_end_is_refused(file, requested_range):
    client, link, content = file
    answer = client.get(link, headers={"Range": requested_range})
    assert problem(answer, 416, "range-not-satisfiable")["size_bytes"] == len(content)
    assert answer.headers["content-range"] == f"bytes */{len(content)}"


def test_head_ignores_a_range(file):
    client, path, content = file
    answer = client.head(path, headers={"Range": "bytes=0-1"})
    assert (answer.status_code, answer.headers["content-length"]) == (200, str(len(content)))


def test_if_range_continues_only_the_same_file(file):
    client, link, content = file
    tag = client.head(link).headers["etag"]
    same = client.get(link, headers={"Range": "bytes=4-", "If-Range": tag})
    assert (same.status_code, same.content) == (206, content[4:])
    other = client.get(link, headers={"Range": "bytes=4-", "If-Range": '"another"'})
    assert (other.status_code, other.content) == (200, content)
    dated = client.get(link, headers={"Range": "bytes=4-", "If-Range": "Sat, 21 Nov 2026 00:00:00 GMT"})
    assert dated.status_code == 200


def test_unlisted_file_is_not_found(file):
    client, link, _ = file
    folder = link.rpartition("/")[0]
    for name in ("part-00099-00000.ndjson", "%2e%2e", "%00", "manifest"):
        problem(client.get(f"{folder}/{name}"), 404, "not-found")
    problem(client.get(link.replace("/runs/1/", "/runs/2/")), 404, "not-found")
    problem(client.get(link.replace("/runs/1/", "/runs/0/")), 400, "invalid-request")


def test_download_requires_the_read_scope(new_client, file):
    reader, link = new_client(("read",)), file[1]
    # It is another tenant's, but it was requested by one who may.
    assert [reader.request(method, link).status_code for method in ("GET", "HEAD")] == [404, 404]
    writer = new_client(("write",))
    assert [writer.request(method, link).status_code for method in ("GET", "HEAD")] == [403, 403]


def test_damaged_file_is_not_sent(service, file):
    client, link, content = file
    root = service.settings.data_dir / "storage"
    (stored,) = root.glob(f"*/*/exports/{link.split('/')[2]}/*/*.ndjson")
    stored.write_bytes(content[:-1])
    try:
        problem(client.get(link), 500, "corrupt-file")
    finally:
        stored.write_bytes(content)
