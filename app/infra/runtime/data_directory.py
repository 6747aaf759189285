"""The folder with all data of an embedded Headwater."""

import fcntl
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from app.infra.runtime.private_file import write_private


class DataDirectoryError(Exception):
    """The folder cannot be used. The message has the reason."""


class ServiceNote(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of ``headwater.json``: the address and key with which scripts reach the running service."""

    url: str
    api_key: str
    pid: int


class DataDirectory:
    """A data folder locked by this process, from ``__enter__`` to ``__exit__``.

    The kernel holds the lock on an open file. It ends with the process, whatever the cause, so a lock is never stale.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.logs = self.path / "logs"
        self.jvms = self.path / "jvm"
        self.key_file = self.path / "operator.key"
        self.note_file = self.path / "headwater.json"
        self.settings_file = self.path / "headwater.env"
        self._lock_file = self.path / "headwater.lock"
        self._lock: int | None = None

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataDirectoryError(f"cannot use {self.path} as data folder: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode("ascii", errors="replace").strip() or "unknown"
            os.close(lock)
            raise DataDirectoryError(
                f"another Headwater (pid {holder}) is running on {self.path}; stop it, or choose another folder"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        self._lock = lock
        # What a killed supervisor has left refers to a service that no longer runs.
        self.remove_notes()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove_notes()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def announce(self, url: str, api_key: str) -> None:
        """Writes ``headwater.json`` atomically, readable by its owner only. Called when the API is ready."""
        note = ServiceNote(url=url, api_key=api_key, pid=os.getpid())
        write_private(self.note_file, msgspec.json.encode(note).decode() + "\n")

    def write_settings(self, variables: Mapping[str, str]) -> None:
        """Writes ``headwater.env``, readable by its owner only: the variables with which commands find the servers."""
        lines = [f"{name}={shlex.quote(value)}\n" for name, value in sorted(variables.items())]
        write_private(self.settings_file, "".join(lines))

    def settings(self) -> dict[str, str]:
        """The variables of the running service. Raises DataDirectoryError if none runs on this folder."""
        try:
            lines = self.settings_file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise DataDirectoryError(
                f"cannot read {self.settings_file}: {error.strerror}. `headwater up` writes it while it runs"
            ) from error
        pairs = (line.partition("=") for line in lines)
        return {name: shlex.split(value)[0] for name, _, value in pairs}

    def remove_notes(self) -> None:
        """Removes the files that exist only while the service runs."""
        self.note_file.unlink(missing_ok=True)
        self.settings_file.unlink(missing_ok=True)
