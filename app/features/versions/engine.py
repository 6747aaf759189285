"""The ports to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.core.jobs.engine import TaskProgress
from app.kernel.commit.comparison import Compared, CompareTask
from app.kernel.commit.restore_plan import RestageTask
from app.kernel.format.rows.staged import StagedFile


class Restaging(Protocol):
    """Reads earlier versions on Spark."""

    def restage(self, tasks: Sequence[RestageTask], tag: str) -> list[StagedFile]:
        """Stages the rows of the tasks, in order; files without rows are left out.

        Raises CorruptFile, StorageFull, EngineStopped.
        """
        ...


class Comparing(TaskProgress, Protocol):
    """Compares versions on Spark."""

    def compare(self, tasks: Sequence[CompareTask], tag: str) -> Compared:
        """The sum of what the tasks counted. Raises CorruptFile, StorageFull, EngineStopped."""
        ...
