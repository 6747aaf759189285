"""What carries out maintenance policies: its input, its result, and the state that it keeps between two runs."""

from __future__ import annotations

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
