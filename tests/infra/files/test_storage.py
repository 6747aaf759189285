"""The storage port, on a local folder and on a file system of Arrow's (which is how S3 is reached)."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pyarrow.fs as pafs
import pytest

from app.infra.errors import StorageFull, StorageUnavailable
from app.infra.files.errors import CorruptFile
from app.infra.files.storage import ArrowStorage, LocalStorage, Storage, open_storage, prepare_storage


@pytest.fixture(params=["local", "arrow"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return LocalStorage(tmp_path)
    # What S3 does by itself, and a local file system does not: folders come into being with their files.
    return ArrowStorage(_MakesFolders(tmp_path), "")


class _MakesFolders:
    """Arrow's local file system below a folder, with S3's habit of needing no folders."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._below = pafs.SubTreeFileSystem(str(root), pafs.LocalFileSystem())

    def open_output_stream(self, path: str) -> object:
        (self._root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        return self._below.open_output_stream(path.lstrip("/"))

    def open_input_file(self, path: str) -> object:
        return self._below.open_input_file(path.lstrip("/"))

    def delete_file(self, path: str) -> None:
        self._below.delete_file(path.lstrip("/"))

    def get_file_info(self, what: str | pafs.FileSelector) -> object:
        if isinstance(what, str):
            return self._below.get_file_info(what.lstrip("/"))
        return [
            _Absolute(info)
            for info in self._below.get_file_info(
                pafs.FileSelector(what.base_dir.lstrip("/"), allow_not_found=True, recursive=True)
            )
        ]


class _Absolute:
    def __init__(self, info: pafs.FileInfo) -> None:
        self.type, self.mtime, self.path = info.type, info.mtime, f"/{info.path}"


def put(storage: Storage, path: str, content: bytes) -> None:
    with storage.create(path) as file:
        file.write(content)


def test_stored_file_is_read_back(storage: Storage) -> None:
    put(storage, "t/d/data/day=1/a b.parquet", b"12345")
    assert storage.size("t/d/data/day=1/a b.parquet") == 5
    assert storage.open("t/d/data/day=1/a b.parquet").read() == b"12345"


def test_empty_file_is_stored(storage: Storage) -> None:
    put(storage, "t/empty", b"")
    assert (storage.size("t/empty"), storage.open("t/empty").read()) == (0, b"")


def test_parts_of_a_file_are_read(storage: Storage) -> None:
    content = os.urandom(300_000)
    put(storage, "t/part", content)
    parts = storage.parts("t/part")
    assert parts.read(0, 300_000) == content
    assert parts.read(299_990, 100) == content[-10:]
    for start, count in ((0, 1), (1_000, 100_000), (299_990, 10)):
        # Whether the memory has the bytes is up to the system; it never has others, nor a part of them.
        assert parts.read_in_memory(start, count) in (None, content[start : start + count])
        assert parts.read(start, count) == content[start : start + count]
    assert parts.read_in_memory(299_990, 11) is None
    with pytest.raises(CorruptFile):
        storage.parts("t/other")


def test_file_is_closed_once_its_parts_are_not_needed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    put(storage, "part", b"12345")

    def descriptors() -> int:
        return sum(link.resolve() == tmp_path / "part" for link in Path("/proc/self/fd").iterdir())

    parts = storage.parts("part")
    assert descriptors() == 1
    del parts
    assert descriptors() == 0


def test_aborted_writer_leaves_no_file(storage: Storage) -> None:
    def half() -> None:
        with storage.create("t/half") as file:
            file.write(b"half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        half()
    assert list(storage.list("t")) == []
    with pytest.raises(CorruptFile):
        storage.size("t/half")


def test_missing_file_is_named(storage: Storage) -> None:
    for read in (storage.open, storage.size):
        with pytest.raises(CorruptFile) as caught:
            read("t/gone")
        assert caught.value.facts == {"path": "t/gone"}


def test_repeated_delete_is_no_error(storage: Storage) -> None:
    put(storage, "t/a", b"1")
    storage.delete(["t/a", "t/never"])
    storage.delete(["t/a"])
    assert list(storage.list("t")) == []


def test_listing_returns_files_below_a_prefix_with_their_times(storage: Storage) -> None:
    for path in ("t/d/data/x", "t/d/staged/y", "t/other/z"):
        put(storage, path, b"1")
    found = dict(storage.list("t/d"))
    assert sorted(found) == ["t/d/data/x", "t/d/staged/y"]
    assert all(datetime.now(UTC) - written < timedelta(minutes=1) for written in found.values())
    assert list(storage.list("t/none")) == []


def test_path_is_written_once(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    put(storage, "a", b"1")
    with pytest.raises(FileExistsError):
        put(storage, "a", b"2")
    assert storage.open("a").read() == b"1"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_raises_storage_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    def full(_: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        put(LocalStorage(tmp_path), "a", b"1")
    assert list(LocalStorage(tmp_path).list("")) == []


def test_storage_uri_selects_the_storage(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    put(open_storage((tmp_path / "a b").as_uri()), "x", b"1")
    assert (tmp_path / "a b" / "x").read_bytes() == b"1"
    assert isinstance(open_storage("s3://bucket/prefix"), ArrowStorage)
    with pytest.raises(ValueError, match="file:///folder or s3://bucket"):
        open_storage("ftp://host/x")


def test_folder_of_a_new_installation_is_made_once_and_its_absence_is_an_outage(tmp_path: Path) -> None:
    root, away = tmp_path / "disk" / "lake", tmp_path / "away"
    storage = LocalStorage(root)
    prepare_storage(storage, root.as_uri(), tmp_path / "data")
    put(storage, "a/b", b"1")
    root.rename(away)
    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            put(storage, "a/c", b"1")
        with pytest.raises(StorageUnavailable):
            storage.open("a/b")
        with pytest.raises(StorageUnavailable):
            storage.size("a/b")
        # A process that starts meanwhile makes no folder in its place.
        storage = LocalStorage(root)
        prepare_storage(storage, root.as_uri(), tmp_path / "data")
        assert not root.exists()
    away.rename(root)
    assert storage.open("a/b").read() == b"1"
    with pytest.raises(CorruptFile):
        storage.open("a/c")


def test_fault_of_s3_is_an_outage_and_not_damage(tmp_path: Path) -> None:
    class Away(_MakesFolders):
        def open_input_file(self, path: str) -> object:
            raise OSError("When reading: AWS Error NETWORK_CONNECTION during HeadObject operation")

        get_file_info = open_output_stream = open_input_file

    storage = ArrowStorage(Away(tmp_path), "")
    for use in (lambda: storage.open("a"), lambda: storage.size("a"), lambda: put(storage, "a", b"1")):
        with pytest.raises(StorageUnavailable):
            use()


def _of_s3(*_: object) -> None:
    raise OSError("AWS Error SLOW_DOWN during HeadObject operation: Please reduce your request rate.")


class _SlowedDown:
    """A file system of Arrow's that S3 refuses every request."""

    open_output_stream = open_input_file = delete_file = get_file_info = staticmethod(_of_s3)


def test_faults_of_s3_are_named_as_those_of_the_storage() -> None:
    storage = ArrowStorage(_SlowedDown(), "bucket/tables")

    def create() -> None:
        with storage.create("a") as file:
            file.write(b"a")

    for use in (
        create,
        lambda: storage.open("a"),
        lambda: storage.size("a"),
        lambda: storage.delete(["a"]),
        lambda: list(storage.list("")),
    ):
        with pytest.raises(StorageUnavailable, match="SLOW_DOWN"):
            use()


def test_small_file_is_one_request_to_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []

    class Bucket(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            requests.append(self.command)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("ETag", '"one"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_PUT(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with HTTPServer(("127.0.0.1", 0), Bucket) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "test")
        put(open_storage(f"s3://bucket/tables-{server.server_port}"), "data/new.parquet", b"rows" * 20_000)
        server.shutdown()
    assert requests == ["PUT"]


def test_requests_that_s3_slows_down_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = [503, 500, 200]

    class Bucket(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(statuses.pop(0))
            self.send_header("Content-Length", "7")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with HTTPServer(("127.0.0.1", 0), Bucket) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "test")
        assert open_storage(f"s3://bucket/tables-{server.server_port}").size("file") == 7
        server.shutdown()
    assert statuses == []
