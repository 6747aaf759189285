"""Connections for users' URLs: to checked addresses only, within fixed times, to nowhere that an answer points to."""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from app.infra.outbound.addresses import AddressRefused, Rules, Target, not_reachable
from app.infra.outbound.timed_stream import TimedStream, seconds_left

_log = logging.getLogger(__name__)
CONNECT_SECONDS_MAX: Final = 5.0
"""The time for finding a host, and for connecting to it, each in seconds."""
# Name servers that do not answer hold these up for longer than anybody waits for them.
_RESOLVERS: Final = 32

Resolve = Callable[[str, int], list[str]]


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises OSError."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


@dataclass(frozen=True, kw_only=True, slots=True)
class Connector:
    """Connects over HTTP. No proxy, no redirect, no cookie: what it connects to is what was checked.

    A host is looked up once an attempt, and the connection is made to an address of that answer; the certificate must
    be the host's all the same. `tls`: how certificates are verified.
    """

    rules: Rules
    resolve: Resolve = resolve
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    _resolvers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="resolver")
    )

    @contextmanager
    def connected(self, target: Target, deadline: float) -> Iterator[http.client.HTTPConnection]:
        """A connection for one request, all of which ends at the deadline (of the monotonic clock).

        Raises AddressRefused, OSError.
        """
        addresses = self.addresses(target, seconds_left(deadline, CONNECT_SECONDS_MAX))
        connection = http.client.HTTPConnection(target.host, target.port)
        if target.scheme == "https":
            # Determines whether the header Host contains the port.
            connection.default_port = http.client.HTTPS_PORT
        stream = self._connect(target, addresses, deadline)
        try:
            connection.sock = TimedStream(stream, deadline)
            yield connection
        finally:
            connection.close()
            stream.close()

    def addresses(self, target: Target, seconds: float) -> list[str]:
        """The addresses of a host, all of which are admitted. Raises AddressRefused, TimeoutError."""
        lookup = self._resolvers.submit(self.resolve, target.host, target.port)
        try:
            host_addresses = lookup.result(timeout=seconds)
        except TimeoutError:
            raise TimeoutError(f"{target.host} could not be looked up in {seconds:.0f} s") from None
        except (OSError, UnicodeError) as error:
            _log.info("%r could not be looked up: %s", target.host, error)
            raise not_reachable(target.host, self.rules.setting) from None
        try:
            return self.rules.check(target, host_addresses)
        except AddressRefused:
            # Of those who read the message, only the operator may know the addresses.
            _log.info("%r is refused; its addresses are %s", target.host, ", ".join(host_addresses) or "none")
            raise

    def _connect(self, target: Target, addresses: list[str], deadline: float) -> socket.socket:
        """A connection to the first of the addresses that takes one, encrypted if the URL says so. Raises OSError."""
        connected_by = time.monotonic() + seconds_left(deadline, CONNECT_SECONDS_MAX)
        plain = None
        for address in addresses:
            try:
                plain = socket.create_connection((address, target.port), seconds_left(connected_by))
                break
            except OSError:
                if address == addresses[-1]:
                    raise
        assert plain is not None
        # Head and body are two writes: the second must not wait until the first is acknowledged.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.scheme == "http":
            return plain
        try:
            plain.settimeout(seconds_left(connected_by))
            return self.tls.wrap_socket(plain, server_hostname=target.host)
        except BaseException:
            plain.close()
            raise
