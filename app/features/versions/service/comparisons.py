"""Comparisons of two versions on request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.comparison import ComparisonTask
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted
from app.features.versions.service.versions import VersionOf


class ComparedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison, by number, by time or by name; the latest version by default."""

    version: int | None = None
    as_of: datetime | None = None
    tag: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparisons:
    """Accepts comparisons."""

    versions: VersionOf
    jobs: RequestJob

    def start(
        self, dataset: Dataset, begin: ComparedVersion, end: ComparedVersion, identity: RequestIdentity
    ) -> Accepted:
        """A job that compares `end` with `begin`; the versions of both are determined now.

        Raises InvalidRequest, VersionExpired, IdempotencyMismatch, NotFound.
        """
        earlier_job = self.jobs.replayed(dataset, identity)
        if earlier_job is not None:
            return earlier_job
        task = ComparisonTask(
            from_version=self._find(dataset, begin, "from_"), to_version=self._find(dataset, end, "to_")
        )
        return self.jobs.accept(dataset, task, identity)

    def _find(self, dataset: Dataset, side: ComparedVersion, prefix: str) -> int:
        return self.versions.find(
            dataset, version=side.version, as_of=side.as_of, tag=side.tag, prefix=prefix
        )
