"""Cuts off the changes of feeds that are older than their retention, commit by commit."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, Protocol

from app.access.audit.values import UNAUTHENTICATED
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.service.expired_rows import ExpireRows

_log = logging.getLogger(__name__)
# Removed in one transaction.
_FILES: Final = 1_000
_KEYS: Final = 1_000


class ExpiringKeys(Protocol):
    """Idempotency keys that expire."""

    def expire(self, tenant_id: str, limit: int) -> int:
        """Removes up to `limit` keys that have expired; returns how many there were."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Retain:
    """Cuts all feeds that have a retention, and removes idempotency keys and rows that have expired.

    Several processes may do so at the same time.
    """

    feeds: RetentionStore
    keys: ExpiringKeys
    rows: ExpireRows
    follower_lag_seconds: float

    def run(self) -> int:
        """One round over all datasets; returns how many changes were cut. A failure of one does not affect others."""
        cut = failures = 0
        self._expire_rows(UNAUTHENTICATED)
        for tenant_id in self.feeds.tenants():
            self._expire_keys(tenant_id)
            self._expire_rows(tenant_id)
            try:
                for dataset_id in self.feeds.datasets(tenant_id):
                    try:
                        cut += self._retain(tenant_id, dataset_id)
                    except Exception:
                        failures += 1
                        _log.exception("the feed of dataset %s could not be cut", dataset_id)
            except Exception:
                failures += 1
                _log.exception("the feeds of tenant %s could not be listed", tenant_id)
        if cut or failures:
            _log.info(
                "cut %d changes off the beginnings of feeds; %d failures, tried again in the next round",
                cut,
                failures,
            )
        return cut

    def _expire_keys(self, tenant_id: str) -> None:
        try:
            while self.keys.expire(tenant_id, _KEYS) == _KEYS:
                pass
        except Exception:
            _log.exception("the expired idempotency keys of tenant %s could not be removed", tenant_id)

    def _expire_rows(self, tenant_id: str) -> None:
        try:
            self.rows.run(tenant_id)
        except Exception:
            _log.exception("the expired rows of tenant %s could not be deleted", tenant_id)

    def _retain(self, tenant_id: str, dataset_id: str) -> int:
        # Files that the previous round cut: pages that were being read then have ended.
        while self.feeds.expire_files(tenant_id, dataset_id, _FILES) == _FILES:
            pass
        return self.feeds.cut(tenant_id, dataset_id, follower_lag_seconds=self.follower_lag_seconds)
