"""Comparisons of two versions: accepted on request, and run as jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.comparison import COMPARISON, ComparisonResult, ComparisonTask, RowsCompared
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted, Job
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.version_definition import definition_at
from app.core.timeline.service.version_pins import VersionPins
from app.features.versions.service.versions import VersionOf
from app.kernel.commit.comparison import RowDifferences, compare_files, compare_schemas, plan_comparison
from app.kernel.format.file_group import DataFile


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


@dataclass(frozen=True, kw_only=True, slots=True)
class RunComparisons:
    """Runs the tasks of comparisons."""

    catalog: DatasetLookup
    jobs: JobStore
    timeline: VersionReader
    pins: VersionPins
    engine: Engine

    def run(self, job: Job, task: ComparisonTask, tag: str) -> None:
        """Raises VersionExpired, NotFound, CorruptFile, StorageFull, EngineStopped."""
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        with (
            self.pins.pin(job.tenant_id, [(dataset.id, task.from_version)], f"{tag}-from"),
            self.pins.pin(job.tenant_id, [(dataset.id, task.to_version)], f"{tag}-to"),
        ):
            result = self._compare(dataset, task, tag)
        self.jobs.succeed(job.tenant_id, job.claim, COMPARISON.stored(result))

    def _compare(self, dataset: Dataset, task: ComparisonTask, tag: str) -> ComparisonResult:
        versions = task.from_version, task.to_version
        dataset_before, dataset_after = (
            definition_at(self.timeline, dataset, version) for version in versions
        )
        # A later schema can hold all values of an earlier one.
        later = max(dataset_before, dataset_after, key=lambda each: each.schema.id)
        files_before, files_after = (self._files(dataset, version) for version in versions)
        plan = plan_comparison(later, dataset_before, dataset_after, files_before, files_after)
        rows = sum(self.engine.run(plan.tasks, tag), RowDifferences(unchanged_rows=plan.unchanged_rows))
        names = {field.id: field.name for field in later.schema.fields}
        return ComparisonResult(
            from_version=task.from_version,
            to_version=task.to_version,
            rows=RowsCompared(
                added=rows.added_rows,
                removed=rows.removed_rows,
                changed=rows.changed_rows,
                unchanged=rows.unchanged_rows,
            ),
            columns={names[number]: count for number, count in sorted(rows.values.items())},
            files=compare_files(files_before, files_after),
            schema=compare_schemas(dataset_before.schema, dataset_after.schema),
        )

    def _files(self, dataset: Dataset, version: int) -> list[DataFile]:
        return self.timeline.live_files(dataset.tenant_id, dataset.id, version, None)
