"""The folder of a backup: a file for each table, and the manifest. Only its owner may read it."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from app.infra.runtime.private_file import write_private
from app.process.backup.manifest import FORMAT, BackupError, BackupManifest, TableContent

_MANIFEST: Final = "manifest.json"
_STEP_BYTES: Final = 1024 * 1024
# Most of the ratio of higher levels, in a third of their time.
_LEVEL: Final = 3


class _Hashed(io.RawIOBase):
    """A file that is written once, with its size and its SHA-256."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._file.write(view)
        self.digest.update(view)
        self.size_bytes += view.nbytes
        return view.nbytes


def make_folder(folder: Path) -> None:
    """Makes the folder of a new backup. Raises BackupError if it has files."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(folder.iterdir()):
            raise BackupError(f"{folder} is not empty: name a new folder for each backup")
        folder.chmod(0o700)
    except OSError as error:
        raise BackupError(f"{folder} cannot be written: {error.strerror}") from error


def write_table(
    folder: Path, name: str, columns: Sequence[str], copy: Callable[[Callable[[bytes], Any]], int]
) -> TableContent:
    """Writes the rows of a table. `copy`: writes them with the function that it gets, and returns their number."""
    path = folder / f"{name}.copy.gz"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        hash_sink = _Hashed(file)
        with gzip.GzipFile(
            filename="", fileobj=hash_sink, mode="wb", compresslevel=_LEVEL, mtime=0
        ) as gzip_file:
            rows = copy(gzip_file.write)
        file.flush()
        os.fsync(file.fileno())
    return TableContent(
        name=name,
        columns=tuple(columns),
        rows=rows,
        file=path.name,
        size_bytes=hash_sink.size_bytes,
        sha256=hash_sink.digest.hexdigest(),
    )


def write_manifest(folder: Path, manifest: BackupManifest) -> None:
    """Completes the backup, durably."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode()
    write_private(folder / _MANIFEST, f"{text}\n")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_manifest(folder: Path) -> BackupManifest:
    """The manifest, after all files were compared with it. Raises BackupError."""
    path = folder / _MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=BackupManifest)
    except FileNotFoundError as error:
        raise BackupError(f"{folder} is no complete backup: it has no {_MANIFEST}") from error
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise BackupError(f"{path} is not the manifest of a backup: {error}") from error
    if manifest.format != FORMAT:
        raise BackupError(f"{path} has the format {manifest.format}; this release reads format {FORMAT}")
    for table in manifest.tables:
        _check(folder, table)
    return manifest


def rows_of(folder: Path, table: TableContent) -> Iterator[bytes]:
    """The rows of a table, in blocks. Raises BackupError."""
    try:
        with gzip.open(folder / table.file, "rb") as file:
            while block := file.read(_STEP_BYTES):
                yield block
    except (OSError, EOFError, zlib.error) as error:
        raise BackupError(f"{folder / table.file} cannot be read: {error}") from error


def _check(folder: Path, table: TableContent) -> None:
    path = folder / table.file
    if path.parent != folder:
        raise BackupError(f"{table.file!r} of the manifest is not the name of a file of the backup")
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}") from error
    if digest.hexdigest() != table.sha256:
        raise BackupError(f"{path} is damaged: its SHA-256 is not that of the manifest")
