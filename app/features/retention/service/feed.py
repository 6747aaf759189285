"""Cuts off the changes of feeds that are older than their retention, commit by commit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from app.access.audit.values import UNAUTHENTICATED

_log = logging.getLogger(__name__)
# Removed in one transaction.
_FILES: Final = 1_000
_KEYS: Final = 1_000


class FeedRetention(Protocol):
    """The beginnings of the feeds of all tenants."""

    def tenants(self) -> Sequence[str]: ...

    def datasets(self, tenant_id: str) -> Sequence[str]:
        """Ids of the live datasets whose feeds have a retention, or had one."""
        ...

    def cut(self, tenant_id: str, dataset_id: str, *, follower_lag_seconds: float) -> int:
        """Moves the beginning of a feed forward as far as possible; returns how many changes were cut.

        It cuts whole commits that are older than the feed's retention or beyond its number of changes, and none that a
        consumer within its maximum lag has still to read. `follower_lag_seconds`: the maximum lag of followers that
        have none of their own.
        """
        ...

    def expire_files(self, tenant_id: str, dataset_id: str, limit: int) -> int:
        """Removes up to `limit` segments of files before the beginning of the feed; returns their number."""
        ...


class ExpiringKeys(Protocol):
    """Idempotency keys that expire."""

    def expire(self, tenant_id: str, limit: int) -> int:
        """Removes up to `limit` keys that have expired; returns how many there were."""
        ...


class ExpiringRows(Protocol):
    """Rows of ended jobs, of deleted datasets and of the audit."""

    def run(self, tenant_id: str) -> int:
        """Deletes some that have expired; returns their number."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Retain:
    """Cuts all feeds that have a retention, and removes idempotency keys and rows that have expired.

    Several processes may do so at the same time.
    """

    feeds: FeedRetention
    keys: ExpiringKeys
    rows: ExpiringRows
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
