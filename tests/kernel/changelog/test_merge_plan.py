"""Which changelog files are merged: all that are small, each a few times, whatever was written in between."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.changelog.merge_plan import SmallFile, run_to_merge, settled_before
from app.kernel.format.file_group import StoredFile
from app.kernel.format.policies import ChangelogPolicy

KIBIBYTE = 1024
SMALL = 8 * KIBIBYTE * KIBIBYTE


def file(first: int, rows: int, size: int, schema: int = 1, segments: int = 1) -> SmallFile:
    stored = StoredFile(path=f"{first}", size_bytes=size, checksum="", row_count=rows, schema_id=schema)
    return SmallFile(
        file=stored, first_offset=first, segments=segments, committed_at=datetime(2026, 1, 1, tzinfo=UTC)
    )


def feed(sizes: Sequence[tuple[int, int]]) -> list[SmallFile]:
    """Files of these sizes and schemas, one after another."""
    return [file(10 * number, 10, size, schema) for number, (size, schema) in enumerate(sizes)]


def merged(files: Sequence[SmallFile], run: Sequence[SmallFile]) -> list[SmallFile]:
    at = list(files).index(run[0])
    one = file(
        run[0].first_offset,
        sum(each.file.row_count for each in run),
        sum(each.file.size_bytes for each in run),
        run[0].file.schema_id,
        sum(each.segments for each in run),
    )
    return [*files[:at], one, *files[at + len(run) :]]


def is_small(each: SmallFile) -> bool:
    return each.weight < SMALL


SIZES = st.sampled_from([1, 5 * KIBIBYTE, 300 * KIBIBYTE, 7 * KIBIBYTE * KIBIBYTE, SMALL])
HISTORIES = st.lists(st.tuples(SIZES, st.integers(1, 60), st.integers(1, 2)), min_size=1, max_size=6).map(
    lambda parts: feed([(size, schema) for size, times, schema in parts for _ in range(times)])
)


@given(HISTORIES, st.sampled_from([2, 3, 8, 32]), st.booleans())
def test_merges_end_and_leave_few_small_files(files: list[SmallFile], least: int, all_listed: bool) -> None:
    """Of the files that are listed, which are all, or those that are small."""
    row_ranges = 1 + sum(
        not is_small(each) or (number > 0 and files[number - 1].file.schema_id != each.file.schema_id)
        for number, each in enumerate(files)
    )
    rows = sum(each.file.row_count for each in files)
    while True:
        listed = files if all_listed else [each for each in files if is_small(each)]
        run = run_to_merge(listed, least)
        if not run:
            break
        assert len(run) >= 2
        assert all(is_small(each) for each in run)
        assert len({each.file.schema_id for each in run}) == 1
        assert [each.first_offset for each in run[1:]] == [each.end_offset for each in run[:-1]]
        assert sum(each.weight for each in run) <= 2 * SMALL
        files = merged(files, run)
    assert sum(each.file.row_count for each in files) == rows
    # In each class fewer than the least number in a row, and a limited run may end between two files of a class.
    assert sum(is_small(each) for each in files) <= row_ranges * 2 * least * least


@given(HISTORIES, st.integers(0, 60), st.sampled_from([2, 8, 32]))
def test_what_is_settled_is_never_merged(files: list[SmallFile], more: int, least: int) -> None:
    """Later files change nothing before the position that is kept."""
    while run := run_to_merge(files, least):
        files = merged(files, run)
    settled = settled_before(files)
    end = files[-1].end_offset
    grown = [*files, *(file(end + 10 * number, 10, 1) for number in range(more))]
    whole = run_to_merge(grown, least)
    rest = run_to_merge([each for each in grown if each.first_offset >= settled], least)
    assert list(whole) == list(rest)


@pytest.mark.parametrize(("count", "runs"), [(31, 0), (32, 32), (2_000, 1_024)])
def test_run_has_the_least_number_of_files_and_an_upper_limit(count: int, runs: int) -> None:
    assert len(run_to_merge(feed([(KIBIBYTE, 1)] * count), 32)) == runs


@pytest.mark.parametrize("kibibytes", [5, 12])
def test_small_writes_are_rewritten_a_few_times_and_leave_few_files(kibibytes: int) -> None:
    """Of 20,000 files that arrive one by one, each byte is written three times on average at most."""
    least = ChangelogPolicy().small_files
    files: list[SmallFile] = []
    written = 0
    for number in range(20_000):
        files.append(file(10 * number, 10, kibibytes * KIBIBYTE))
        while run := run_to_merge(files[-200:], least):
            written += sum(each.file.size_bytes for each in run)
            files = merged(files, run)
        if number >= 999:
            assert len(files) <= 0.05 * (number + 1)
    assert written <= 3 * 20_000 * kibibytes * KIBIBYTE
    # Beside files that are not small any more, two classes of small ones.
    assert sum(is_small(each) for each in files) < 2 * least


def test_files_of_many_segments_count_as_large() -> None:
    """Each segment has a row in the catalogue, which a merge changes."""
    assert run_to_merge([file(0, 9_000, 1, segments=9_000), file(9_000, 9_000, 1, segments=9_000)], 2) == ()
