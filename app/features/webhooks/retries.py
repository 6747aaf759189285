"""When messages of webhooks that failed are sent again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from app.features.webhooks.values import Reply

_JITTER: Final = 0.1
_RETRY_AFTER_STATUSES: Final = (429, 503)
_RETRY_AFTER_SECONDS_MAX: Final = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryRules:
    """`after_seconds`: the times between attempts; after the last one a message is dead. `dead_max` of them in a row
    pause a webhook.
    """

    after_seconds: tuple[float, ...]
    dead_max: int

    def retry_seconds(self, attempts: int, reply: Reply) -> float | None:
        """When to try again, in seconds, after this many failures and one more; None for never."""
        if attempts >= len(self.after_seconds):
            return None
        # Messages that failed together must not all come back together.
        seconds = self.after_seconds[attempts] * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311
        if reply.status in _RETRY_AFTER_STATUSES and reply.retry_after_seconds is not None:
            seconds = max(seconds, min(reply.retry_after_seconds, _RETRY_AFTER_SECONDS_MAX))
        return seconds
