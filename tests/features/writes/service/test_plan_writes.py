"""At which version a write is planned, and which file groups get a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import pytest
from msgspec.structs import replace

from app.core.catalog.values import Dataset
from app.core.feature.stagers import RestoredVersion, StagedInput
from app.core.timeline.errors import VersionExpired
from app.features.writes.attempt import Claimed, Decoded, Planned, Replan
from app.features.writes.service.plan import PlanWrites
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_options import ChangeOrder, Overwrite, SaveMode, WriteOptions
from app.kernel.format.dataset import Deletes, MergeMode
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.errors import DataExists
from app.kernel.format.file_group import DataFile, FileKind, Slot, bucket_file_group
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedBatch
from tests.support.attempts import DATASET, EVOLVED, HEAD, RESTORED, decoded, staged, write_job
from tests.support.lakehouse import data_file
from tests.support.versioned_tables import registration_of

NOON: Final = datetime(2026, 11, 28, 12, tzinfo=UTC)
SLOTS: Final = [Slot(partition_path="", bucket=bucket) for bucket in range(2)]
BATCHES: Final = [StagedBatch(slot=slot, index=number, rows=1) for number, slot in enumerate(SLOTS)]


@dataclass
class World:
    """A catalogue and a timeline of one dataset. `requested` are the versions and groups whose files were read."""

    dataset: Dataset = DATASET
    files: list[DataFile] = field(default_factory=list)
    expired: bool = False
    requested: list[tuple[int, list[str] | None]] = field(default_factory=list)
    partitions: list[list[str]] = field(default_factory=list)

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return self.dataset

    def live_files(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        file_groups: Sequence[str] | None,
        partitions: Sequence[str] = (),
    ) -> list[DataFile]:
        self.requested.append((version, None if file_groups is None else list(file_groups)))
        self.partitions.append(list(partitions))
        if self.expired:
            raise VersionExpired("too old")
        return self.files

    def next_commit_time(self, tenant_id: str, dataset_id: str) -> datetime:
        return NOON


def part(
    operation: Operation = Operation.UPSERT,
    options: WriteOptions | None = None,
    restored: RestoredVersion | None = None,
) -> Decoded:
    """One write of a row in each of two file groups."""
    job = write_job(operation=operation, options=options)
    return decoded(StagedInput(job=job, files=(staged(2, batches=BATCHES),), restored_version=restored))


def plan(world: World, made: Decoded | Replan) -> Planned | Decoded | Claimed:
    return PlanWrites(catalog=world, timeline=world).run("t", made, "20260102030405000000-000001-1-1")  # type: ignore[arg-type]


def planned(world: World, made: Decoded | Replan) -> Planned:
    after = plan(world, made)
    assert isinstance(after, Planned)
    return after


def groups(made: Planned) -> list[str]:
    return [task.file_group for task in made.tasks]


def after_conflict(made: Planned, *kept: str) -> Replan:
    """The messages of these groups are valid up to version 5."""
    return Replan(
        decoded=made.decoded,
        version=5,
        schema_id=made.plan.dataset.definition.schema.id,
        messages={group: CommitMessage(file_group=group) for group in kept},
    )


def test_first_plan_is_made_at_the_head_for_each_file_group() -> None:
    world = World()
    made = planned(world, part())
    assert len(made.tasks) == 2
    assert world.requested == [(HEAD, groups(made))]
    assert (made.plan.version, made.messages) == (HEAD, {})


def test_only_groups_without_a_message_are_planned_at_the_version_of_the_messages() -> None:
    world = World()
    before = planned(world, part())
    first, second = groups(before)
    made = planned(world, after_conflict(before, first))
    assert groups(made) == [second]
    assert world.requested[1:] == [(5, [second])]
    assert (made.plan.version, list(made.messages)) == (5, [first])


def test_all_buckets_are_read_only_if_keys_are_in_none_that_has_files() -> None:
    root = Slot(partition_path="", bucket=0, of=1)
    batch = StagedBatch(slot=root, index=0, rows=1, numbers=(6,))
    made = decoded(StagedInput(job=write_job(), files=(staged(1, batches=[batch]),)))
    halved = define_dataset(registration_of("halved", partition_by=[]))
    for slots, expected in (
        ([], [[], [""]]),
        ([Slot(partition_path="", bucket=1, of=2)], [[], [""]]),
        ([Slot(partition_path="", bucket=0, of=2)], [[]]),
        ([Slot(partition_path="", bucket=2, of=4), Slot(partition_path="", bucket=0, of=4)], [[]]),
    ):
        files = [in_slot(slot) for slot in slots]
        world = World(dataset=replace(DATASET, definition=halved), files=files)
        assert groups(planned(world, made)) == [
            bucket_file_group(slots[0] if expected == [[]] else FREE[len(slots)])
        ]
        assert world.partitions == expected


FREE = [Slot(partition_path="", bucket=0, of=1), Slot(partition_path="", bucket=0, of=2)]


def in_slot(slot: Slot) -> DataFile:
    group = bucket_file_group(slot)
    return DataFile(
        path=group, size_bytes=1, checksum="c", row_count=1, schema_id=1, file_group=group, slot=slot
    )


def test_messages_made_under_an_earlier_schema_are_made_again() -> None:
    """They lack the columns that are new, or hold those that are gone."""
    world = World()
    before = planned(world, part())
    world.dataset = replace(DATASET, definition=EVOLVED)
    made = planned(world, after_conflict(before, *groups(before)))
    assert groups(made) == groups(before)
    assert (made.plan.version, made.messages) == (HEAD, {})


def test_messages_made_under_the_same_schema_are_kept() -> None:
    world = World()
    before = planned(world, part())
    assert groups(planned(world, after_conflict(before, *groups(before)))) == []


def test_write_that_merges_a_schema_is_planned_under_it() -> None:
    [made] = part().inputs
    after = planned(World(), decoded(replace(made, definition=EVOLVED)))
    assert after.plan.dataset.definition == EVOLVED
    assert [task.dataset for task in after.tasks] == [EVOLVED, EVOLVED]


def test_input_is_read_again_after_another_write_merged_the_same_schema() -> None:
    world = World(replace(DATASET, definition=EVOLVED))
    [made] = part().inputs
    assert isinstance(plan(world, decoded(replace(made, definition=EVOLVED))), Claimed)
    assert world.requested == []


def test_restore_is_planned_at_the_version_that_its_rows_were_compared_with() -> None:
    """A commit since then is a conflict, and the restore starts over; at the head it would be overlooked."""
    world = World()
    made = planned(world, part(Operation.SNAPSHOT, restored=RESTORED))
    assert world.requested == [(3, None)]
    assert made.plan.version == 3


def test_write_that_replaces_rows_without_naming_them_reads_all_files() -> None:
    world = World()
    made = planned(world, part(Operation.OVERWRITE, WriteOptions(overwrite=Overwrite())))
    assert world.requested == [(HEAD, None)]
    assert made.plan.scope == made.plan.read_scope is not None


def test_part_whose_version_has_expired_starts_over() -> None:
    world = World()
    before = planned(world, part())
    world.expired = True
    assert plan(world, after_conflict(before, *groups(before))) == before.decoded


def test_restore_whose_version_has_expired_is_read_again() -> None:
    made = part(Operation.SNAPSHOT, restored=RESTORED)
    assert isinstance(plan(World(expired=True), made), Claimed)


def live_file() -> DataFile:
    return DataFile(
        path="f", file_group="g", slot=SLOTS[0], size_bytes=1, checksum="c", row_count=1, schema_id=1
    )


def test_write_with_mode_ignore_is_a_no_op_in_a_table_with_rows() -> None:
    made = part(Operation.INSERT, WriteOptions(mode=SaveMode.IGNORE))
    holding = planned(World(files=[live_file()]), made)
    assert (holding.plan.noop, holding.tasks) == (True, ())
    empty = planned(World(), made)
    assert (empty.plan.noop, len(empty.tasks)) == (False, 2)


def test_write_that_must_find_an_empty_table_fails_where_there_are_rows() -> None:
    with pytest.raises(DataExists):
        plan(
            World(files=[live_file()]),
            part(Operation.INSERT, WriteOptions(mode=SaveMode.ERROR_IF_EXISTS)),
        )


@pytest.mark.parametrize(
    ("operation", "order", "by_arrival"),
    [
        (Operation.CHANGELOG, None, True),
        (Operation.CHANGELOG, ChangeOrder.ORDERING_FIELD, False),
        (Operation.UPSERT, None, False),
    ],
)
def test_intents_have_the_order_of_changes(
    operation: Operation, order: ChangeOrder | None, by_arrival: bool
) -> None:
    made = planned(World(), part(operation, WriteOptions(order=order)))
    assert {task.intents[0].by_arrival for task in made.tasks} == {by_arrival}


def test_deletes_have_the_time_of_the_plan_and_of_their_tombstones() -> None:
    ordered = replace(
        DATASET.definition,
        ordering_field="note",
        merge_mode=MergeMode.EVENT_TIME,
        deletes=Deletes(keep_seconds=9),
    )
    world = World(dataset=replace(DATASET, definition=ordered))
    for options, seconds in ((WriteOptions(), 9), (WriteOptions(tombstone=False), 0)):
        [first, second] = planned(world, part(Operation.DELETE, options)).tasks
        assert first.intents == second.intents
        assert (first.intents[0].keep_seconds, first.intents[0].committed_at) == (seconds, NOON)
    [task, _] = planned(World(), part(Operation.DELETE)).tasks
    assert (task.intents[0].keep_seconds, task.intents[0].committed_at) == (0, None)


def test_tombstones_are_no_rows_that_a_save_mode_finds() -> None:
    file = replace(data_file(), kind=FileKind.TOMBSTONE)
    options = WriteOptions(mode=SaveMode.ERROR_IF_EXISTS)
    assert not planned(World(files=[file]), part(options=options)).plan.noop
    with pytest.raises(DataExists):
        plan(World(files=[file, data_file()]), part(options=options))
