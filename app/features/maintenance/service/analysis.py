"""The table service `services.analysis`: counts the distinct values of each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation
from app.core.jobs.engine import Engine
from app.core.jobs.kinds.analysis import ANALYSIS, AnalysisResult, AnalysisTask
from app.core.jobs.kinds.kind import JobDeclaration
from app.core.jobs.values import Claim, Job
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.version_pins import VersionPins
from app.features.maintenance.service.table_service import Due, Measured
from app.features.maintenance.values import ServiceResults
from app.infra.files.slices.distinct_values import count_distinct, plan_sketches
from app.kernel.format.policies import AnalysisPolicy, TableServices

# A small table is not analyzed after every write.
_CHANGES_MIN: Final = 1_000


class AnalyzedTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stored result of an analysis: the rows of the version, and the changes that the feed had by then.

    `distinct`: by field id, the estimated number of distinct values; nulls are no value.
    """

    rows: int
    changes: int
    distinct: dict[str, int]


class ColumnDistinct(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated number of distinct values of a column at a version."""

    version: int
    distinct: int


class EndsTasks(Protocol):
    """Ends tasks with their results."""

    def succeed(self, tenant_id: str, claim: Claim, result: dict[str, Any]) -> bool:
        """False if the claim is void."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysisResults:
    """What the last analysis of a dataset has found."""

    results: ServiceResults

    def last(self, dataset: Dataset) -> tuple[int, AnalyzedTable] | None:
        """The version that was analyzed last, and the result; None before the first analysis."""
        found = self.results.last(dataset.tenant_id, dataset.id, ANALYSIS.name)
        if found is None:
            return None
        return found.version, msgspec.convert(found.content, AnalyzedTable)

    def columns(self, dataset: Dataset) -> dict[int, ColumnDistinct]:
        """The distinct values of the columns that the table had when it was analyzed, by field id."""
        last = self.last(dataset)
        if last is None:
            return {}
        version, table = last
        return {
            int(field_id): ColumnDistinct(version=version, distinct=distinct)
            for field_id, distinct in table.distinct.items()
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Analysis:
    """See `TableService`."""

    catalog: DatasetLookup
    timeline: VersionReader
    pins: VersionPins
    engine: Engine
    results: ServiceResults
    jobs: EndsTasks
    kind: JobDeclaration[AnalysisTask, AnalysisResult] = ANALYSIS

    def policy(self, services: TableServices) -> AnalysisPolicy | None:
        return None if services.analysis is msgspec.UNSET else services.analysis

    def due(self, observation: Observation, measured: Measured) -> Due[AnalysisTask]:  # noqa: ARG002
        """One analysis of the whole table, if enough has changed since the last one."""
        dataset = observation.dataset
        policy = self.policy(dataset.definition.services)
        due = policy is not None and self._is_due(policy, dataset)
        return Due(
            task=AnalysisTask() if due else None,
            measured=Measured(since=dataset.version, until=dataset.version),
        )

    def _is_due(self, policy: AnalysisPolicy, dataset: Dataset) -> bool:
        last = AnalysisResults(results=self.results).last(dataset)
        if last is None:
            return dataset.version > 0
        version, table = last
        if policy.versions is not None and dataset.version - version >= policy.versions:
            return True
        changes = dataset.next_offset - table.changes
        return policy.changed_ratio is not None and changes >= max(
            policy.changed_ratio * table.rows, _CHANGES_MIN
        )

    def run(self, job: Job, task: AnalysisTask, tag: str) -> None:  # noqa: ARG002
        """Raises NotFound (dataset gone), VersionExpired, CorruptFile, StorageFull, EngineStopped."""
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        fields = dataset.definition.schema.fields
        with self.pins.pin(dataset.tenant_id, [(dataset.id, dataset.version)], tag):
            live = self.timeline.live_files(dataset.tenant_id, dataset.id, dataset.version, None)
            parts = self.engine.run(plan_sketches(dataset.definition, live), tag)
        counts = count_distinct(parts, len(fields))
        table = AnalyzedTable(
            rows=counts.rows,
            changes=dataset.next_offset,
            distinct={str(field.id): count for field, count in zip(fields, counts.distinct, strict=True)},
        )
        self.results.put(
            dataset.tenant_id, dataset.id, ANALYSIS.name, dataset.version, msgspec.to_builtins(table)
        )
        result = AnalysisResult(version=dataset.version, rows=counts.rows, columns=len(fields))
        self.jobs.succeed(job.tenant_id, job.claim, ANALYSIS.stored(result))
