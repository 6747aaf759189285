"""Publishes commits of table services between two groups of writes, however closely these follow each other."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from app.core.timeline.ports import SlotPublication
from app.core.timeline.service.publish import publish_until_known
from app.core.timeline.values import Fenced, NewCommit, Published, WritesRunning
from app.kernel.commit.conflict import Conflicted


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotRules:
    """The times, in seconds, by which a table service gets a commit slot beside writes.

    While writes run it tries repeatedly, with pauses that grow from `try_seconds` to `try_seconds_max`. A request for a
    commit slot prevents claims of other writes for `slot_seconds` at most. If that delays writes that could run now,
    the next request follows after `pause_seconds`.
    """

    slot_seconds: float = 2.0
    pause_seconds: float = 10.0
    try_seconds: float = 0.005
    try_seconds_max: float = 0.1


DEFAULT_SLOT_RULES: Final = SlotRules()
_GROWTH: Final = 1.3


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishInSlot:
    """Publishes the commit of a table service when no writes run, and requests a commit slot while they do."""

    timeline: SlotPublication
    writers_max: int
    rules: SlotRules = DEFAULT_SLOT_RULES

    def run(self, tenant_id: str, commit: NewCommit) -> Published | Conflicted | Fenced:
        """Waits until the commit is published or refused. After a conflict the slot stays reserved until `end`, or
        until it expires.
        """
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
            self.timeline.outcome_of,
            tenant_id,
            [commit],
            lambda: self.timeline.publish_in_slot(tenant_id, commit, slot_seconds),
        )
        # An outcome that had to be read again is a tuple, as for commits that are published together.
        return outcome[0] if isinstance(outcome, tuple) else outcome

    def end(self, tenant_id: str, dataset_id: str) -> None:
        """Releases the commit slot, if it was requested."""
        self.timeline.release_slot(tenant_id, dataset_id)

    def _next_request_seconds(self, groups: int) -> float:
        # With all writers busy, no other write could start anyway, so the request delays none.
        if groups >= self.writers_max:
            return self.rules.slot_seconds / 2
        return self.rules.slot_seconds + self.rules.pause_seconds
