"""The storage of the cluster by itself: files on a real S3 server, and links to them."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
import msgspec
import pytest
from botocore.session import Session

from app.infra.errors import StorageUnavailable
from app.infra.files.checksums import verify
from app.infra.files.errors import CorruptFile, DestinationFailed
from app.infra.files.folders.destination import open_destination
from app.infra.files.s3.links import StorageLinks, storage_links
from app.infra.files.s3.orphaned_parts import orphaned_parts
from app.infra.files.storage import ArrowStorage, create_bucket, open_storage
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput
from clients.cluster.programs import Programs
from tests.support.s3_server import S3Server
from tests.support.threads import together
from tests.support.waiting import until

URI = "s3://headwater/some tables"
PATH = "t/d/exports/day=1/part 1.csv"
# Several parts of a multi-part upload.
CONTENT = bytes(range(256)) * (80 * 1024)


@pytest.fixture(scope="module")
def server(programs: Programs) -> Iterator[S3Server]:
    """An S3 server with the bucket, and the environment of its clients."""
    with S3Server.running(programs.versitygw) as server:
        create_bucket(URI)
        yield server


@pytest.fixture(scope="module")
def storage(server: S3Server) -> ArrowStorage:
    storage = open_storage(URI)
    assert isinstance(storage, ArrowStorage)
    return storage


@pytest.fixture(scope="module")
def link(storage: ArrowStorage) -> str:
    with storage.create(PATH) as file:
        file.write(CONTENT)
    return links(60).download(PATH, name="rows.csv", media_type="text/csv")


def links(seconds: int) -> StorageLinks:
    made = storage_links(URI, endpoint="", seconds=seconds, environment=os.environ)
    assert made is not None
    return made


def fetched(url: str, **headers: str) -> httpx2.Response:
    return httpx2.get(url, headers=headers, trust_env=False, timeout=30)


def test_files_of_many_parts_are_read_and_deleted(storage: ArrowStorage) -> None:
    with storage.create("t/d/many") as file:
        file.write(CONTENT)
    assert storage.size("t/d/many") == len(CONTENT)
    assert storage.open("t/d/many").read() == CONTENT
    assert "t/d/many" in {path for path, _ in storage.list("t/d")}
    storage.delete(["t/d/many"])
    with pytest.raises(CorruptFile):
        storage.size("t/d/many")


def test_files_are_written_and_read_while_the_server_is_killed_and_away(
    storage: ArrowStorage, server: S3Server
) -> None:
    stopping, written = threading.Event(), []

    def write() -> None:
        while not stopping.is_set():
            path = f"t/d/{len(written)}"
            # One request, and a multi-part upload.
            content = CONTENT[: 1_000 if len(written) % 2 else None]
            # The client repeats requests after random times, so its attempts may all be made while the server is away.
            # The attempts of a job are then repeated, as here.
            with suppress(StorageUnavailable):
                with storage.create(path) as file:
                    file.write(content)
                with storage.open(path) as file:
                    assert file.read() == content
                written.append(path)

    def kill() -> None:
        try:
            until(lambda: len(written) >= 3, "the first files")
            before = len(written)
            for _ in range(2):
                server.kill_for(1)
            until(lambda: len(written) >= before + 3, "files after the kills")
        finally:
            stopping.set()

    together([write, kill])
    assert {path for path, _ in storage.list("t/d")} >= set(written)
    storage.delete(written)
    storage.delete(written)
    assert not {path for path, _ in storage.list("t/d")} & set(written)


def test_link_downloads_the_file_without_a_credential(link: str) -> None:
    answer = fetched(link)
    assert (answer.status_code, answer.content == CONTENT) == (200, True)
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="rows.csv"'
    part = fetched(link, Range="bytes=5-9")
    assert (part.status_code, part.content) == (206, CONTENT[5:10])


def test_link_is_for_nothing_else(link: str) -> None:
    assert fetched(link.partition("?")[0]).status_code == 403
    assert fetched(link.replace("part%201", "part%202")).status_code == 403
    assert fetched(link.replace("X-Amz-Expires=60", "X-Amz-Expires=61")).status_code == 403
    assert httpx2.put(link, content=b"x", trust_env=False).status_code == 403
    assert httpx2.delete(link, trust_env=False).status_code == 403
    place = urlsplit(link)
    assert fetched(f"{place.scheme}://{place.netloc}/headwater?{place.query}").status_code == 403


def test_link_expires(link: str) -> None:
    short = links(1).download(PATH, name="rows.csv", media_type="text/csv")
    until(lambda: fetched(short).status_code == 403, "the link to expire", seconds_max=30)
    assert fetched(link).status_code == 200


def test_link_to_upload_takes_the_announced_bytes_and_no_others(storage: ArrowStorage) -> None:
    content, path = b"id,note\n1,a\n", "t/d/uploads/u 1"
    url, headers = links(60).upload(path, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())

    def sent(body: bytes, **changed: str) -> int:
        return httpx2.put(
            url, content=body, headers=headers | changed, trust_env=False, timeout=30
        ).status_code

    assert sent(content.replace(b"a", b"b")) == 400
    longer = {"Content-Length": str(len(content) + 1)}
    assert sent(content + b"2", **longer) == 403
    with pytest.raises(CorruptFile):
        storage.size(path)
    assert sent(content) == 200
    assert storage.open(path).read() == content
    # The digest is that which the upload has in the database, so it is checked before the rows are read.
    upload = RawInput(
        path=path,
        size_bytes=len(content),
        checksum=hashlib.sha256(content).hexdigest(),
        format=Format.CSV,
    )
    verify(upload, storage.open(path))
    with pytest.raises(CorruptFile, match="checksum"):
        verify(msgspec.structs.replace(upload, checksum="0" * 64), storage.open(path))
    assert httpx2.get(url, trust_env=False).status_code == 403


def test_parts_that_no_process_completes_are_removed(storage: ArrowStorage) -> None:
    client = Session().create_client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    parts = orphaned_parts(URI, os.environ)
    assert parts is not None
    # Those that other tests have left, which end the server while it is written to.
    parts.abort(-60)
    keys = ["some tables/t/d/data/1", "some tables/t/d/data/2", "other tables/1"]
    for key in keys:
        begun = client.create_multipart_upload(Bucket="headwater", Key=key)
        client.upload_part(
            Bucket="headwater", Key=key, UploadId=begun["UploadId"], PartNumber=1, Body=b"1" * 1024
        )

    def unfinished() -> list[str]:
        found = client.list_multipart_uploads(Bucket="headwater").get("Uploads", [])
        return sorted(each["Key"] for each in found)

    assert parts.abort(3600) == 0
    assert unfinished() == sorted(keys)
    assert parts.abort(-60) == 2
    assert unfinished() == ["other tables/1"]
    assert parts.abort(-60) == 0
    missing = orphaned_parts("s3://missing/x", os.environ)
    assert missing is not None
    with pytest.raises(StorageUnavailable, match="NoSuchBucket"):
        missing.abort(0)


def test_destinations_are_written_whole(storage: ArrowStorage) -> None:
    uri = "s3://headwater/outgoing/some orders/run-000001"
    destination = open_destination(uri, ["s3://headwater/outgoing"])
    destination.put("part 1.csv", [CONTENT[:1_000_000], CONTENT[1_000_000:]])
    destination.put("manifest.json", [b"{}"])
    written = open_storage("s3://headwater/outgoing/some orders/run-000001")
    with written.open("part 1.csv") as file:
        assert file.read() == CONTENT
    assert sorted(name for name, _ in written.list("")) == ["manifest.json", "part 1.csv"]
    with pytest.raises(DestinationFailed, match="cannot be written to s3://missing/x"):
        open_destination("s3://missing/x", ["s3://missing"]).put("part", [b"1"])
