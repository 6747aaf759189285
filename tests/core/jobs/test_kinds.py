"""The declarations of kinds of jobs, and what is registered for them."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.core.jobs.kinds.analysis import AnalysisTask
from app.core.jobs.kinds.clean import CleanTask
from app.core.jobs.kinds.declared import (
    KINDS,
    STAGED_WRITES,
    TASKS,
    AnyTask,
    JobRequest,
    for_each,
    instant_action,
    process_of,
)
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.kinds.named_version import SavepointTask, TagTask
from app.core.jobs.kinds.rewrite import ClusteringTask, CompactionTask
from app.core.jobs.kinds.verification import VerifyTask
from app.core.jobs.kinds.write import RestoreTarget, SourceRound, WriteRequest
from app.kernel.format.instant import Action
from app.kernel.format.operation import Operation

WRITE = WriteRequest(operation=Operation.UPSERT)


def write(**more: object) -> WriteRequest:
    return msgspec.structs.replace(WRITE, **more)


@pytest.mark.parametrize(
    ("request_", "kind", "action"),
    [
        (WRITE, JobKind.WRITE, Action.COMMIT),
        (write(derived=True), JobKind.REFRESH, Action.COMMIT),
        (write(restores=RestoreTarget(version=2)), JobKind.RESTORE, Action.RESTORE),
        (write(restores=RestoreTarget(instants=2)), JobKind.ROLLBACK, Action.ROLLBACK),
        (write(round=SourceRound(source_id="s", source="s")), JobKind.SOURCE_ROUND, Action.COMMIT),
        (CompactionTask(), JobKind.COMPACTION, Action.COMPACTION),
        (ClusteringTask(columns=("a",)), JobKind.CLUSTERING, Action.CLUSTERING),
        (CleanTask(), JobKind.CLEAN, Action.CLEAN),
        (AnalysisTask(), JobKind.ANALYSIS, None),
        (SavepointTask(name="a"), JobKind.SAVEPOINT, Action.SAVEPOINT),
        (TagTask(name="a"), JobKind.TAG, Action.TAG),
        (VerifyTask(), JobKind.VERIFICATION, None),
    ],
)
def test_request_names_its_kind_and_the_instant_that_it_leaves(
    request_: JobRequest, kind: JobKind, action: Action | None
) -> None:
    assert (request_.kind, instant_action(request_)) == (kind, action)
    assert isinstance(request_, KINDS[kind].request)


def test_stored_name_of_each_task_is_that_of_its_kind() -> None:
    for kind in TASKS:
        tag = kind.request.__struct_config__.tag
        assert tag == kind.name.value
    task = ClusteringTask(columns=("a",))
    stored = json.loads(msgspec.json.encode(task))
    # A replayed request is recognized by its stored text, so members keep their order.
    assert list(stored) == ["task", "columns", "order", "partitions", "file_groups"]
    assert msgspec.json.decode(msgspec.json.encode(task), type=AnyTask) == task


def test_only_tasks_that_change_files_are_exclusive() -> None:
    assert CompactionTask().exclusive
    assert CleanTask().exclusive
    assert not AnalysisTask().exclusive
    assert not VerifyTask().exclusive
    assert not TagTask(name="a").exclusive


def test_writes_whose_rows_the_sql_of_a_user_makes_have_a_process_of_their_own() -> None:
    for kind in (JobKind.WRITE, JobKind.RESTORE, JobKind.ROLLBACK):
        assert process_of(kind, 2) is WriteProcess.WORKER
    assert process_of(JobKind.SOURCE_ROUND, 0) is WriteProcess.WORKER
    assert process_of(JobKind.SOURCE_ROUND, 0, transforms=True) is WriteProcess.DERIVED
    assert process_of(JobKind.REFRESH, 0) is WriteProcess.DERIVED
    assert process_of(JobKind.REFRESH, 1) is WriteProcess.ISOLATED
    assert process_of(JobKind.REFRESH, 1, slow=True) is WriteProcess.SLOW
    assert process_of(JobKind.SOURCE_ROUND, 0, transforms=True, slow=True) is WriteProcess.SLOW


def test_each_kind_has_a_part() -> None:
    parts = {kind.name: kind.name.value for kind in TASKS}
    assert for_each(TASKS, parts) == parts


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ([JobKind.REFRESH, JobKind.RESTORE, JobKind.ROLLBACK], "source_round"),
        ([kind.name for kind in STAGED_WRITES] + [JobKind.READ], "read"),
    ],
    ids=["none", "of another kind"],
)
def test_kind_without_a_part_and_part_of_another_kind_are_refused(names: list[JobKind], fault: str) -> None:
    with pytest.raises(ValueError, match=f"not here: {fault}$"):
        for_each(STAGED_WRITES, dict.fromkeys(names, "part"))
