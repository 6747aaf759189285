"""Reconcilers of maintenance policies: their input, their result, and the state that is kept between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

from app.core.catalog.values import Dataset

ReconcilerMemory = dict[str, Any]
"""What a reconciler keeps of a dataset between two runs: a small JSON object in a form of its own."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a reconciler: the dataset as of `now` (the database's clock).

    `since_version`: the version of its last run, 0 before the first one. `epoch`: the claim under which it runs.
    """

    dataset: Dataset
    since_version: int
    memory: ReconcilerMemory
    now: datetime
    epoch: int = 0


class ReconcileResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a reconciler: its state, and after how many seconds it is due again.

    `wake_after_seconds` is None if it is due with the next version only.
    """

    memory: ReconcilerMemory = {}
    wake_after_seconds: float | None = None


class Reconciler(Protocol):
    """Carries out one maintenance policy of datasets; most start a job and do not wait for it.

    It is called for every dataset after one or several commits, and reads from the definition whether its policy is
    set. A run takes seconds at most, and may be repeated if a worker dies. A reconciler that raises is called again
    later for the same versions.
    """

    def reconcile(self, observation: Observation) -> ReconcileResult: ...


class ReconcilerRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stored state of a reconciler: the version of its last run, and when it is due again.

    `failures`: the number of failed runs in a row. After a failure it is not called before `wake_at`.
    """

    version: int = 0
    wake_at: datetime | None = None
    failures: int = 0
    memory: ReconcilerMemory = {}


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
