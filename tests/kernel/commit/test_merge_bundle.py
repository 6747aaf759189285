"""Bundles: which merge tasks run together."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from app.kernel.commit.merge_bundle import bundled
from app.kernel.commit.write_plan import MergeTask, StagedSegment, WriteIntent, WriteScope
from app.kernel.format.dataset import DatasetDefinition, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import DataFile, Slot, bucket_file_group
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedBatch, StagedFile

MEBIBYTE = 2**20


def dataset(table_type: TableType) -> DatasetDefinition:
    schema = CreateSchema(fields=[CreateField(name="id", type="int64")])
    new = CreateDataset(
        name="t", schema=schema, record_key=["id"], table_type=table_type, bucket=CreateBucket(count=4)
    )
    return define_dataset(new)


def task(bucket: int, *, incoming: int = 1_000, live: int = 1_000, **more: Any) -> MergeTask:
    """The merge of a quarter of a staged file into a file."""
    slot = Slot(partition_path="", bucket=bucket)
    group = bucket_file_group(slot)
    file = DataFile(
        path=f"data/{bucket}",
        size_bytes=live,
        checksum="c",
        row_count=1,
        schema_id=1,
        file_group=group,
        slot=slot,
    )
    batches = tuple(StagedBatch(slot=slot, index=index, rows=5) for index in range(4))
    staged = StagedFile(path="s", size_bytes=4 * incoming, checksum="c", rows=20, batches=batches)
    parts: dict[str, Any] = {
        "dataset": dataset(TableType.COPY_ON_WRITE),
        "attempt": "a",
        "data_prefix": "t/d",
    }
    return MergeTask(
        slot=slot,
        file_group=group,
        files=(file,),
        segments=(StagedSegment(job=0, file=staged, batch_indices=(bucket,)),),
        intents={0: WriteIntent(operation=Operation.UPSERT)},
        **parts | more,
    )


def sizes(*tasks: MergeTask) -> list[int]:
    bundles = bundled(tasks)
    assert [each for bundle in bundles for each in bundle.tasks] == list(tasks), "in their order"
    return [len(bundle.tasks) for bundle in bundles]


def test_small_tasks_of_a_commit_run_together() -> None:
    assert sizes(*(task(bucket) for bucket in range(4))) == [4]
    assert sizes() == []


@pytest.mark.parametrize(
    ("tasks", "parts"), [(4, [4]), (5, [2, 3]), (8, [4, 4]), (9, [3, 3, 3]), (50, [12, 13, 12, 13])]
)
def test_many_small_tasks_of_a_commit_run_in_a_few_bundles(tasks: int, parts: list[int]) -> None:
    assert sizes(*(task(number % 4) for number in range(tasks))) == parts


def test_tasks_of_several_commits_never_share_a_bundle() -> None:
    others = {"data_prefix": "t/e"}, {"attempt": "b"}
    for other in others:
        assert sizes(task(0), task(1), task(0, **other), task(1, **other)) == [2, 2]


@pytest.mark.parametrize(
    ("large", "together"),
    [
        ({"incoming": 2 * MEBIBYTE}, False),
        ({"live": 2 * MEBIBYTE}, False),
        ({"live": 2 * MEBIBYTE, "dataset": dataset(TableType.MERGE_ON_READ)}, True),
        ({"scope": WriteScope()}, False),
        ({"compact": True}, False),
    ],
    ids=["many incoming rows", "many rows to rewrite", "rows are looked up", "a scope", "a table service"],
)
def test_tasks_with_much_to_read_run_one_by_one(large: dict[str, Any], together: bool) -> None:
    assert sizes(*(task(bucket, **large) for bucket in range(3))) == ([3] if together else [1, 1, 1])


def test_files_that_are_searched_for_keys_count_by_their_number() -> None:
    found = task(0, dataset=dataset(TableType.MERGE_ON_READ))
    assert sizes(found, replace(found, files=found.files * 300)) == [1, 1]
