"""Publishing for table services: between two groups of writes, however closely they follow each other."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from app.commit.conflict import Conflicted
from app.timeline.ports import SlotTimeline
from app.timeline.service.publish import publish_until_known
from app.timeline.values import Fenced, NewCommit, Published, WritesRunning


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotRules:
    """How a table service comes to publish beside writes, in seconds.

    While writes run it tries again and again, after pauses that begin with `try_seconds` and grow to `try_seconds_max`.
    With each turn that it asks for, no other writes are begun for `slot_seconds` at most. If that holds up writes which
    could run beside those, it asks again only after `pause_seconds`.
    """

    slot_seconds: float = 2.0
    pause_seconds: float = 10.0
    try_seconds: float = 0.005
    try_seconds_max: float = 0.1


DEFAULT_SLOT_RULES: Final = SlotRules()
_GROWTH: Final = 1.3


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishInSlot:
    """Gets a table service's commit in between two groups of writes, however closely they follow each other."""

    timeline: SlotTimeline
    writers_max: int
    rules: SlotRules = DEFAULT_SLOT_RULES

    def run(self, tenant_id: str, commit: NewCommit) -> Published | Conflicted | Fenced:
        """Waits for as long as it takes. After a conflict the turn is still the service's, until `end` or its time."""
        pause_seconds = self.rules.try_seconds
        request_at = time.monotonic()
        while True:
            requests_slot = time.monotonic() >= request_at
            outcome = self._try(tenant_id, commit, self.rules.slot_seconds if requests_slot else 0.0)
            if not isinstance(outcome, WritesRunning):
                return outcome
            if requests_slot:
                request_at = time.monotonic() + self._next_request_seconds(outcome.groups)
            time.sleep(pause_seconds)
            pause_seconds = min(pause_seconds * _GROWTH, self.rules.try_seconds_max)

    def _try(
        self, tenant_id: str, commit: NewCommit, slot_seconds: float
    ) -> Published | Conflicted | Fenced | WritesRunning:
        outcome = publish_until_known(
            self.timeline,
            tenant_id,
            [commit],
            lambda: self.timeline.publish_in_slot(tenant_id, commit, slot_seconds),
        )
        # An answer that was lost is looked up as that of commits which are published together.
        return outcome[0] if isinstance(outcome, tuple) else outcome

    def end(self, tenant_id: str, dataset_id: str) -> None:
        """Gives up the turn, if it was asked for."""
        self.timeline.release_slot(tenant_id, dataset_id)

    def _next_request_seconds(self, groups: int) -> float:
        # Where no other could begin anyway, nobody is held up by the question.
        if groups >= self.writers_max:
            return self.rules.slot_seconds / 2
        return self.rules.slot_seconds + self.rules.pause_seconds
