"""Processes that read from servers of users, which may be silent, endless or hostile.

A process serves one request, within a limit of memory and a time that the kernel enforces. It has no variable and no
open file of this process. It is forked from a server, which starts with the first request (`python -m` of this module),
has imported what serves, and ends with this process. Needs Linux.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib
import io
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from app.infra.outbound.bounds import CHECK_SECONDS, Bounds

# Without a home, no file of passwords, certificates or options is found. What is trusted is not secret.
_VARIABLES: Final = {"HOME": "/dev/null/none", "LC_ALL": "C.UTF-8"}
_TRUST_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_NICENESS: Final = 10
# Of a request: its bytes, the bytes of memory that it may take, and its seconds.
_HEAD: Final = struct.Struct("=QQd")


class LimitedProcesses:
    """Processes that serve a request by the function `serve(request, answer)` of a module."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        atexit.register(self.close)

    @contextmanager
    def answer(self, request: bytes, bounds: Bounds, memory_bytes: int) -> Iterator[BinaryIO]:
        """The answer of a process, which is killed once the context ends. It ends early if the process was killed, or
        could not be started. Reading raises TimeoutError, and what `Bounds.check` raises.
        """
        ours, theirs = socket.socketpair()
        answer_end, write_end = os.pipe()
        with ours, _Answer(answer_end, bounds) as answer:
            # Without a process, the answer ends at once.
            with suppress(OSError), theirs, os.fdopen(write_end) as write_file:
                self._send([theirs.fileno(), write_file.fileno()])
            with suppress(OSError):
                seconds = bounds.deadline - time.monotonic() + CHECK_SECONDS
                ours.sendall(_HEAD.pack(len(request), memory_bytes, seconds) + request)
            yield io.BufferedReader(answer, _BUFFER_BYTES)

    def close(self) -> None:
        """Ends the server, which a later request would start again."""
        with self._lock:
            self._stop()

    def _send(self, descriptors: list[int]) -> None:
        with self._lock:
            if self._control is not None and self._server is not None and self._server.poll() is None:
                with suppress(OSError):
                    socket.send_fds(self._control, [b"\0"], descriptors)
                    return
            self._stop()
            self._start()
            assert self._control is not None
            socket.send_fds(self._control, [b"\0"], descriptors)

    def _start(self) -> None:
        trusted = {name: os.environ[name] for name in _TRUST_VARIABLES if name in os.environ}
        path = os.pathsep.join(each for each in sys.path if each)
        self._control, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-s", "-m", __name__, self._module],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**_VARIABLES, **trusted, "PYTHONPATH": path},
                cwd="/",
                process_group=0,
            )

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        self._control = self._server = None


_BUFFER_BYTES: Final = 256 * 1024


class _Answer(io.RawIOBase):
    """A pipe that is read within bounds."""

    def __init__(self, descriptor: int, bounds: Bounds) -> None:
        self._descriptor = descriptor
        self._bounds = bounds
        self._checked = time.monotonic()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            now = time.monotonic()
            if now - self._checked >= CHECK_SECONDS:
                self._checked = now
                self._bounds.check()
            seconds = self._bounds.deadline - now
            if seconds <= 0:
                raise TimeoutError("the server did not answer in time")
            if self._poll.poll(min(seconds, CHECK_SECONDS) * 1000):
                return os.readv(self._descriptor, [buffer])

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def _serve_all(module: str) -> None:
    """The server: forks a process for each request, until its parent has ended."""
    serve = importlib.import_module(module).serve
    # Those that have ended are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=0) as control:
        while True:
            _, descriptors, *_ = socket.recv_fds(control, 1, 2)
            if not descriptors:
                return
            # Without a process, the answer ends at once.
            with suppress(OSError):
                if os.fork() == 0:
                    try:
                        control.close()
                        with os.fdopen(descriptors[1], "wb", _BUFFER_BYTES) as answer:
                            serve(_limited(descriptors[0]), answer)
                    finally:
                        # Nothing that the request has opened is finished, such as a result that was not read.
                        os._exit(0)
            for descriptor in descriptors:
                os.close(descriptor)


def _limited(descriptor: int) -> bytes:
    """The request, whose limits then apply to this process. It is killed once the request is closed."""
    with open(descriptor, "rb", closefd=False) as file:
        size, memory_bytes, seconds = _HEAD.unpack(file.read(_HEAD.size))
        request = file.read(size)
    # A core would contain the request; no file is written.
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    *_, data_pages, _ = Path("/proc/self/statm").read_text("ascii").split()
    memory_bytes += int(data_pages) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    # A server may keep it busy until its end.
    os.nice(_NICENESS)
    # The default actions of SIGALRM and SIGIO end a process, whatever it does.
    signal.setitimer(signal.ITIMER_REAL, seconds)
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(descriptor, 0)
    if poll.poll(0):
        raise BrokenPipeError("the request was closed before its limits applied")
    return request


if __name__ == "__main__":
    _serve_all(sys.argv[1])
