"""What of a table is different from what it was, and what happens to writes that no reader has seen."""

from __future__ import annotations

import msgspec

from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.restore_plan import plan_restaging, plan_restore
from app.kernel.commit.write_plan import APPEND_BYTES_MAX
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import DataFile, DeletionVector, FileKind
from tests.support.lakehouse import data_file

DATASET = define_dataset(
    CreateDataset(
        name="t", schema=CreateSchema(fields=[CreateField(name="id", type="int64")]), record_key=["id"]
    )
)


def postponed(version: int) -> DataFile:
    return msgspec.structs.replace(
        data_file(), kind=FileKind.POSTPONED, added_version=version, written_version=version
    )


def test_groups_with_equal_files_and_vectors_are_unchanged() -> None:
    same, gone, new = data_file(0), data_file(1), data_file(1)
    marked = data_file(2)
    vector = DeletionVector(path="v", offset=0, size_bytes=1, checksum="c", cardinality=1)
    now = msgspec.structs.replace(marked, deletion_vector=vector, added_version=3)
    plan = plan_restore([same, gone, marked], [same, new, now])
    assert plan.groups == {gone.file_group, marked.file_group}
    assert plan.earlier == ((gone,), (marked,))
    assert plan.in_scope([same, new, now]) == [new, now]
    assert (plan.files_to_drop, plan.files_to_list) == ((), ())


def test_writes_postponed_after_the_version_are_dropped_unread() -> None:
    base, early, late = data_file(), postponed(1), postponed(2)
    plan = plan_restore([base, early], [base, early, late])
    assert (plan.groups, plan.files_to_drop, plan.files_to_list) == (frozenset(), (late,), ())
    [message] = plan.with_listings({})
    assert (message.removed, message.added) == ((late.path,), ())


def test_restored_postponed_writes_keep_their_order() -> None:
    """The first of them was folded into a base file while the second was written."""
    first, second, base = postponed(1), postponed(2), data_file()
    plan = plan_restore([first, second], [base, second])
    assert plan.groups == {base.file_group}
    assert (plan.files_to_drop, plan.files_to_list) == ((second,), (first, second))
    staged_message = CommitMessage(file_group=base.file_group, removed=(base.path,))
    [message] = plan.with_listings({base.file_group: staged_message})
    assert (message.removed, message.added) == ((base.path, second.path), (first, second))


def test_small_groups_are_staged_together() -> None:
    small = [data_file(number) for number in range(3)]
    large = [
        msgspec.structs.replace(data_file(number), size_bytes=APPEND_BYTES_MAX) for number in range(3, 5)
    ]
    tasks = plan_restaging(
        plan_restore([*small, *large], []), DATASET, DATASET, "staged/job", data_prefix="t/d", attempt="a"
    )
    assert [task.groups for task in tasks] == [
        ((small[0],), (small[1],), (small[2],)), ((large[0],),), ((large[1],),),
    ]  # fmt: skip
    assert [task.path for task in tasks] == [f"staged/job-0000{number}.arrow" for number in range(3)]


def test_tombstones_of_the_earlier_version_are_listed_whatever_tasks_made_of_those_now() -> None:
    rows = data_file(1)
    kept, gone, marked = (
        msgspec.structs.replace(data_file(number), kind=FileKind.TOMBSTONE, file_group=rows.file_group)
        for number in range(2, 5)
    )
    vector = DeletionVector(size_bytes=8, checksum="0", cardinality=1, content=b"")
    marked_now = msgspec.structs.replace(marked, deletion_vector=vector)
    plan = plan_restore([rows, kept, marked], [rows, kept, gone, marked_now])
    assert plan.groups == frozenset()
    task = CommitMessage(file_group=rows.file_group, removed=(kept.path,), added=(gone,))
    [message] = plan.with_listings({rows.file_group: task})
    assert sorted(message.removed) == sorted([kept.path, gone.path, marked.path])
    assert message.added == (kept, marked)


def test_tombstones_that_logs_decide_are_not_listed_from_files() -> None:
    log = msgspec.structs.replace(data_file(1), kind=FileKind.LOG)
    tombstones = msgspec.structs.replace(data_file(2), kind=FileKind.TOMBSTONE, file_group=log.file_group)
    later = msgspec.structs.replace(data_file(3), kind=FileKind.LOG, file_group=log.file_group)
    plan = plan_restore([log, tombstones], [log, tombstones, later])
    assert plan.earlier == ((log, tombstones),)
    assert (plan.files_to_drop, plan.files_to_list) == ((tombstones,), ())
    same = plan_restore([log, tombstones], [log, tombstones])
    assert (same.groups, same.files_to_drop) == (frozenset(), ())
