"""What looks after datasets by itself: keepers, what they are shown, and what they remember between two looks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

from app.catalog.values import Dataset

ReconcilerMemory = dict[str, Any]
"""What a keeper knows of a dataset from its earlier looks: a small JSON object of its own making."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What a keeper is shown: the dataset as it is `now` (the database's clock).

    `since_version`: the version that it saw last, 0 before its first look.
    """

    dataset: Dataset
    since_version: int
    memory: ReconcilerMemory
    now: datetime


class ReconcileResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a keeper leaves: its memory, and after how many seconds it wants to look again though nothing is committed.

    None: with the next version.
    """

    memory: ReconcilerMemory = {}
    wake_after_seconds: float | None = None


class Reconciler(Protocol):
    """Does one of the table services of datasets, or sees that it is done: most start a job and leave it at that.

    It is shown every dataset after each commit, or a few together, and reads in the definition whether there is
    anything to do for it. A look takes no more than seconds, and may be made twice, if a worker dies. One that raises
    is shown the same versions again later.
    """

    def reconcile(self, observation: Observation) -> ReconcileResult: ...


class ReconcilerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A keeper's memory as it is stored: which version it saw last, and when it wants to look again.

    `failures`: how often it has raised since it last did not; it is then left alone until `wake_at`.
    """

    version: int = 0
    wake_at: datetime | None = None
    failures: int = 0
    memory: ReconcilerMemory = {}


class ClaimedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset whose table services are one worker's to look after until its lease ends. `epoch` counts the holds."""

    dataset: Dataset
    epoch: int
    now: datetime
    memory: dict[str, ReconcilerRecord]


class MaintenanceClaims(Protocol):
    """Datasets whose table services are to be looked after."""

    def due(self, limit: int) -> list[tuple[str, str]]:
        """Tenants and datasets that nobody holds: up to `limit` with versions that nobody has looked at, longest first,
        and as many whose time has come.
        """
        ...

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> ClaimedTable | None:
        """The dataset, held by `owner` now; None if it is not due, or held, or being committed to, or gone."""
        ...

    def settle(
        self,
        tenant_id: str,
        held: ClaimedTable,
        memory: Mapping[str, ReconcilerRecord],
        wake_at: datetime | None,
    ) -> bool:
        """Ends the hold, and says what was learned and when the dataset is due again though nothing is committed.

        False, and nothing is changed, if the hold was lost meanwhile.
        """
        ...
