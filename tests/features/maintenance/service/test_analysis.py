"""When the policy of a dataset has it analyzed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation
from app.core.jobs.kinds.analysis import AnalysisTask
from app.core.jobs.kinds.kind import JobKind
from app.features.maintenance.service.analysis import Analysis, AnalyzedTable
from app.features.maintenance.service.table_service import Due, Measured
from app.features.maintenance.values import ServiceResult
from app.kernel.format.policies import AnalysisPolicy, TableServices
from tests.support.lakehouse import definition

NOW = datetime(2026, 11, 28, tzinfo=UTC)


@dataclass
class Results:
    """The results of a dataset that has been analyzed, or not yet."""

    analyzed: AnalyzedTable | None = None

    def last(self, tenant_id: str, dataset_id: str, service: JobKind) -> ServiceResult | None:
        assert (tenant_id, dataset_id, service) == ("t", "d", JobKind.ANALYSIS)
        if self.analyzed is None:
            return None
        return ServiceResult(version=10, content=msgspec.to_builtins(self.analyzed))

    def put(
        self, tenant_id: str, dataset_id: str, service: JobKind, version: int, content: Mapping[str, Any]
    ) -> None:
        raise AssertionError("a policy only reads")


def due(policy: Any, analyzed: AnalyzedTable | None = None, *, version: int = 10, changes: int = 0) -> bool:
    changed = msgspec.structs.replace(definition(), services=TableServices(analysis=policy))
    dataset = Dataset(
        id="d", tenant_id="t", definition=changed, version=version, next_offset=changes, created_at=NOW,
        committed_at=None,
    )  # fmt: skip
    service = Analysis(
        catalog=None, timeline=None, pins=None, engine=None, results=Results(analyzed), jobs=None
    )  # type: ignore[arg-type]
    observation = Observation(dataset=dataset, since_version=0, memory={}, now=NOW)
    found = service.due(observation, Measured(since=3, until=3))
    assert found in [
        Due(task=task, measured=Measured(since=version, until=version)) for task in (None, AnalysisTask())
    ]
    return found.task is not None


def test_table_is_analyzed_after_its_first_commit() -> None:
    assert not due(AnalysisPolicy(), version=0)
    assert due(AnalysisPolicy(), version=1)
    assert not due(None, version=1)
    assert not due(msgspec.UNSET, version=1)


@pytest.mark.parametrize(
    ("rows", "changes", "expected"),
    [(0, 999, False), (0, 1_000, True), (100_000, 19_999, False), (100_000, 20_000, True)],
)
def test_table_is_analyzed_again_once_a_share_has_changed(rows: int, changes: int, expected: bool) -> None:
    analyzed = AnalyzedTable(rows=rows, changes=50, distinct={"1": 1})
    assert due(AnalysisPolicy(), analyzed, version=99, changes=50 + changes) is expected
    assert not due(AnalysisPolicy(changed_ratio=None), analyzed, version=99, changes=50 + changes)


def test_table_is_analyzed_again_after_a_number_of_versions() -> None:
    analyzed = AnalyzedTable(rows=1, changes=0, distinct={})
    policy = AnalysisPolicy(changed_ratio=None, versions=5)
    assert [version for version in range(10, 17) if due(policy, analyzed, version=version)] == [15, 16]
