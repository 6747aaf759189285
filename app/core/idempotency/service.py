"""Runs a request once, however often it is sent with the same idempotency key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.core.idempotency.repository import ReplyStore
from app.core.idempotency.values import KeyedRequest, Outcome, StoredReply

KEEP_SECONDS: Final = 24 * 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOnce:
    """Runs requests once. `wake` is called after a request was committed, since it may have created a job."""

    replies: ReplyStore
    wake: Callable[[], None]
    keep_seconds: float = KEEP_SECONDS

    def run(self, tenant_id: str, request: KeyedRequest, act: Callable[[], StoredReply]) -> Outcome:
        """See `ReplyStore.once`."""
        outcome = self.replies.once(tenant_id, request, act, keep_seconds=self.keep_seconds)
        if not outcome.is_replay:
            self.wake()
        return outcome
