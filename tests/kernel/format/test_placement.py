"""The buckets of keys that have been deleted, where file groups have several buckets."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import DataFile, FileKind, Slot
from app.kernel.format.rows.placement import Placement
from tests.support.lakehouse import data_file

GROUP = Slot(partition_path="", bucket=0)
MODES = [BucketMode.DYNAMIC, BucketMode.KEY_DYNAMIC, BucketMode.POSTPONE]


def dataset(mode: BucketMode, **settings: Any) -> DatasetDefinition:
    fields = [CreateField(name="id", type="int64"), CreateField(name="day", type="int64", nullable=False)]
    bucket = CreateBucket(mode=mode, count=1, target_rows=2)
    new = CreateDataset(
        name="t", schema=CreateSchema(fields=fields), record_key=["id"], bucket=bucket, **settings
    )
    return define_dataset(new)


def file(kind: FileKind, bucket: int, rows: int, path: str = "") -> DataFile:
    return msgspec.structs.replace(
        data_file(), kind=kind, slot=Slot(partition_path=path, bucket=bucket), row_count=rows
    )


def buckets(placement: Placement, ids: list[int], former: list[int], day: int = 1) -> dict[int, Slot]:
    rows = pa.table({"id": ids, "day": [day] * len(ids)})
    parts = placement.split(rows, np.array(former, dtype=np.int64))
    return {number: slot for slot, part in parts for number in part.column("id").to_pylist()}


@pytest.mark.parametrize("mode", MODES)
def test_row_with_a_tombstone_goes_to_the_bucket_of_its_key(mode: BucketMode) -> None:
    files = [file(FileKind.BASE, 0, 1), file(FileKind.BASE, 1, 1), file(FileKind.TOMBSTONE, 1, 1)]
    placed = buckets(Placement(dataset(mode), GROUP, files), [1, 2], [2, -1])
    assert {number: slot.bucket for number, slot in placed.items()} == {1: 1, 2: 0}


@pytest.mark.parametrize("mode", MODES)
def test_tombstone_keeps_the_room_of_its_row(mode: BucketMode) -> None:
    files = [file(FileKind.TOMBSTONE, 0, 2)]
    placed = buckets(Placement(dataset(mode), GROUP, files), [1, 2, 3], [-1, 0, 0])
    assert {number: slot.bucket for number, slot in placed.items()} == {1: 1, 2: 0, 3: 0}


@pytest.mark.parametrize("mode", MODES)
def test_tombstones_go_to_the_buckets_of_their_keys(mode: BucketMode) -> None:
    """That of a key without a row gets a bucket like a new row."""
    files = [file(FileKind.BASE, 0, 2), file(FileKind.BASE, 1, 2), file(FileKind.TOMBSTONE, 0, 0)]
    placement = Placement(dataset(mode), GROUP, files)
    tombstones = pa.table({"id": [1, 2, 3]})
    parts = placement.split_tombstones(tombstones, np.array([1, 2, -1]))
    assert {slot.bucket: part.column("id").to_pylist() for slot, part in parts} == {1: [1], 0: [2], 2: [3]}


def test_tombstones_of_keys_that_move_between_partitions_have_no_partition() -> None:
    moving = dataset(BucketMode.KEY_DYNAMIC, partition_by=["day"])
    files = [file(FileKind.BASE, 0, 2, "day=1"), file(FileKind.TOMBSTONE, 0, 1)]
    placement = Placement(moving, GROUP, files)
    [(slot, _)] = placement.split_tombstones(pa.table({"id": [1, 2]}), np.array([0, -1]))
    assert slot == GROUP
    # A row that lives again may have any partition, so it gets a bucket there like a new row.
    assert buckets(placement, [3], [1], day=1) == {3: Slot(partition_path="day=1", bucket=1)}
    assert buckets(placement, [4], [1], day=2) == {4: Slot(partition_path="day=2", bucket=0)}
