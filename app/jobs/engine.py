"""What the use cases need of Spark."""

from __future__ import annotations

from typing import Protocol


class TaskProgress(Protocol):
    """What runs under a tag on Spark."""

    def progress(self, tag: str) -> tuple[int, int]:
        """Tasks done and in all of what runs under the tag."""
        ...

    def cancel(self, tag: str) -> None:
        """Stops what runs under the tag; its caller gets EngineStopped."""
        ...
