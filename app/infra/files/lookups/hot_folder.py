"""A local folder for files that can be created again: bounded, shared by processes, read as memory maps.

The files of each boot are in a folder of their own, so files that a crash of the machine left incomplete are never
read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

_log = logging.getLogger(__name__)

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_BOOT_PREFIX: Final = "boot-"
_NEW_SUFFIX: Final = ".new"
# What a name has after the path of the file in the storage: nothing, or what of the file is kept.
ROWS: Final = "#rows"
KEYS: Final = "#keys"
# The writer of a new file that has not grown for this time was killed.
_ABANDONED_SECONDS: Final = 600
# Deleted rows are in copies of files that no version has any more.
_UNUSED_SECONDS: Final = 7 * 86_400
# A process lists the folder each time it has added this share of the limit, so each may exceed it by as much.
_UNLISTED_SHARE: Final = 32
_UNLISTED_SECONDS: Final = 3_600


class HotFolder:
    """Files by name, at most `bytes_max` bytes; the least recently used ones make room for new ones.

    Why it is not a ByteCache: processes share it, so the folder itself has the order and the sizes.

    Those that were not used for a week are removed when a file is added, within an hour.

    Safe with any number of processes and threads. Processes that have a removed file mapped can still read it.
    """

    def __init__(self, folder: Path, bytes_max: int) -> None:
        """Creates a missing `folder` and removes the files of earlier boots. Raises OSError."""
        self.bytes_max = bytes_max
        self.boot = _boot()
        self._files = folder / f"{_BOOT_PREFIX}{self.boot}"
        self._make()
        # Listed before the first file is added: earlier processes may have left it full.
        self._unlisted_bytes = bytes_max
        self._listed_at = time.monotonic()
        for other in folder.glob(f"{_BOOT_PREFIX}*"):
            if other != self._files:
                shutil.rmtree(other, ignore_errors=True)

    def _make(self) -> None:
        # The files have rows of all tenants.
        self._files.mkdir(parents=True, exist_ok=True, mode=0o700)

    def open(self, name: str) -> pa.MemoryMappedFile | None:
        """The file, mapped; None without such a file. Marks it as used."""
        path = self._path(name)
        try:
            mapped_file = pa.memory_map(str(path))
        except FileNotFoundError:
            return None
        with suppress(FileNotFoundError):
            os.utime(path)
        return mapped_file

    def create(self, name: str) -> NewFile:
        """A new file, which replaces one of the same name once it is published. Raises OSError."""
        path = self._path(name)
        self._make()
        new = path.with_name(f"{path.name}.{os.urandom(4).hex()}{_NEW_SUFFIX}")
        return NewFile(file=new.open("xb"), folder=self, new=new, path=path)

    def put(self, name: str, write: Callable[[BinaryIO], None]) -> None:
        """Lets `write` fill a file. Without room there is no file, which is not an error."""
        try:
            new = self.create(name)
            try:
                write(new.file)
                new.publish()
            finally:
                new.discard()
        except OSError as error:
            _log.warning("the hot folder did not keep a file: %s", error)

    def admit(self, size: int) -> None:
        """Makes room for a new file of `size` bytes, which is already in the folder. Raises OSError."""
        if size > self.bytes_max:
            raise OSError(f"{size} bytes exceed the folder's limit of {self.bytes_max}")
        self._unlisted_bytes += size
        listed_before = time.monotonic() - self._listed_at
        if self._unlisted_bytes >= self.bytes_max // _UNLISTED_SHARE or listed_before > _UNLISTED_SECONDS:
            self._make_room()
            self._unlisted_bytes = 0
            self._listed_at = time.monotonic()

    def _make_room(self) -> None:
        """Removes unused files, and the least recently used ones until the folder is within its limit. New files count,
        and stay.

        Two processes that make room at the same time remove the same files.
        """
        files = self._listed()
        excess = sum(size for _, size, _ in files) - self.bytes_max
        now_ns = time.time_ns()
        abandoned_ns, unused_ns = now_ns - _ABANDONED_SECONDS * 10**9, now_ns - _UNUSED_SECONDS * 10**9
        for used_ns, size, name in sorted(files):
            if used_ns < abandoned_ns if name.endswith(_NEW_SUFFIX) else excess > 0 or used_ns < unused_ns:
                (self._files / name).unlink(missing_ok=True)
                excess -= size

    def _listed(self) -> list[tuple[int, int, str]]:
        """Every file: the time of its last use (nanoseconds), its size in bytes, its name."""
        files = []
        with os.scandir(self._files) as entries:
            for entry in entries:
                # Another process may remove it at any time.
                with suppress(FileNotFoundError):
                    status = entry.stat()
                    files.append((status.st_mtime_ns, status.st_size, entry.name))
        return files

    def _path(self, name: str) -> Path:
        return self._files / _file_name(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewFile:
    """A file that is not visible to others yet."""

    file: BinaryIO
    folder: HotFolder
    new: Path
    path: Path

    def publish(self) -> None:
        """Makes the file visible to others. Raises OSError, also if it exceeds the folder's limit."""
        self.file.flush()
        if self.folder.boot is None:
            os.fsync(self.file.fileno())
        self.file.close()
        self.folder.admit(self.new.stat().st_size)
        self.new.rename(self.path)

    def discard(self) -> None:
        """Deletes the file, unless it was published."""
        with suppress(OSError):
            self.file.close()
        self.new.unlink(missing_ok=True)


def remove_copies(folder: Path, paths: Iterable[str]) -> None:
    """Removes what the folder has of files of the storage that were deleted. Those of other machines expire.

    `folder`: the parent of those of each boot; it may be missing.
    """
    for files in folder.glob(f"{_BOOT_PREFIX}*"):
        for path in paths:
            for kept in ("", ROWS, KEYS):
                with suppress(OSError):
                    (files / _file_name(f"{path}{kept}")).unlink(missing_ok=True)


def _file_name(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=20).hexdigest()


def _boot() -> str | None:
    """The id of this boot of the machine; None where the system has no such id."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else None
