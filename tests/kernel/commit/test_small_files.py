"""The small files that a merge rewrites."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from app.kernel.commit import small_files
from app.kernel.commit.small_files import small_files_to_join, small_files_to_rewrite
from app.kernel.format.file_group import DataFile, FileKind, Slot
from tests.support.lakehouse import definition

DATASET = definition()


def stored(live_rows: int, size_bytes: int = 1_000, *, kind: FileKind = FileKind.BASE) -> DataFile:
    return DataFile(
        path=f"{live_rows}/{size_bytes}", size_bytes=size_bytes, checksum="c", row_count=live_rows, schema_id=1,
        file_group="bucket-00000", slot=Slot(partition_path="", bucket=0), kind=kind,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("live_rows", "new_rows", "numbers"),
    [
        ([], 10, []),
        ([20], 10, [0]),
        ([21], 10, []),
        # 10 new rows, then 30, then 90.
        ([180, 20, 60], 10, [0, 1, 2]),
        ([181, 20, 60], 10, [1, 2]),
        # A larger file ends it, although the next would fit its sum.
        ([1_000_000, 1], 1, [1]),
        ([0], 0, [0]),
        # Many rows are written by themselves.
        ([10], 1_000_000, []),
    ],
)
def test_files_are_rewritten_from_the_smallest_on(
    live_rows: list[int], new_rows: int, numbers: list[int]
) -> None:
    assert small_files_to_rewrite(DATASET, [stored(rows) for rows in live_rows], new_rows) == numbers


def test_only_base_files_of_few_bytes_in_no_order_are_rewritten() -> None:
    large = 4 * 1024 * 1024
    assert small_files_to_rewrite(DATASET, [stored(1, large)], 10) == [0]
    assert small_files_to_rewrite(DATASET, [stored(1, large + 1)], 10) == []
    assert small_files_to_rewrite(DATASET, [stored(1, large), stored(2, 1)], 10) == [0]
    assert small_files_to_rewrite(DATASET, [stored(1, kind=FileKind.LOG)], 10) == []
    assert small_files_to_rewrite(DATASET, [replace(stored(1), clustered_by="a")], 10) == []


@pytest.mark.parametrize("target_bytes", [64 * 1024, 1024 * 1024])
def test_small_files_have_less_than_a_quarter_of_any_target_size(target_bytes: int) -> None:
    dataset = replace(DATASET, target_bytes=target_bytes)
    bound = target_bytes // 4
    files = [stored(1, bound), stored(1, bound - 1)]
    assert small_files_to_rewrite(dataset, files, 10) == [1]


@pytest.mark.parametrize(
    ("live_rows", "rewritten_rows", "left_max", "joined"),
    [
        ([], 0, 16, []),
        ([10] * 31, 0, 16, [10] * 31),
        # 310 rows are not worth the rewrite of 621.
        ([10] * 31 + [620], 0, 16, [10] * 31 + [620]),
        ([621] + [10] * 31, 0, 16, [10] * 31),
        # Rows that are rewritten anyway take others along.
        ([100, 5_000], 50, 16, [100]),
        ([100, 5_000], 3_000, 16, [100, 5_000]),
        ([100, 5_000], 10, 16, []),
        # Whatever their rows, few are left.
        ([1, 10, 100, 1_000], 0, 2, [1, 10, 100]),
        ([1, 10, 100, 1_000], 0, 1, [1, 10, 100, 1_000]),
    ],
)
def test_compactions_by_policy_join_files_of_about_one_size(
    live_rows: list[int], rewritten_rows: int, left_max: int, joined: list[int]
) -> None:
    files = [stored(rows, number) for number, rows in enumerate(live_rows)]
    found = small_files_to_join(files, rewritten_rows, left_max)
    assert sorted(file.live_rows for file in found) == sorted(joined)


@pytest.mark.parametrize("new_rows", [1, 100, 1_000])
def test_small_writes_leave_few_files_and_rewrite_rows_a_few_times(new_rows: int) -> None:
    files: list[DataFile] = []
    chance = random.Random(1)
    rewritten = written = most = 0
    for _ in range(2_000):
        count = chance.randint(1, 2 * new_rows)
        numbers = small_files_to_rewrite(DATASET, files, count)
        rows = sum(files[number].live_rows for number in numbers)
        files = [file for number, file in enumerate(files) if number not in numbers]
        files.append(stored(rows + count))
        written += count
        rewritten += rows
        whole = sum(file.live_rows < small_files._ROWS_MAX // 3 for file in files)
        most = max(most, whole)
    assert most <= 12
    assert rewritten <= 20 * written
