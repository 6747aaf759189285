"""At which version a write is planned, and what of an earlier plan still pins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec
import pytest

from app.catalog.values import Dataset
from app.commit.commit_message import CommitMessage
from app.commit.restore_plan import plan_restore
from app.commit.write_options import Overwrite, WriteOptions
from app.format.definition.evolution import evolve
from app.format.definition.new_dataset import NewField
from app.format.definition.schema_change import AddField
from app.format.file_group import DataFile
from app.format.identifiers import new_id, new_instant_id
from app.format.instant import RowCounts
from app.format.operation import Operation
from app.format.rows.staging import Slot, StagedBatch, StagedFile
from app.jobs.values import Job, JobKind, JobState, Progress, WriteRequest
from app.writes.ports import RestoredVersion
from app.writes.service.group import Part, Plan
from app.writes.service.plan import PlanWrites, SchemaMoved
from tests.support.lakehouse import definition

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
HEAD: Final = 7
SLOTS: Final = [Slot(partition_path="", bucket=bucket) for bucket in range(2)]
DATASET: Final = Dataset(
    id="d",
    tenant_id="t",
    definition=definition(),
    version=HEAD,
    next_offset=0,
    created_at=NOW,
    committed_at=None,
)
EVOLVED: Final = evolve(definition(), [AddField(field=NewField(name="more", type="string"))])


@dataclass
class World:
    """A catalogue and a timeline of one dataset without files; `asked` are the versions and groups looked for."""

    dataset: Dataset = DATASET
    asked: list[tuple[int, Sequence[str] | None]] = field(default_factory=list)

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return self.dataset

    def live_files(
        self, tenant_id: str, dataset_id: str, version: int, file_groups: Sequence[str] | None
    ) -> list[DataFile]:
        self.asked.append((version, file_groups))
        return []


def part(operation: Operation = Operation.UPSERT, options: WriteOptions | None = None) -> Part:
    """One write of a row in each of two file groups."""
    job = Job(
        id=new_id(), tenant_id="t", dataset_id="d", instant_id=new_instant_id(), kind=JobKind.WRITE,
        state=JobState.RUNNING, request=WriteRequest(operation=operation, options=options or WriteOptions()),
        progress=Progress(stage="claimed"), attempts=1, epoch=1, committed_version=None, first_offset=None,
        last_offset=None, rows=RowCounts(), error=None, created_at=NOW, started_at=None, finished_at=None,
        transaction_id=None,
    )  # fmt: skip
    batches = tuple(StagedBatch(slot=slot, index=number, rows=1) for number, slot in enumerate(SLOTS))
    staged = StagedFile(path="s", size_bytes=1, checksum="c", rows=2, batches=batches)
    return Part(dataset_id="d", jobs=[job], staged={job.id: (staged,)}, quarantined={job.id: ()})


def planned(world: World, made: Part) -> list[str]:
    """The file groups that get a task."""
    tasks = PlanWrites(catalog=world, timeline=world).run("t", made, "20260102030405000000-000001-1-1")
    return [task.file_group for task in tasks]


def test_first_plan_is_made_at_the_head_for_each_file_group() -> None:
    world, made = World(), part()
    groups = planned(world, made)
    assert len(groups) == 2
    assert world.asked == [(HEAD, groups)]
    assert made.planned_at == HEAD


def test_groups_with_a_message_are_planned_no_more_and_the_others_where_these_were_read() -> None:
    world, made = World(), part()
    first, second = planned(world, made)
    made.messages[first] = CommitMessage(file_group=first)
    made.read_version = 5
    assert planned(world, made) == [second]
    assert world.asked[1:] == [(5, [second])]
    assert made.planned_at == 5


def test_messages_made_under_an_earlier_schema_are_made_again() -> None:
    """They lack the columns that are new, or hold those that are gone."""
    world, made = World(), part()
    groups = planned(world, made)
    made.messages = {group: CommitMessage(file_group=group) for group in groups}
    made.read_version = 5
    world.dataset = msgspec.structs.replace(DATASET, definition=EVOLVED)
    assert planned(world, made) == groups
    assert made.messages == {}
    assert made.planned_at == HEAD


def test_messages_made_under_the_same_schema_are_kept() -> None:
    world, made = World(), part()
    made.messages = {group: CommitMessage(file_group=group) for group in planned(world, made)}
    assert planned(world, made) == []


def test_write_that_brings_a_schema_is_planned_under_it() -> None:
    world, made = World(), part()
    made.evolved = EVOLVED
    assert planned(world, made)
    assert made.plan is not None
    assert made.plan.dataset.definition == EVOLVED


def test_schema_that_another_write_brought_first_has_the_input_read_again() -> None:
    world, made = World(msgspec.structs.replace(DATASET, definition=EVOLVED)), part()
    made.evolved = EVOLVED
    made.messages = {"a": CommitMessage(file_group="a")}
    made.plan = Plan(dataset=msgspec.structs.replace(DATASET, definition=EVOLVED), version=1)
    with pytest.raises(SchemaMoved):
        planned(world, made)
    assert (made.messages, made.plan) == ({}, None)


def test_restore_is_planned_where_its_rows_were_compared_with_the_table() -> None:
    """A commit since then is a conflict, and the restore starts over; at the head it would be overlooked."""
    world, made = World(), part(Operation.SNAPSHOT)
    made.restored = RestoredVersion(plan=plan_restore([], []), read_version=3, result={"to_version": 1})
    planned(world, made)
    assert world.asked == [(3, None)]
    assert made.planned_at == 3


def test_write_that_replaces_rows_without_naming_them_reads_all_files() -> None:
    world, made = World(), part(Operation.OVERWRITE, WriteOptions(overwrite=Overwrite()))
    planned(world, made)
    assert world.asked == [(HEAD, None)]
