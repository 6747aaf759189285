"""The times of a dataset's commits, as tasks that return meta columns need them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from app.core.timeline.ports import VersionReader
from app.kernel.codecs.commit_times import PackedCommitTimes

_VERSIONS_READ: Final = 10_000


def commit_times_to(
    timeline: VersionReader, tenant_id: str, dataset_id: str, version: int
) -> PackedCommitTimes:
    """When the versions up to this one were committed."""
    times: dict[int, datetime] = {}
    for first in range(1, version + 1, _VERSIONS_READ):
        some = range(first, min(first + _VERSIONS_READ, version + 1))
        times |= timeline.commit_times(tenant_id, dataset_id, some)
    return PackedCommitTimes.of(times, version)
