"""The interface of tasks to Spark."""

from __future__ import annotations

from typing import Protocol


class TaskProgress(Protocol):
    """Progress and cancellation of what runs under a tag on Spark."""

    def progress(self, tag: str) -> tuple[int, int]:
        """The numbers of finished and of all Spark tasks under the tag."""
        ...

    def cancel(self, tag: str) -> None:
        """Stops what runs under the tag; the thread that waits for it gets EngineStopped."""
        ...
