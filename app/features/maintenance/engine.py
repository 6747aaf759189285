"""The interface of table services to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.core.jobs.engine import TaskProgress
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_plan import MergeTask


class TableServiceEngine(TaskProgress, Protocol):
    """Runs the tasks of table services on Spark, in a pool of their own beside writes."""

    def rewrite(self, tasks: Sequence[MergeTask], tag: str) -> list[CommitMessage]:
        """One commit message per task, in order. Raises CorruptFile, StorageFull, EngineStopped."""
        ...
