"""The bounds of connections."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final

KIBIBYTE: Final = 1024

URL_BYTES_MAX: Final = 16 * KIBIBYTE
"""The longest URL of a request: twice what common proxies pass on."""
HEADERS_MAX: Final = 100
"""The most headers of a request, as many as common servers accept."""
PROGRESS_BYTES_MIN: Final = 4 * KIBIBYTE
"""What must pass within the stall time: a slower transfer is treated like one that has stopped."""
WRITABLE: Final = "headwater_writable"
"""The member of the scope of a request with which it waits until its connection takes more."""
DISCONNECTED: Final = "headwater_disconnected"
"""The member of the scope of a request that says, when it is called, whether the client has gone."""
LINGER_SECONDS: Final = 2.0
"""How long a refused connection stays open, so that its client can read the refusal."""
LINGERING_MAX: Final = 128
"""The most refused connections that stay open at a time. Others are closed without waiting."""
DISCARDED_BYTES_MAX: Final = 1024 * KIBIBYTE
"""The most that is read from a refused connection before it is reset."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionLimits:
    """Bounds that a deployment sets. Sizes are in bytes, times are in seconds."""

    header_bytes_max: int
    """The request line and all headers together."""
    header_seconds: float
    """The time from the connection, or from the first byte of a later request, to the end of the headers."""
    request_stall_seconds: float
    """How long a body may make no progress while the service reads it."""
    response_stall_seconds: float
    """How long a response may make no progress while the client should read it."""
    connections_max: int
    address_connections_max: int
    proxies: tuple[IPv4Network | IPv6Network, ...]
    """Addresses without a bound of their own."""
