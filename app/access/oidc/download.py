"""JSON from an issuer: within a bounded time and size, from the configured URLs, and from no other."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from app.infra.outbound.timed_stream import TimedStream, seconds_left

TOTAL_SECONDS_MAX: Final = 5.0
BYTES_MAX: Final = 256 * 1024
_CONNECT_SECONDS_MAX: Final = 2.0
_HEADERS: Final = {"Accept": "application/json", "User-Agent": "Headwater/1", "Connection": "close"}


class IssuerReply(NamedTuple):
    """The response of an issuer. `content`: BYTES_MAX bytes at most."""

    status: int
    content: bytes


def download(url: str) -> Any:
    """The JSON of a URL. Follows no redirect and uses no proxy. Raises OSError, HTTPException, ValueError.

    Looking up the name is the one part that the time does not bound.
    """
    reply = exchange("GET", url, b"", {})
    if reply.status != http.client.OK:
        raise ValueError(f"{url} answers with status {reply.status}")
    return json.loads(reply.content)


def exchange(method: str, url: str, body: bytes, headers: Mapping[str, str]) -> IssuerReply:
    """The response to a request, of any status, within the bounds of `download`. Raises what that raises."""
    parts = urlsplit(url)
    uses_tls = parts.scheme == "https"
    port = parts.port or (http.client.HTTPS_PORT if uses_tls else http.client.HTTP_PORT)
    host, path = parts.hostname or "", (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    deadline = time.monotonic() + TOTAL_SECONDS_MAX
    connection = http.client.HTTPConnection(host, port)
    if uses_tls:
        # Determines whether the header Host contains the port.
        connection.default_port = http.client.HTTPS_PORT
    stream = _connected(host, port, deadline)
    try:
        if uses_tls:
            stream.settimeout(seconds_left(deadline))
            stream = ssl.create_default_context().wrap_socket(stream, server_hostname=host)
        connection.sock = TimedStream(stream, deadline)
        connection.request(method, path, body or None, {**_HEADERS, **headers})
        response = connection.getresponse()
        content = response.read(BYTES_MAX + 1)
    finally:
        connection.close()
        stream.close()
    if len(content) > BYTES_MAX:
        raise ValueError(f"{url} answers with more than {BYTES_MAX} bytes")
    return IssuerReply(response.status, content)


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """A connection to the first address that accepts one. Raises OSError."""
    fault: OSError = OSError(f"{host} has no address")
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            seconds = seconds_left(deadline, _CONNECT_SECONDS_MAX)
            return socket.create_connection((str(address[0]), port), seconds)
        except OSError as error:
            fault = error
    raise fault
