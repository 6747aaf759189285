"""The task that fetches a part of a round in Spark's Python processes."""

from __future__ import annotations

import msgspec

from app.features.sources.ports import Part, Place, RoundLimits


class FetchTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
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
