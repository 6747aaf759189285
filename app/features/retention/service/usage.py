"""Samples what tenants store, and removes the usage of days that are not kept."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from app.access.tenants.repository.usage import UsageStore
from app.features.retention.repository.stored_bytes import StoredBytesStore

_log = logging.getLogger(__name__)
SAMPLE_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleUsage:
    """Samples every tenant once a minute. Several processes may do so at the same time: one of them samples."""

    store: StoredBytesStore
    usage: UsageStore

    def run(self) -> None:
        """One round over all tenants. A failure of one does not affect others."""
        for tenant_id in self.store.tenants():
            try:
                if self.store.sample(tenant_id, older_than_seconds=SAMPLE_SECONDS):
                    self.usage.expire(tenant_id)
            except Exception:
                _log.exception("the files of tenant %s could not be summed up", tenant_id)
