"""Buckets that are halved: which keys they have, and how they cover a partition."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from app.kernel.format.dataset import HALVED_MAX, BucketFunction
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import Slot, bucket_file_group, bucket_slot, halved_slot
from app.kernel.format.halving import (
    cover,
    halves,
    in_share,
    inside,
    key_numbers,
    largest,
    overlap,
    overlaps_within,
    parts_of,
)

SCHEMA = CreateSchema(fields=[CreateField(name="id", type="int64")])
ROWS = pa.table({"id": range(3_000)})


def bucket(number: int, of: int, path: str = "") -> Slot:
    return Slot(partition_path=path, bucket=number, of=of)


def some_cover(dice: random.Random) -> list[Slot]:
    """Disjoint buckets with all keys, of random sizes."""
    found = [bucket(0, 1)]
    for _ in range(dice.randrange(20)):
        at = dice.randrange(len(found))
        if found[at].of < HALVED_MAX:
            found += halves(found.pop(at))
    return found


@pytest.mark.parametrize("path", ["", "day=a", "day=bucket-00001-of-2/x=1"])
def test_name_of_a_halved_bucket_encodes_its_slot(path: str) -> None:
    slot, fixed = bucket(5, 8, path), Slot(partition_path=path, bucket=5)
    assert bucket_slot(bucket_file_group(slot)) == halved_slot(bucket_file_group(slot)) == slot
    assert bucket_file_group(slot) != bucket_file_group(fixed)
    assert halved_slot(bucket_file_group(fixed)) is None


@pytest.mark.parametrize("function", BucketFunction)
def test_every_key_is_in_one_bucket_of_a_cover(function: BucketFunction) -> None:
    dataset = define_dataset(
        CreateDataset(name="t", record_key=["id"], schema=SCHEMA, bucket=CreateBucket(function=function))
    )
    for seed in range(20):
        masks = [inside(ROWS, dataset, slot) for slot in some_cover(random.Random(seed))]
        assert sum(mask.astype(int) for mask in masks).tolist() == [1] * ROWS.num_rows
    numbers = key_numbers(ROWS, dataset)
    assert numbers is not None
    assert numbers == tuple(sorted(set(numbers)))
    assert max(numbers) < HALVED_MAX


def test_parts_have_the_keys_of_the_whole() -> None:
    dataset = define_dataset(CreateDataset(name="t", record_key=["id"], schema=SCHEMA))
    whole = bucket(3, 4)
    expected = inside(ROWS, dataset, whole)
    for count in (1, 2, 8):
        parts = parts_of(whole, count)
        assert sum(inside(ROWS, dataset, part).astype(int) for part in parts).tolist() == expected.tolist()
    assert tuple(parts_of(whole, 2)) == halves(whole)


def test_cover_keeps_what_is_taken_and_adds_the_largest_buckets() -> None:
    assert cover("p", []) == [bucket(0, 1, "p")]
    for seed in range(50):
        dice = random.Random(seed)
        everything = some_cover(dice)
        taken = dice.sample(everything, dice.randrange(len(everything) + 1))
        found = cover("", taken)
        assert set(taken) <= set(found)
        assert sum(HALVED_MAX // (slot.of or 1) for slot in found) == HALVED_MAX
        assert not overlaps_within(found)
        for slot in set(found) - set(taken):
            # A larger bucket would have keys of a taken one.
            larger = bucket(slot.bucket % (slot.of // 2), slot.of // 2) if slot.of > 1 else None
            assert larger is None or any(overlap(larger, other) for other in taken)


def test_buckets_overlap_if_one_is_part_of_the_other() -> None:
    assert overlap(bucket(1, 2), bucket(3, 4))
    assert not overlap(bucket(0, 2), bucket(3, 4))
    assert not overlap(bucket(1, 2, "a"), bucket(1, 2, "b"))
    assert overlaps_within([bucket(1, 4), bucket(0, 2), bucket(5, 8)])
    assert not overlaps_within([bucket(1, 4), bucket(1, 4), bucket(0, 2)])
    fixed = [Slot(partition_path="", bucket=number) for number in (0, 1)]
    assert overlap(fixed[0], fixed[0])
    assert not overlap(*fixed)
    assert not overlaps_within(fixed)


def test_largest_bucket_with_all_keys_of_a_bucket_is_found() -> None:
    names = {
        slot: bucket_file_group(slot) for slot in (bucket(1, 2), bucket(3, 4), bucket(7, 8), bucket(2, 4))
    }
    found = largest(["append-x", "bucket-00007", *names.values()])
    assert found == {
        "append-x": "append-x",
        "bucket-00007": "bucket-00007",
        names[bucket(1, 2)]: names[bucket(1, 2)],
        names[bucket(3, 4)]: names[bucket(1, 2)],
        names[bucket(7, 8)]: names[bucket(1, 2)],
        names[bucket(2, 4)]: names[bucket(2, 4)],
    }


@pytest.mark.parametrize("shares", [1, 2, 3, 6, 16])
def test_bucket_is_in_the_shares_of_its_keys(shares: int) -> None:
    for of in (1, 2, 8, 64):
        for number in range(of):
            expected = {value % shares for value in range(number, HALVED_MAX, of)}
            found = {share for share in range(shares) if in_share(bucket(number, of), share, shares)}
            assert found == expected
