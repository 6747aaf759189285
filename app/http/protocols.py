"""What handlers of other protocols need beside other handlers: their own credentials and rates, requests as sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

SCHEME: Final = "credential_scheme"
"""Handler option: the name of the `Scheme` of its credentials, which are for one resource, instead of bearer ones. The
handler itself checks the grants of the principal.
"""
RATE: Final = "rate"
"""Handler option: the name of the quota that limits the rate of its requests, in place of the general ones."""
INNER: Final = "headwater_inner"
"""The scope of a request that the service sends to itself has its credential under this name. No client can set it."""
SERVICE: Final = "headwater_service"
"""The state of each request has the application that serves it under this name."""
AS_SENT: Final = "headwater_as_sent"
"""The state of a request has its `RequestAsSent` under this name."""


class RequestAsSent(NamedTuple):
    """What a signature covers: handlers get HEAD as GET, without the fields of ranges."""

    method: str
    headers: Sequence[tuple[bytes, bytes]]


def client_address(scope: Mapping[str, Any]) -> str:
    """The address of the client: of the connection, or as a trusted proxy names it. Empty if there is none."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


def is_head(scope: Mapping[str, Any]) -> bool:
    """Whether the client has sent HEAD. The handler is that of GET."""
    request: RequestAsSent = scope["state"][AS_SENT]
    return request.method == "HEAD"
