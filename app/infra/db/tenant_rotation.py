"""Polls that are fair between tenants: each tenant gets an equal part of what a poll returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_FIRST: Final = "00000000-0000-0000-0000-000000000000"


@dataclass(kw_only=True, slots=True)
class Rotation:
    """Where the next poll of a source continues, so that those that were left out come next. Kept by one poller."""

    tenant_id: str = _FIRST
    """The last tenant of a poll that did not reach all; otherwise the least id."""
    dataset_ids: dict[str, str] = field(default_factory=dict)
    """The last dataset of each tenant that had as many as a poll returns of one."""

    def after(self, tenant_id: str) -> str:
        """The dataset after which the tenant's continue."""
        return self.dataset_ids.get(tenant_id, _FIRST)
