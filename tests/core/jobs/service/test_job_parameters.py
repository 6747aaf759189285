"""What of a request the timeline shows."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.jobs.job_parameters import parameters_of
from app.core.jobs.kinds.declared import JobRequest
from app.core.jobs.kinds.named_version import SavepointTask
from app.core.jobs.kinds.rewrite import ClusteringTask, CompactionTask
from app.core.jobs.kinds.write import RestoreTarget, WriteRequest
from app.kernel.commit.write_options import OnError, WriteOptions
from app.kernel.format.operation import Operation
from app.kernel.format.policies import ClusterOrder


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (WriteRequest(operation=Operation.UPSERT, schema_id=4), {}),
        (
            WriteRequest(
                operation=Operation.INSERT,
                options=WriteOptions(
                    on_error=OnError.QUARANTINE, partitions=("day=*",), writer_id="w", batch_id=3
                ),
            ),
            {"on_error": "quarantine", "partitions": ["day=*"]},
        ),
        (
            WriteRequest(operation=Operation.SNAPSHOT, restores=RestoreTarget(version=5)),
            {"version": 5},
        ),
        (CompactionTask(), {}),
        (
            ClusteringTask(columns=("a", "b"), order=ClusterOrder.LINEAR, partitions=("p",)),
            {"columns": ["a", "b"], "partitions": ["p"]},
        ),
        (SavepointTask(name="before", keep_seconds=60), {"name": "before", "keep_seconds": 60}),
    ],
)
def test_parameters_of_a_job_are_those_of_its_request(request_: JobRequest, expected: dict[str, Any]) -> None:
    assert parameters_of(request_) == expected
