"""Connections to users' Postgres servers, which may be silent, endless or hostile.

All use of a connection ends at one deadline, and a reply has a bound of bytes: both are checked here, between reads of
the socket, because a server obeys no setting that it is sent. Nothing of this process goes to the server: no variable,
password file, certificate or ticket. Needs Linux, whose kernel counts the bytes that a socket has received.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, TypeVar

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.rows import tuple_row
from psycopg.waiting import Ready, Wait

from app.infra.outbound.bounds import CHECK_SECONDS, Bounds, ReplyTooLarge

_T = TypeVar("_T")

# libpq reads until the socket is empty or its buffer is full. A small window empties often.
_WINDOW_BYTES: Final = 256 * 1024
# Where `tcp_info` of Linux has the number of received bytes.
_RECEIVED_OFFSET: Final = 128
_RECEIVED: Final = struct.Struct("=Q")
_EVENTS: Final = {
    Wait.R: select.POLLIN,
    Wait.W: select.POLLOUT,
    Wait.RW: select.POLLIN | select.POLLOUT,
}
# There is no such file, and cannot be one: libpq finds no password, certificate or service.
_NO_FILE: Final = "/dev/null/none"
# What libpq would otherwise take from this process, from its user's home, or from its Kerberos tickets.
_NOTHING: Final = {
    "passfile": _NO_FILE,
    "sslcert": "",
    "sslkey": "",
    "sslcertmode": "disable",
    "sslcrl": _NO_FILE,
    "gssencmode": "disable",
    "require_auth": "none,password,md5,scram-sha-256",
}


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that is closed once it exceeds its bounds."""

    bounds: Bounds

    def wait(self, gen: PQGen[_T], interval: float = CHECK_SECONDS, timeout: float | None = None) -> _T:
        """Runs steps of psycopg. Raises TimeoutError, ReplyTooLarge, what `Bounds.check` raises."""
        del interval, timeout
        meter = _Meter(self.bounds)
        try:
            wait_kind = next(gen)
            while True:
                ready = meter.ready(self.pgconn.socket, _EVENTS[Wait(wait_kind)])
                wait_kind = gen.send(ready)
        except StopIteration as end:
            result: _T = end.value
            return result
        except (psycopg.Error, GeneratorExit):
            raise
        except BaseException:
            # Nothing waits for the rest of the reply: a rollback or a cancellation would.
            self.close()
            raise


@contextmanager
def connected(
    parameters: dict[str, str], bounds: Bounds, connect_seconds: float
) -> Iterator[BoundedConnection]:
    """A connection with these parameters of libpq, among which are `hostaddr`, `user` and `password`.

    Raises TimeoutError, ReplyTooLarge, psycopg.Error, and what `Bounds.check` raises.
    """
    connecting = Bounds(
        deadline=min(bounds.deadline, time.monotonic() + connect_seconds),
        reply_bytes_max=bounds.reply_bytes_max,
        check=bounds.check,
    )
    connection = _connect(make_conninfo(**_complete(parameters)), connecting)
    connection.bounds = bounds
    try:
        yield connection
    finally:
        connection.close()


def _complete(parameters: dict[str, str]) -> dict[str, str]:
    """The parameters, with a value for each that has a variable of the environment."""
    defaults = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in pq.Conninfo.get_defaults()
        if option.envvar
    }
    # An empty name of a service is one that is looked up; an empty number or version is not valid.
    for name in ("service", "min_protocol_version", "max_protocol_version", "ssl_max_protocol_version"):
        defaults.pop(name, None)
    defaults |= {"client_encoding": "UTF8", "connect_timeout": "0"}
    return defaults | _NOTHING | parameters


def _connect(conninfo: str, bounds: Bounds) -> BoundedConnection:
    pgconn = pq.PGconn.connect_start(conninfo.encode())
    try:
        meter = _Meter(bounds)
        while True:
            if pgconn.status == pq.ConnStatus.BAD:
                raise psycopg.OperationalError(pgconn.get_error_message())
            match pgconn.connect_poll():
                case pq.PollingStatus.OK:
                    break
                case pq.PollingStatus.FAILED:
                    raise psycopg.OperationalError(pgconn.get_error_message())
                case pq.PollingStatus.READING:
                    meter.ready(pgconn.socket, select.POLLIN)
                case _:
                    meter.ready(pgconn.socket, select.POLLOUT)
        pgconn.nonblocking = 1
        with _socket(pgconn.socket) as stream:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW_BYTES)
    except BaseException:
        pgconn.finish()
        raise
    return BoundedConnection(pgconn, row_factory=tuple_row)


class _Meter:
    """Waits for a socket within the bounds of one reply."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._before: int | None = None
        self._checked = time.monotonic()

    def ready(self, descriptor: int, events: int) -> Ready:
        """What the socket is ready for. Raises TimeoutError, ReplyTooLarge, what `Bounds.check` raises."""
        if self._before is None:
            self._before = _received(descriptor)
        poll = select.poll()
        poll.register(descriptor, events)
        while True:
            seconds = self._bounds.deadline - time.monotonic()
            if seconds <= 0:
                raise TimeoutError("the server did not answer in time")
            ready_sockets = poll.poll(min(seconds, CHECK_SECONDS) * 1000)
            if time.monotonic() - self._checked >= CHECK_SECONDS:
                self._checked = time.monotonic()
                self._bounds.check()
            if _received(descriptor) - self._before > self._bounds.reply_bytes_max:
                raise ReplyTooLarge(f"one reply has more than {self._bounds.reply_bytes_max} bytes")
            if ready_sockets:
                return _readiness(ready_sockets[0][1], events)


def _readiness(events: int, requested_events: int) -> Ready:
    """A failed socket is ready for what is wanted: the next read or write finds the error."""
    if events & ~(select.POLLIN | select.POLLOUT):
        events |= requested_events
    if events & select.POLLIN and events & select.POLLOUT:
        return Ready.RW
    return Ready.R if events & select.POLLIN else Ready.W


def _received(descriptor: int) -> int:
    """The bytes that a socket has received since it was connected."""
    with _socket(descriptor) as stream:
        facts = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED_OFFSET + _RECEIVED.size)
    count: int = _RECEIVED.unpack_from(facts, _RECEIVED_OFFSET)[0]
    return count


def _socket(descriptor: int) -> closing[socket.socket]:
    """The socket of a descriptor, which stays open."""
    return closing(
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=os.dup(descriptor))
    )
