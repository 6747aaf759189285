"""Folders and prefixes that files are written to for their tenants, below the roots that the operator admits.

A file appears under its name once it is whole. A file of the same name is replaced: the caller writes the same bytes
again after a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from app.infra.files.errors import DestinationFailed
from app.infra.files.folders.admitted import RefusedPath, admitted_root
from app.infra.files.storage import s3_file_system
from app.infra.identifiers import new_id

SETTING: Final = "HEADWATER_EXPORT_ROOTS"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class Destination(Protocol):
    """A folder, or a prefix of a bucket."""

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Writes a file. Raises DestinationFailed, and what the chunks raise."""
        ...


def open_destination(uri: str, roots: Sequence[str]) -> Destination:
    """The folder of a URI, which is made with the first file. Raises DestinationFailed if it is not admitted."""
    try:
        root = admitted_root(uri, roots, SETTING)
    except RefusedPath as reason:
        raise _failed(uri, str(reason)) from None
    parts = urlsplit(uri)
    if parts.scheme == "s3":
        prefix = f"{parts.netloc}/{unquote(parts.path).strip('/')}".rstrip("/")
        return _Prefix(s3_file_system(os.environ), prefix, uri)
    return _Folder(Path(unquote(urlsplit(root).path)), Path(unquote(parts.path)), uri)


class _Folder:
    """A folder of a file system that all workers share. No link below its root is followed."""

    def __init__(self, root: Path, folder: Path, uri: str) -> None:
        self._root = root
        self._steps = folder.relative_to(root).parts
        self._uri = uri

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Destination.put`."""
        with _reported(self._uri), self._opened() as folder:
            part = f".{name}.{new_id()}"
            descriptor = os.open(part, _NEW_FILE, 0o644, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    for chunk in chunks:
                        file.write(chunk)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise
            os.fsync(folder)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """A descriptor of the folder. It is made, and its root, too, unless the folder of the root is missing."""
        with suppress(FileExistsError):
            self._root.mkdir()
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for step in self._steps:
                with suppress(FileExistsError):
                    os.mkdir(step, 0o755, dir_fd=folder)
                below = os.open(step, _DIRECTORY, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


class _Prefix:
    """A prefix of a bucket. An upload appears as a whole."""

    def __init__(self, file_system: pafs.FileSystem, prefix: str, uri: str) -> None:
        self._file_system = file_system
        self._prefix = prefix
        self._uri = uri

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Destination.put`."""
        with (
            _reported(self._uri),
            self._file_system.open_output_stream(f"{self._prefix}/{name}", compression=None) as file,
        ):
            for chunk in chunks:
                file.write(chunk)


@contextmanager
def _reported(uri: str) -> Iterator[None]:
    """Reports errors of the destination."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise _failed(uri, text) from error


def _failed(uri: str, reason: str) -> DestinationFailed:
    return DestinationFailed(f"files cannot be written to {uri}: {reason}", destination=uri)
