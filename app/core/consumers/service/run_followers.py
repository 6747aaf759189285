"""Runs followers of feeds that are due: one bounded piece of work at a time, each under a lease."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.core.consumers.followers import Consumer, ConsumerKind, Follower, Followers

_log = logging.getLogger(__name__)
# Longer than any piece of work takes.
_LEASE_SECONDS: Final = 120.0
_AFTER_A_FAULT_SECONDS: Final = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Follow:
    """The worker's use case. `owner` names this worker process."""

    followers: Followers
    handlers: Mapping[ConsumerKind, Follower]
    owner: str

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Does one piece of work of one follower of the dataset; False if none is due."""
        consumer = self.followers.claim(tenant_id, dataset_id, self.owner, _LEASE_SECONDS)
        if consumer is None:
            return False
        self.followers.settle(tenant_id, consumer, self._follow(tenant_id, consumer))
        return True

    def _follow(self, tenant_id: str, consumer: Consumer) -> float | None:
        try:
            return self.handlers[consumer.kind].follow(tenant_id, consumer)
        except Exception:
            # Handlers report errors of a user's definition themselves. This is a fault of the service or of its
            # storage.
            _log.exception("%s of dataset %s will be tried again", consumer.name, consumer.dataset_id)
            return _AFTER_A_FAULT_SECONDS
