"""The task that fetches a part of a round in Spark's Python processes."""

from __future__ import annotations

from app.features.sources.ports import Fetched, Part, Place, RoundLimits
from app.kernel.format.engine_task import EngineTask, Work


class FetchTask(EngineTask[Fetched], frozen=True, kw_only=True, tag=True):
    """Fetches a part of a source of kind `kind`.

    `prefix`: of the paths of the files to write. `quarantine`: the same for records that cannot be decoded; without it,
    these fail the task.
    """

    kind: str
    place: Place
    part: Part
    limits: RoundLimits
    prefix: str
    quarantine: str | None = None

    @property
    def work(self) -> Work:
        """It reads the rows of a write."""
        return Work.WRITES

    @property
    def size_bytes(self) -> int:
        """The estimate of the source."""
        return self.part.size_bytes
