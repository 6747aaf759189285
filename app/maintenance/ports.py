"""What the use cases need of a dataset's past: versions with names, and holds on versions that are being read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from app.commit.commit_message import CommitMessage
from app.commit.write_plan import MergeTask
from app.format.file_group import DataFile


class Rebase(Protocol):
    """Brings what a table service wrote up to rows that were deleted meanwhile."""

    def rebase(
        self, task: MergeTask, message: CommitMessage, live: Mapping[str, DataFile], attempt: str
    ) -> CommitMessage | None:
        """What the task, which keeps all rows, would have answered over its files as they are `live`, by path.

        None if the rows that are gone by now cannot be told in what it wrote. Raises CorruptFile, StorageFull.
        """
        ...
