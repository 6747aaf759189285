"""Values of idempotency keys: the request that came with one, and the reply to it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class KeyedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with an idempotency key."""

    scope: str
    """The path of the request, with the id of its dataset: the same key on another path is another request."""
    key: str
    """The idempotency key."""
    request_hash: str
    """A hash of what the request creates; a retry has the same."""


class StoredReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to a request, as it is sent again to a retry."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """The headers that the request itself has caused, with Content-Type."""
    body: bytes
    """The body."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of a request, `is_replay` if an earlier request with the same key caused it."""

    reply: StoredReply
    is_replay: bool


class RefusedRequest(Exception):
    """The request is refused for good. What it did so far is rolled back, and its reply is kept."""

    def __init__(self, reply: StoredReply) -> None:
        super().__init__(reply.status)
        self.reply = reply
