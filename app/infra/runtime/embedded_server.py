"""Embedded servers: one child process with its own files, passwords, log and loopback port."""

import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from app.infra.runtime.child import ChildSpec, describe_exit, has_ended, launch, reap, stop
from app.infra.runtime.loopback import free_port
from app.infra.runtime.private_file import kept_secret

_POLL_SECONDS = 0.02
_LOG_LINES_SHOWN = 10


class ServerError(Exception):
    """The server exited or was not ready in time. The message has the last lines of its log."""


class EmbeddedServer(ABC):
    """A server with its files below ``directory``, on a free loopback port that is chosen for each instance.

    For tests and short commands: ``with EmbeddedServer(directory) as server: connect(server.url)``.
    Under a supervisor: ``child()``, and ``provision()`` once the server is ready.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.port = free_port()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._spec: ChildSpec | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of the server, with the credentials of the service."""

    @abstractmethod
    def child(self) -> ChildSpec:
        """Creates the server's files if they are missing, and returns the command that runs it."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the server accepts connections."""

    def provision(self) -> None:
        """Creates what the service needs inside the running server. May be called again."""
        return

    def start(self) -> str:
        """Starts the server as a child of this process and returns its URL once it is provisioned.

        Raises:
            ServerError: it exited, or was not ready within ``ready_seconds_max`` of its ``ChildSpec``.
        """
        self._spec = self.child()
        log = self.directory / "logs" / f"{self._spec.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self._output = log.open("ab")
        try:
            self._process = launch(self._spec, self._output)
            _wait_until_ready(self._process, self._spec, log)
            self.provision()
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Stops the server if ``start`` has started it."""
        if self._process is not None and self._spec is not None:
            stop(self._process, self._spec)
            self._process = None
        if self._output is not None:
            self._output.close()
            self._output = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _password(self, name: str) -> str:
        """The password in ``directory / NAME.password``, which is created at the first start."""
        return kept_secret(self.directory / f"{name}.password")


def _wait_until_ready(process: subprocess.Popen[bytes], spec: ChildSpec, log: Path) -> None:
    deadline = time.monotonic() + spec.ready_seconds_max
    while not spec.ready():
        if has_ended(process):
            raise ServerError(f"{spec.name} {describe_exit(reap(process))}: {_last_lines(log)}")
        if time.monotonic() > deadline:
            raise ServerError(
                f"{spec.name} was not ready after {spec.ready_seconds_max:g} s: {_last_lines(log)}"
            )
        time.sleep(_POLL_SECONDS)


def _last_lines(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES_SHOWN:])
