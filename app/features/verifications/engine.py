"""The port to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.core.jobs.engine import TaskProgress
from app.kernel.changelog.verification import FoldTask, FoldVerdict


class Verification(TaskProgress, Protocol):
    """Compares feeds with their tables on Spark."""

    def verify(self, tasks: Sequence[FoldTask], tag: str) -> FoldVerdict:
        """The sum of what the tasks found. Raises CorruptFile, StorageFull, EngineStopped."""
        ...
