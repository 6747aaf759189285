"""The interface of views to Spark."""

from __future__ import annotations

from typing import Protocol

from app.kernel.derivation.request import DeriveRequest
from app.kernel.format.rows.staged import StagedFile


class Derivation(Protocol):
    """Computes views on Spark."""

    def derive(self, request: DeriveRequest, tag: str) -> tuple[StagedFile, ...]:
        """Runs the SQL, and stages its result as rows of the view, in order; files without rows are left out.

        Raises DerivationFailed where a value cannot be computed, or does not fit the view's schema; CorruptFile,
        StorageFull, EngineStopped.
        """
        ...
