"""Files of an export: names, atomic writes, sizes and checksums."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import xxhash

from clients.export.values import DatasetRecord, ExportError, FileRecord

RECORD_NAME: Final = "files.json"
_CHUNK_BYTES: Final = 1024 * 1024
# Names that every file system keeps as they are, also those that ignore case or reserve names of devices.
_SAFE: Final = re.compile(r"(?!(con|prn|aux|nul|com\d|lpt\d)(\.|$))[a-z0-9_]([a-z0-9_.-]{0,126}[a-z0-9_-])?")


def folder_name(dataset: str) -> str:
    """The name of a dataset's folder: its own, or if that is not safe as one, a similar name with a checksum of it."""
    if _SAFE.fullmatch(dataset):
        return dataset
    similar = re.sub(r"[^A-Za-z0-9_-]", "_", dataset)[:100]
    return f"{similar}~{hashlib.sha256(dataset.encode()).hexdigest()[:8]}"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the folder, and refuses other exports to it until the context is left. Raises ExportError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ExportError(f"another export to {folder} is running") from None
    finally:
        os.close(descriptor)


def partial_path(path: Path) -> Path:
    """Where a file is written until it is complete."""
    return path.with_name(f"{path.name}.part")


def write_json(path: Path, value: Any) -> None:
    """Writes a document at once, or leaves the previous one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_path(path)
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
    partial.replace(path)


def write_list(path: Path, values: Iterable[Any]) -> None:
    """Writes a JSON array, one value in memory at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_path(path)
    with partial.open("wb") as file:
        separator = b"["
        for value in values:
            file.write(separator + b"\n" + msgspec.json.encode(value))
            separator = b","
        file.write(b"\n]\n" if separator == b"," else b"[]\n")
    partial.replace(path)


def described(folder: Path, path: str, rows: int | None = None) -> FileRecord:
    """The record of a file as it is."""
    digest = hashlib.sha256()
    size = _hashed(folder / path, digest)
    return FileRecord(path=path, rows=rows, size_bytes=size, sha256=digest.hexdigest())


def service_checksum(path: Path) -> str:
    """The checksum of a file in the form that the service states."""
    digest = xxhash.xxh3_128()
    _hashed(path, digest)
    return f"xxh3-128:{digest.hexdigest()}"


def read_record(folder: Path) -> DatasetRecord | None:
    """The record of a dataset's folder, if it has one."""
    try:
        return msgspec.json.decode((folder / RECORD_NAME).read_bytes(), type=DatasetRecord)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def is_intact(folder: Path, record: DatasetRecord) -> bool:
    """Whether all files of a record are as they were written."""
    return all(
        (folder / file.path).exists() and described(folder, file.path, file.rows) == file
        for file in record.files
    )


def _hashed(path: Path, digest: Any) -> int:
    """Adds the content of a file to a digest. Returns its size."""
    size = 0
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return size
