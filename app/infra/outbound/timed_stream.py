"""A socket whose use ends at a deadline, however slowly bytes trickle."""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class TimedStream:
    """What `http.client` uses of a socket, such that all of it ends at the deadline (of the monotonic clock)."""

    def __init__(self, stream: socket.socket, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def sendall(self, data: Any) -> None:
        self._stream.settimeout(seconds_left(self._deadline))
        self._stream.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._stream, self._deadline))

    def close(self) -> None:
        # It is closed before the answer is read; the stream is, by the one who opened it.
        pass


class _TimedReader(io.RawIOBase):
    def __init__(self, stream: socket.socket, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._stream.settimeout(seconds_left(self._deadline))
        return self._stream.recv_into(buffer)


def seconds_left(deadline: float, seconds_max: float = float("inf")) -> float:
    """The seconds until the deadline. Raises TimeoutError."""
    seconds = min(deadline - time.monotonic(), seconds_max)
    if seconds <= 0:
        raise TimeoutError("the receiver did not answer in time")
    return seconds
