"""Object storage: files by path below one root, on a local disk or on S3.

A path is written once and never again. On a local disk a closed file and its folder entry are synced, so that
acknowledged data survive a crash of the machine. Files that can be made again are not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from app.infra.errors import StorageUnavailable
from app.infra.files.errors import CorruptFile
from app.infra.files.file_parts import ArrowFileParts, LocalFileParts
from app.infra.outages import fault_of_disk
from app.kernel.format.errors import HeadwaterError

_S3_TIMEOUT_SECONDS = 30.0
# After 5xx, a slow-down or a broken connection, with random pauses of up to 1, 2, 4 and 8 s between them.
_S3_ATTEMPTS_MAX = 5
_DURABLE_FOLDERS_MAX = 10_000
# Files that are synced together are open until then.
_UNSYNCED_MAX = 64
# The file in the data directory that records that the folder of the storage was made.
_MADE = "storage-made"


class LocalStorage:
    """A folder of a file system that all processes share.

    The folder is made once, by `prepare_storage`. If it is missing later, its disk is away.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._durable_folders: set[Path] = set()

    @contextmanager
    def create(self, path: str, *, durable: bool = True) -> Iterator[BinaryIO]:
        """A writer for a new file, which survives a crash after leaving if `durable`; an exception leaves none.

        Raises StorageFull, StorageUnavailable.
        """
        target = self.root / path
        try:
            self._make_folders(target.parent)
            with target.open("xb", buffering=1024 * 1024) as file:
                try:
                    yield file
                    file.flush()
                    if durable:
                        self._make_durable(target, file.fileno())
                except BaseException:
                    target.unlink(missing_ok=True)
                    raise
        except FileNotFoundError as error:
            raise _away(path) from error
        except OSError as error:
            raise fault_of_disk(error, path) or error from error

    @contextmanager
    def synced_together(self) -> Iterator[LocalStorage]:
        """The same storage for one thread. Its new files are durable on leaving, for less than if each is synced apart.

        Nothing may refer to them before; after an exception, they may not be durable. Raises StorageFull,
        StorageUnavailable.
        """
        together = _SyncedTogether(self.root, self._durable_folders)
        try:
            yield together
            together.sync()
        finally:
            together.close()

    def open(self, path: str) -> pa.NativeFile:
        """A memory-mapped reader. Raises CorruptFile if there is no such file, StorageUnavailable."""
        target = self.root / path
        with self._faults(path):
            return pa.memory_map(str(target)) if target.stat().st_size else pa.BufferReader(b"")

    def parts(self, path: str) -> LocalFileParts:
        """The opened file. Raises CorruptFile if there is no such file, StorageUnavailable."""
        with self._faults(path):
            descriptor = os.open(self.root / path, os.O_RDONLY | os.O_CLOEXEC)
        return LocalFileParts(descriptor, partial(self._faults, path))

    def size(self, path: str) -> int:
        """Bytes in the file. Raises CorruptFile if there is no such file, StorageUnavailable."""
        with self._faults(path):
            return (self.root / path).stat().st_size

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files. Missing files are not an error."""
        for path in paths:
            (self.root / path).unlink(missing_ok=True)

    def list(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Files below a folder, with the times of their last write. Raises StorageUnavailable."""

        def failed(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                raise fault_of_disk(error, prefix) or error from error
            if not self.root.is_dir():
                raise _away(prefix) from error

        for folder, _, names in os.walk(self.root / prefix, onerror=failed):
            for name in names:
                file = Path(folder, name)
                with suppress(FileNotFoundError):
                    yield str(file.relative_to(self.root)), datetime.fromtimestamp(file.stat().st_mtime, UTC)

    @contextmanager
    def _faults(self, path: str) -> Iterator[None]:
        """Converts errors of the system while a file is opened, or files are synced."""
        try:
            yield
        except FileNotFoundError as error:
            # The disk may be back at any moment: only a file that is missing while its root is there is lost.
            lost = not (self.root / path).exists() and self.root.is_dir()
            raise _missing(path) if lost else _away(path) from error
        except OSError as error:
            raise fault_of_disk(error, path) or error from error

    def _make_durable(self, target: Path, descriptor: int) -> None:
        """Syncs a new file and its entry in the folder."""
        os.fsync(descriptor)
        _sync_folder(target.parent)

    def _make_folders(self, folder: Path) -> None:
        """Creates missing folders below the root, and syncs their entries. Raises StorageUnavailable without a root.

        An entry that this process has not synced is synced even if the folder exists: the process that made the folder
        may not have synced it yet.
        """
        exists = folder.is_dir()
        if exists and (folder in self._durable_folders or self.root not in folder.parents):
            return
        if folder == self.root:
            raise _away(str(folder))
        self._make_folders(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir()
        _sync_folder(folder.parent)
        if len(self._durable_folders) >= _DURABLE_FOLDERS_MAX:
            self._durable_folders.clear()
        self._durable_folders.add(folder)


class _SyncedTogether(LocalStorage):
    """A storage whose new files are not durable before `sync`, or before there are many of them."""

    def __init__(self, root: Path, durable_folders: set[Path]) -> None:
        super().__init__(root)
        self._durable_folders = durable_folders
        self._unsynced: dict[Path, int] = {}

    def _make_durable(self, target: Path, descriptor: int) -> None:
        # An error in writing the file is reported to a descriptor that is open since then.
        self._unsynced[target] = os.dup(descriptor)
        if len(self._unsynced) >= _UNSYNCED_MAX:
            self._sync()

    def sync(self) -> None:
        """Makes the files durable. Raises StorageFull, StorageUnavailable."""
        with self._faults(str(self.root)):
            self._sync()

    def _sync(self) -> None:
        for descriptor in self._unsynced.values():
            os.fsync(descriptor)
        for folder in {target.parent for target in self._unsynced}:
            _sync_folder(folder)
        self.close()

    def close(self) -> None:
        """Lets go of the files."""
        while self._unsynced:
            os.close(self._unsynced.popitem()[1])


class ArrowStorage:
    """A bucket (or another file system that Arrow supports), below a prefix."""

    def __init__(self, file_system: pafs.FileSystem, root: str) -> None:
        self._file_system = file_system
        self._root = root.strip("/")

    def _absolute(self, path: str) -> str:
        return f"{self._root}/{path}"

    @contextmanager
    def synced_together(self) -> Iterator[ArrowStorage]:
        """The storage itself: a new object is durable when it is closed."""
        yield self

    @contextmanager
    def create(self, path: str, *, durable: bool = True) -> Iterator[BinaryIO]:  # noqa: ARG002
        """A writer for a new object, durable on leaving in any case; on an exception, no object is left.

        Raises StorageUnavailable.
        """
        target = self._absolute(path)
        with _arrow_faults(path):
            stream = self._file_system.open_output_stream(target)
            try:
                yield cast(BinaryIO, stream)
                stream.close()
            except BaseException:
                with suppress(OSError):
                    stream.close()
                    self._file_system.delete_file(target)
                raise

    def open(self, path: str) -> pa.NativeFile:
        """A reader with ranged requests. Raises CorruptFile if there is no such object, StorageUnavailable."""
        with _arrow_faults(path):
            return self._file_system.open_input_file(self._absolute(path))

    def parts(self, path: str) -> ArrowFileParts:
        """The opened object. Raises CorruptFile if there is no such object, StorageUnavailable."""
        return ArrowFileParts(self.open(path), partial(_arrow_faults, path))

    def size(self, path: str) -> int:
        """Bytes in the object. Raises CorruptFile if there is no such object, StorageUnavailable."""
        with _arrow_faults(path):
            info = self._file_system.get_file_info(self._absolute(path))
        if info.type is not pafs.FileType.File:
            raise _missing(path)
        return int(info.size)

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes objects. Missing objects are not an error. Raises StorageUnavailable."""
        for path in paths:
            with _arrow_faults(path), suppress(FileNotFoundError):
                self._file_system.delete_file(self._absolute(path))

    def list(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Objects below a prefix, with the times of their last write. Raises StorageUnavailable."""
        selector = pafs.FileSelector(self._absolute(prefix), allow_not_found=True, recursive=True)
        with _arrow_faults(prefix):
            infos = self._file_system.get_file_info(selector)
        for info in infos:
            if info.type is pafs.FileType.File:
                yield info.path[len(self._root) + 1 :], info.mtime


Storage = LocalStorage | ArrowStorage


@cache
def open_storage(uri: str) -> Storage:
    """The storage at `file:///folder` or `s3://bucket/prefix` (S3 credentials come from the usual AWS variables).

    Cached, since every Spark task uses it.
    """
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return LocalStorage(Path(unquote(parts.path)))
    if parts.scheme == "s3":
        return ArrowStorage(s3_file_system(os.environ), f"{parts.netloc}{unquote(parts.path)}")
    raise ValueError(f"expected file:///folder or s3://bucket/prefix as storage, got {uri!r}")


def prepare_storage(storage: Storage, uri: str, data_dir: Path) -> None:
    """Makes the folder of a new installation: once, as a file in `data_dir` records.

    A folder that is missing later is on a disk that is away. A folder made in its place would hide the tables.
    """
    marker = data_dir / _MADE
    if isinstance(storage, ArrowStorage) or (marker.exists() and marker.read_text(encoding="utf-8") == uri):
        return
    storage.root.mkdir(parents=True, exist_ok=True)
    data_dir.mkdir(parents=True, exist_ok=True)
    marker.write_text(uri, encoding="utf-8")


def create_bucket(uri: str) -> None:
    """Creates the bucket of `s3://bucket/prefix` unless it exists; of a folder, nothing. Raises OSError."""
    parts = urlsplit(uri)
    if parts.scheme == "s3":
        s3_file_system(os.environ, creates_buckets=True).create_dir(parts.netloc)


def is_new(storage: LocalStorage, data_dir: Path) -> bool:
    """Whether the folder is still to be made, since no process has started with this data directory."""
    return not storage.root.exists() and not (data_dir / _MADE).exists()


def _missing(path: str) -> HeadwaterError:
    return CorruptFile(f"the file {path} is missing", path=path)


def _away(path: str) -> HeadwaterError:
    return StorageUnavailable("The storage is not available: its folder is missing", path=path)


@contextmanager
def _arrow_faults(path: str) -> Iterator[None]:
    """Converts errors of a file system of Arrow: it reports malformed bytes elsewhere."""
    try:
        yield
    except FileNotFoundError as error:
        raise _missing(path) from error
    except OSError as error:
        raise fault_of_disk(error, path) or StorageUnavailable(
            f"The storage does not work: {error}", path=path
        ) from error


def s3_file_system(environment: Mapping[str, str], *, creates_buckets: bool = False) -> pafs.FileSystem:
    """S3, or a service with its protocol at AWS_ENDPOINT_URL."""
    endpoint = urlsplit(environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL", ""))
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return pafs.S3FileSystem(
        region=region,
        endpoint_override=endpoint.netloc or None,
        scheme=endpoint.scheme or "https",
        allow_bucket_creation=creates_buckets,
        # A small object is one request instead of the three of a multi-part upload.
        allow_delayed_open=True,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_S3_ATTEMPTS_MAX),
        connect_timeout=_S3_TIMEOUT_SECONDS,
        request_timeout=_S3_TIMEOUT_SECONDS,
    )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
