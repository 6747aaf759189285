"""Runs comparisons of two versions."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.comparison import COMPARISON, ComparisonResult, ComparisonTask, RowsCompared
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.values import Job
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.version_pins import VersionPins
from app.kernel.commit.comparison import RowDifferences, compare_files, compare_schemas, plan_comparison
from app.kernel.format.definition.evolution import under_schema
from app.kernel.format.file_group import DataFile


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
        schemas = [self.timeline.schema_at(dataset.tenant_id, dataset.id, version) for version in versions]
        dataset_before, dataset_after = (under_schema(dataset.definition, schema) for schema in schemas)
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
            schema=compare_schemas(*schemas),
        )

    def _files(self, dataset: Dataset, version: int) -> list[DataFile]:
        return self.timeline.live_files(dataset.tenant_id, dataset.id, version, None)
