"""Folders and prefixes that files are read from, below the roots that the operator admits."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast
from urllib.parse import unquote, urlsplit

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs

from app.infra.files.folders.admitted import RefusedPath, admitted_root, path_is_below
from app.infra.files.storage import s3_file_system
from app.infra.kafka.errors import SourceFailed, SourceUnavailable

SETTING: Final = "HEADWATER_SOURCE_ROOTS"
_ESCAPED = re.compile(r"\\x([89a-f][0-9a-f])")


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file below a folder: its path relative to that, and what changes with its content."""

    name: str
    size_bytes: int
    modified_ns: int

    @property
    def fingerprint(self) -> str:
        """Differs if the file is written again."""
        return f"{self.size_bytes}-{self.modified_ns}"


class SourceFolder(Protocol):
    """A folder, or a prefix of a bucket."""

    def files(self) -> list[FoundFile]:
        """All files below it, in the order of their names; none whose name, or folder, begins with `.` or `_`.

        Raises SourceUnavailable, SourceFailed.
        """
        ...

    def open(self, name: str) -> AbstractContextManager[tuple[FoundFile, BinaryIO]]:
        """The file as it is now. Raises FileNotFoundError, SourceUnavailable, SourceFailed."""
        ...


def open_folder(uri: str, roots: Sequence[str]) -> SourceFolder:
    """The folder of a URI. Raises SourceFailed if it is not admitted any more."""
    try:
        root = admitted_root(uri, roots, SETTING)
    except RefusedPath as reason:
        raise SourceFailed(f"{uri} cannot be read: {reason}") from None
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.scheme == "file":
        return LocalFolder(Path(path), Path(unquote(urlsplit(root).path)))
    return ObjectFolder(s3_file_system(os.environ), f"{parts.netloc}{path}".rstrip("/"))


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))


def _shown(name: str) -> str:
    r"""A name as text: a byte that is not UTF-8 is written as `\xe9`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _hidden_bytes(name: str) -> str:
    """The name that `_shown` has written so, with the bytes that are not UTF-8."""
    return _ESCAPED.sub(lambda match: os.fsdecode(bytes([int(match[1], 16)])), name)


class LocalFolder:
    """A folder of a file system that the API and all workers share. Symbolic links do not lead out of its root."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        self._root = root

    def files(self) -> list[FoundFile]:
        """See `SourceFolder.files`. A folder that is missing is not available: it may be on a disk that is away."""
        if not self._folder.is_dir():
            raise SourceUnavailable(f"{self._folder} is not a folder on this machine", path=str(self._folder))
        self._check(os.path.realpath(self._folder))
        files: list[FoundFile] = []
        for parent, folders, names in os.walk(self._folder, onerror=_unreadable):
            folders[:] = [name for name in folders if not _is_hidden(name)]
            for name in names:
                path = Path(parent, name)
                relative = _shown(path.relative_to(self._folder).as_posix())
                if _is_hidden(name):
                    continue
                try:
                    status = path.lstat()
                except FileNotFoundError:
                    continue
                # A link could lead to any file that the service may read.
                if stat.S_ISREG(status.st_mode):
                    files.append(
                        FoundFile(name=relative, size_bytes=status.st_size, modified_ns=status.st_mtime_ns)
                    )
        return sorted(files, key=lambda file: file.name)

    @contextmanager
    def open(self, name: str) -> Iterator[tuple[FoundFile, BinaryIO]]:
        """See `SourceFolder.open`."""
        try:
            descriptor = self._opened(name)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SourceUnavailable(f"{name} cannot be opened: {error.strerror}", item=name) from error
        with os.fdopen(descriptor, "rb") as file:
            # A folder on the way may have been replaced by a link since it was listed.
            self._check(os.path.realpath(f"/proc/self/fd/{descriptor}"))
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(name)
            yield (
                FoundFile(name=name, size_bytes=status.st_size, modified_ns=status.st_mtime_ns),
                cast("BinaryIO", file),
            )

    def _opened(self, name: str) -> int:
        """A descriptor of the file that is shown by this name. Raises OSError."""
        how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            return os.open(self._folder / name, how)
        except FileNotFoundError:
            if _hidden_bytes(name) == name:
                raise
            return os.open(self._folder / _hidden_bytes(name), how)

    def _check(self, path: str) -> None:
        if not path_is_below(path, os.path.realpath(self._root)):
            raise SourceFailed(f"{self._folder} leads out of the folders that the operator has named")


class ObjectFolder:
    """A prefix of a bucket."""

    def __init__(self, file_system: pafs.FileSystem, root: str) -> None:
        self._file_system = file_system
        self._root = root

    def files(self) -> list[FoundFile]:
        """See `SourceFolder.files`."""
        selector = pafs.FileSelector(self._root, allow_not_found=True, recursive=True)
        with _object_faults(self._root):
            infos = self._file_system.get_file_info(selector)
        files = [self._found(info) for info in infos if info.type is pafs.FileType.File]
        return sorted((file for file in files if not _is_hidden(file.name)), key=lambda file: file.name)

    @contextmanager
    def open(self, name: str) -> Iterator[tuple[FoundFile, BinaryIO]]:
        """See `SourceFolder.open`."""
        path = f"{self._root}/{name}"
        with _object_faults(path):
            info = self._file_system.get_file_info(path)
            if info.type is not pafs.FileType.File:
                raise FileNotFoundError(name)
            with self._file_system.open_input_stream(path, compression=None) as file:
                yield self._found(info), cast("BinaryIO", file)

    def _found(self, info: pafs.FileInfo) -> FoundFile:
        return FoundFile(
            name=info.path[len(self._root) + 1 :], size_bytes=info.size, modified_ns=info.mtime_ns or 0
        )


@contextmanager
def _object_faults(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise SourceUnavailable(f"{path} cannot be read: {error}", path=path) from error


def _unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise SourceUnavailable(
            f"{error.filename} cannot be listed: {error.strerror}", path=str(error.filename)
        )
