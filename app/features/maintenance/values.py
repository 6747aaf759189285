"""Datasets whose maintenance policies are due, and the stored state of the reconcilers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import ReconcilerMemory
from app.core.jobs.kinds.kind import JobKind


class ReconcilerRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stored state of a reconciler: the version of its last run, and when it is due again.

    `failures`: the number of failed runs in a row. After a failure it is not called before `wake_at`.
    """

    version: int = 0
    wake_at: datetime | None = None
    failures: int = 0
    memory: ReconcilerMemory = {}


class ServiceResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a table service has found at a version, in a form of its own."""

    version: int
    content: dict[str, Any]


class ServiceResults(Protocol):
    """The last result of each table service that makes no version."""

    def last(self, tenant_id: str, dataset_id: str, service: JobKind) -> ServiceResult | None:
        """The result with the latest version; None before the first one."""
        ...

    def put(
        self, tenant_id: str, dataset_id: str, service: JobKind, version: int, content: Mapping[str, Any]
    ) -> None:
        """Replaces the result of the service, unless that is of a later version. Raises NotFound (dataset gone)."""
        ...


class ClaimedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset whose policies one worker may run until its lease ends. `epoch` counts the claims."""

    dataset: Dataset
    epoch: int
    now: datetime
    memory: dict[str, ReconcilerRecord]


class MaintenanceClaims(Protocol):
    """Claims of datasets whose maintenance policies are due."""

    def due(self, limit: int) -> list[tuple[str, str]]:
        """Tenants and datasets that are not claimed: up to `limit` with versions that are not reconciled, the oldest
        first, and up to `limit` whose time has come.
        """
        ...

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> ClaimedTable | None:
        """The dataset, now claimed by `owner`; None if it is not due, claimed, being committed to, or gone."""
        ...

    def settle(
        self,
        tenant_id: str,
        held: ClaimedTable,
        memory: Mapping[str, ReconcilerRecord],
        wake_at: datetime | None,
    ) -> bool:
        """Releases the claim, and stores the states and when the dataset is due again without a commit.

        False, and nothing is changed, if the claim was lost meanwhile.
        """
        ...
