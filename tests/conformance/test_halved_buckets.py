"""Tables whose buckets are halved: beside other writers, over large writes, and compared with a plain dictionary."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit.commit_message import CommitMessage, changelog_of
from app.kernel.commit.conflict import Conflicted, check_conflicts
from app.kernel.commit.write_options import Overwrite, OverwriteScope, WriteOptions
from app.kernel.commit.write_plan import MergeTask, plan_merge
from app.kernel.format.dataset import HALVED_MAX, BucketFunction, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.halving import overlaps_within
from app.kernel.format.operation import Operation
from tests.support.lake_table import COMPACT, LakeTable, Row, Write, merged
from tests.support.verification import verified
from workers.engine.task_files import TaskResources

_SCHEMA = CreateSchema(
    fields=[CreateField(name="id", type="int64"), CreateField(name="n", type="int64", nullable=True)]
)


class Watched:
    """A table with buckets of 40 rows, and the rows that it must have. `halved`: how often a bucket was halved."""

    def __init__(self, root: Path, **settings: Any) -> None:
        settings = {"bucket": CreateBucket(target_rows=40), **settings}
        dataset = define_dataset(CreateDataset(name="t", record_key=["id"], schema=_SCHEMA, **settings))
        resources = TaskResources.on(LocalStorage(root), MemoryBudget(bytes_max=2**26))
        self.halved = 0

        def run(tasks: list[MergeTask]) -> list[CommitMessage]:
            self.halved += sum(task.divides for task in tasks)
            return merged(resources, tasks)

        self.table = LakeTable(storage=resources.storage, dataset=dataset, run=run)
        self.expected: dict[int, int] = {}

    def apply(self, write: Write) -> None:
        for row in write.rows:
            if write.operation is Operation.DELETE:
                self.expected.pop(row["id"], None)
            else:
                self.expected[row["id"]] = row["n"]

    def write(self, write: Write) -> None:
        self.table.write(write)
        self.apply(write)

    def check(self) -> None:
        rows = self.table.rows()
        assert len(rows) == len(self.expected)
        assert {row["id"]: row["n"] for row in rows} == self.expected
        by_partition = defaultdict(list)
        for file in self.table.files.values():
            by_partition[file.slot.partition_path].append(file.slot)
        assert not any(overlaps_within(slots) for slots in by_partition.values())

    def verify(self) -> None:
        self.check()
        found = verified(self.table)
        assert found.differences == 0, found.first
        assert found.changes == self.table.next_offset


def upsert(*ids: int, n: int = 0) -> Write:
    return Write(operation=Operation.UPSERT, rows=[{"id": number, "n": n} for number in ids])


def some_write(dice: random.Random, n: int, most: int = 60) -> Write:
    rows: list[Row] = [{"id": dice.randrange(2_000), "n": n} for _ in range(dice.choice([1, 5, 20, most]))]
    operation = Operation.DELETE if dice.random() < 0.15 else Operation.UPSERT
    return Write(operation=operation, rows=rows)


@pytest.mark.parametrize("table_type", TableType)
@pytest.mark.parametrize("function", BucketFunction)
def test_table_equals_the_model_while_its_buckets_are_halved(
    tmp_path: Path, table_type: TableType, function: BucketFunction
) -> None:
    bucket = CreateBucket(target_rows=40, function=function)
    watched = Watched(tmp_path, table_type=table_type, bucket=bucket)
    dice = random.Random(f"{table_type}{function}")
    for step in range(16):
        watched.write(some_write(dice, step))
        if dice.random() < 0.2:
            watched.write(COMPACT)
        watched.check()
    watched.verify()
    assert watched.halved >= 8
    live = defaultdict(int)
    for file in watched.table.files.values():
        live[file.file_group] += file.live_rows
    # The rows of a write are taken to be spread evenly when it is planned.
    assert max(live.values()) <= 60


@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT])
@pytest.mark.parametrize("table_type", TableType)
def test_part_without_rows_of_the_write_keeps_its_rows(
    tmp_path: Path, table_type: TableType, operation: Operation
) -> None:
    watched = Watched(tmp_path, table_type=table_type)
    watched.write(upsert(*range(40)))
    watched.write(Write(operation=operation, rows=[{"id": 40, "n": 1}]))
    watched.verify()
    assert (len(watched.table.groups()), watched.halved) == (2, 2)


def test_write_that_retracts_by_filter_may_halve_a_bucket(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.write(upsert(*range(30)))
    rows = [{"id": number, "n": 7} for number in range(20, 70)]
    overwrite = Overwrite(scope=OverwriteScope.FILTER, where="id >= 20")
    watched.table.write(
        Write(operation=Operation.OVERWRITE, rows=rows, options=WriteOptions(overwrite=overwrite))
    )
    watched.expected = dict.fromkeys(range(20), 0) | dict.fromkeys(range(20, 70), 7)
    watched.verify()
    assert watched.halved == len(watched.table.groups()) == 2


def test_large_write_makes_several_buckets_at_once_and_halves_none(tmp_path: Path) -> None:
    watched = Watched(tmp_path, bucket=CreateBucket(target_rows=1_000))
    # More rows than are staged in one bucket, so that tasks read buckets of another size.
    watched.write(upsert(*range(40_000)))
    assert (len(watched.table.groups()), watched.halved) == (64, 0)
    before = set(watched.table.files)
    watched.write(upsert(7, 40_001, n=1))
    watched.verify()
    assert len(set(watched.table.files) - before) <= 4


def test_group_of_small_write_without_rows_for_a_bucket_does_not_touch_it(tmp_path: Path) -> None:
    watched = Watched(tmp_path, table_type=TableType.COPY_ON_WRITE)
    watched.write(upsert(*range(2_000)))
    before = {file.path: file.file_group for file in watched.table.files.values()}
    watched.write(upsert(*range(17), n=1))
    removed = {before[path] for path in before.keys() - watched.table.files.keys()}
    assert 0 < len(removed) <= 17 < len(set(before.values()))
    watched.check()


def test_bucket_with_one_bucket_key_is_halved_until_the_last_size(tmp_path: Path) -> None:
    watched = Watched(tmp_path, bucket=CreateBucket(target_rows=2, function=BucketFunction.MOD))
    for number in range(12):
        watched.write(upsert(number * HALVED_MAX, n=number))
        watched.check()
    [group] = watched.table.groups()
    assert group == f"bucket-00000-of-{HALVED_MAX}"


@pytest.mark.parametrize("table_type", TableType)
def test_writes_planned_before_a_bucket_is_halved_are_planned_again(
    tmp_path: Path, table_type: TableType
) -> None:
    """Two writers plan at one version and publish one after the other, as the commit transaction lets them."""
    watched = Watched(tmp_path, table_type=table_type)
    dice, table = random.Random(table_type), watched.table
    conflicts = 0
    for step in range(16):
        late, early = some_write(dice, 2 * step, most=30), some_write(dice, 2 * step + 1, most=30)
        began, planned = table.version, table.plan(late)
        messages = {message.file_group: message for message in table.run(planned)}
        watched.write(early)
        verdict = conflict_of(table, messages, began)
        if isinstance(verdict, Conflicted):
            conflicts += 1
            messages = planned_again(table, late, messages, verdict)
        table.commit([late], [messages[name] for name in sorted(messages)])
        watched.apply(late)
        watched.check()
    watched.verify()
    assert watched.halved >= 8
    assert 0 < conflicts < 16


def conflict_of(table: LakeTable, messages: dict[str, CommitMessage], began: int) -> Any:
    window = [change for change in table.window if change.version > began]
    return check_conflicts(messages.values(), window, head_version=table.version)


def planned_again(
    table: LakeTable, write: Write, messages: dict[str, CommitMessage], verdict: Conflicted
) -> dict[str, CommitMessage]:
    """The messages of the groups that stay valid, and those of the others from a plan at the head."""
    void = changelog_of(message for group, message in messages.items() if group in verdict.file_groups)
    kept = {
        group: message
        for group, message in messages.items()
        if group not in verdict.file_groups and not any(file in void for file in message.changelog)
    }
    again = table.plan(write)
    staged = {segment.file.path: segment.file for task in again for segment in task.segments}
    tasks = plan_merge(
        table.dataset,
        {0: list(staged.values())},
        {0: write.intent},
        table.files.values(),
        done_groups=kept.keys(),
        attempt=again[0].attempt,
        data_prefix=table.name,
    )
    assert table.run is not None
    return kept | {message.file_group: message for message in table.run(tasks)}
