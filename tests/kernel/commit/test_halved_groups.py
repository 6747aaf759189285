"""The file groups of a write where buckets are halved: none is larger than its bound, and no other is touched."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from app.kernel.commit.halved_groups import HalvedGroup, StagedBucket, halved_groups
from app.kernel.format.dataset import FIRST_HALVED_BYTES, HALVED_BYTES, HALVED_MAX, DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import DataFile, FileKind, Slot, bucket_file_group


def defined(target_rows: int | None) -> DatasetDefinition:
    schema = CreateSchema(fields=[CreateField(name="id", type="int64")])
    bucket = CreateBucket(target_rows=target_rows)
    return define_dataset(CreateDataset(name="t", record_key=["id"], schema=schema, bucket=bucket))


DATASET = defined(100)


def bucket(number: int, of: int, path: str = "") -> Slot:
    return Slot(partition_path=path, bucket=number, of=of)


ROOT = bucket(0, 1)


def stored(slot: Slot, rows: int, size_bytes: int = 1) -> DataFile:
    group = bucket_file_group(slot)
    return DataFile(
        path=f"{group}/{rows}", size_bytes=size_bytes, checksum="c", row_count=rows, schema_id=1, file_group=group,
        slot=slot,
    )  # fmt: skip


def planned(
    staged: Mapping[Slot, StagedBucket],
    *files: DataFile,
    beside: tuple[Slot, ...] = (),
    reached: tuple[Slot, ...] = (),
    dataset: DatasetDefinition = DATASET,
) -> dict[Slot, HalvedGroup]:
    groups = halved_groups(
        dataset,
        staged,
        {file.file_group: [file] for file in files},
        [*beside, *(file.slot for file in files)],
        [bucket_file_group(slot) for slot in reached],
    )
    return {group.slot: group for group in groups}


def rows(count: int) -> StagedBucket:
    return StagedBucket(rows=count)


@pytest.mark.parametrize(
    ("count", "buckets"),
    [(1, 1), (100, 1), (101, 2), (200, 2), (201, 4), (800, 8), (10**9, HALVED_MAX)],
)
def test_first_write_makes_as_many_buckets_as_its_rows_fill(count: int, buckets: int) -> None:
    found = planned({ROOT: rows(count)})
    assert set(found) == {bucket(number, buckets) for number in range(buckets)}
    assert all(not group.files and group.staged_slots == [ROOT] for group in found.values())


@pytest.mark.parametrize(
    ("count", "buckets"),
    [(300_000, 1), (300_001, 2), (600_001, 4), (8_000_000, 4), (8_000_001, 8), (33_000_000, 32)],
)
def test_first_four_buckets_come_early_and_later_ones_are_large(count: int, buckets: int) -> None:
    assert len(planned({ROOT: rows(count)}, dataset=defined(None))) == buckets


def test_full_bucket_is_halved_and_no_other_is_touched() -> None:
    full, half = stored(bucket(0, 2), 90), stored(bucket(1, 2), 90)
    found = planned({bucket(0, 2): rows(20)}, full, half)
    assert set(found) == {bucket(0, 4), bucket(2, 4)}
    assert all(list(group.files) == [full] for group in found.values())
    assert set(planned({bucket(0, 2): rows(10)}, full, half)) == {bucket(0, 2)}


def test_every_part_of_a_halved_bucket_has_a_task_also_without_rows_of_the_write() -> None:
    known = StagedBucket(rows=20, numbers=frozenset({0, 2}))
    found = planned({ROOT: known}, stored(ROOT, 90))
    assert set(found) == {bucket(0, 2), bucket(1, 2)}
    assert [list(found[slot].staged_slots) for slot in (bucket(0, 2), bucket(1, 2))] == [[ROOT], []]


def test_bytes_halve_a_bucket_like_rows() -> None:
    assert set(planned({ROOT: rows(1)}, stored(ROOT, 1, FIRST_HALVED_BYTES))) == {ROOT}
    assert len(planned({ROOT: rows(1)}, stored(ROOT, 1, FIRST_HALVED_BYTES + 1))) == 2
    assert len(planned({ROOT: StagedBucket(size_bytes=3 * FIRST_HALVED_BYTES)})) == 4
    assert len(planned({ROOT: StagedBucket(size_bytes=4 * HALVED_BYTES)})) == 4
    assert len(planned({ROOT: StagedBucket(size_bytes=4 * HALVED_BYTES + 4)})) == 8


def test_rows_go_to_the_buckets_of_their_numbers() -> None:
    files = [stored(bucket(number, 4), 1) for number in range(4)]
    known = StagedBucket(rows=2, numbers=frozenset({5, 9, 1}))
    assert set(planned({ROOT: known}, *files)) == {bucket(1, 4)}
    assert set(planned({ROOT: rows(2)}, *files)) == {bucket(number, 4) for number in range(4)}
    assert set(planned({bucket(5, 16): rows(2)}, *files)) == {bucket(1, 4)}


def test_rows_of_a_bucket_without_files_go_to_the_largest_one_beside_the_others() -> None:
    files = [stored(bucket(0, 2), 1), stored(bucket(1, 4), 1)]
    assert set(planned({bucket(7, 16): rows(2)}, *files)) == {bucket(3, 4)}
    assert set(planned({bucket(7, 16): rows(2)})) == {ROOT}


def test_buckets_that_are_not_in_the_plan_stay_as_they_are() -> None:
    found = planned({ROOT: rows(1_000)}, stored(bucket(1, 2), 1), beside=(bucket(0, 2),))
    assert bucket(0, 2) in found
    assert set(found) - {bucket(0, 2)} == {bucket(1 + 2 * number, 16) for number in range(8)}


def test_partitions_and_scopes_are_apart() -> None:
    there = [stored(bucket(0, 1, "p=a"), 1), stored(bucket(0, 1, "p=b"), 1), stored(bucket(0, 1, "p=c"), 1)]
    found = planned({bucket(0, 1, "p=a"): rows(1)}, *there, reached=(bucket(0, 1, "p=b"),))
    assert set(found) == {bucket(0, 1, "p=a"), bucket(0, 1, "p=b")}
    assert found[bucket(0, 1, "p=b")].staged_slots == []


def test_smallest_buckets_are_not_halved() -> None:
    slot = bucket(3, HALVED_MAX)
    assert set(planned({slot: rows(10**6)}, stored(slot, 10**6))) == {slot}


def test_tombstones_are_not_counted_but_divided() -> None:
    """They are no rows of a bucket; its parts take them as they take rows."""
    tombstones = msgspec.structs.replace(stored(ROOT, 1_000, HALVED_BYTES * 2), kind=FileKind.TOMBSTONE)
    base = msgspec.structs.replace(stored(ROOT, 60), path="base")
    for count, parts in ((1, 1), (100, 2)):
        groups = list(
            halved_groups(
                DATASET, {ROOT: rows(count)}, {bucket_file_group(ROOT): [tombstones, base]}, [ROOT], []
            )
        )
        assert len(groups) == parts
        assert all(tombstones in group.files for group in groups)
