"""Running a request once, however often it is sent with the same idempotency key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from app.idempotency.values import KeyedRequest, Outcome, StoredReply

KEEP_SECONDS: Final = 24 * 3600.0


class Replies(Protocol):
    """The stored replies."""

    def once(
        self, tenant_id: str, request: KeyedRequest, act: Callable[[], StoredReply], *, keep_seconds: float
    ) -> Outcome:
        """Calls `act`, and stores its reply in the transaction that has what `act` created; or the reply of before.

        Any error but RefusedRequest leaves nothing behind, and the key free. Raises IdempotencyMismatch,
        IdempotencyInFlight, and what `act` raises.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOnce:
    """`wake` is called when a request has committed something: what it created may have work to do."""

    replies: Replies
    wake: Callable[[], None]
    keep_seconds: float = KEEP_SECONDS

    def run(self, tenant_id: str, request: KeyedRequest, act: Callable[[], StoredReply]) -> Outcome:
        """See `Replies.once`."""
        outcome = self.replies.once(tenant_id, request, act, keep_seconds=self.keep_seconds)
        if not outcome.replayed:
            self.wake()
        return outcome
