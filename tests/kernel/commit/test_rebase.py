"""Rebasing a rewrite: rows that were deleted meanwhile are found in what was written, as if it were done again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.commit.rebase import Rewritten, rebased
from app.kernel.format.file_group import DataFile, Slot
from app.kernel.format.index.deletion_vector import positions_set


def file_of(name: str, rows: int, bucket: int) -> DataFile:
    return DataFile(
        path=name,
        size_bytes=1,
        checksum="",
        row_count=rows,
        schema_id=1,
        file_group="g",
        slot=Slot(partition_path="", bucket=bucket),
    )


@st.composite
def _files(draw: st.DrawFn) -> list[tuple[int, int, frozenset[int], frozenset[int]]]:
    """Files as bucket, rows, those gone before, and those gone by now."""
    found = []
    for _ in range(draw(st.integers(0, 6))):
        rows = draw(st.integers(1, 12))
        before = draw(st.frozensets(st.integers(0, rows - 1), max_size=rows))
        now = before | draw(st.frozensets(st.integers(0, rows - 1), max_size=rows))
        found.append((draw(st.integers(0, 2)), rows, before, now))
    return found


@given(files=_files(), target=st.integers(1, 9))
def test_deleted_rows_are_located_in_the_rewritten_files(
    files: list[tuple[int, int, frozenset[int], frozenset[int]]], target: int
) -> None:
    rewritten, written, contents = [], [], {}
    for number, (bucket, rows, before, now) in enumerate(files):
        rewritten.append(
            Rewritten(
                file=file_of(f"old-{number}", rows, bucket),
                before=positions_set(np.array(sorted(before))) if before else None,
                now=positions_set(np.array(sorted(now))) if now else None,
            )
        )
    # Written bucket by bucket in order, and a file is ended when it has as many rows as it takes.
    for bucket in range(3):
        lived = [
            (number, row)
            for number, (home, rows, before, _) in enumerate(files)
            if home == bucket
            for row in range(rows)
            if row not in before
        ]
        for start in range(0, len(lived), target):
            name = f"new-{bucket}-{start}"
            contents[name] = lived[start : start + target]
            written.append(file_of(name, len(contents[name]), bucket))
    gone = rebased(rewritten, written)
    left = {
        identity
        for name, rows in contents.items()
        for at, identity in enumerate(rows)
        if at not in set(gone.get(name, np.array([])).tolist())
    }
    assert left == {
        (number, row)
        for number, (_, rows, _, now) in enumerate(files)
        for row in range(rows)
        if row not in now
    }
    assert all(len(positions) for positions in gone.values())


def test_rewrite_with_another_row_count_is_refused() -> None:
    one = Rewritten(file=file_of("old", 3, 0), before=None, now=None)
    with pytest.raises(ValueError, match="had 3 live rows"):
        rebased([one], [file_of("new", 2, 0)])
