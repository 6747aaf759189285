"""Small files: which these are, and which of them a write or a compaction rewrites, so that they stay few.

Rows are rewritten by levels: the smallest files first, as long as each has at most twice as many live rows as what is
rewritten already. So the number of files grows with the logarithm of the rows, and a row is rewritten a few times until
its file is large, as in a log-structured merge tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind

_SMALL_SHARE: Final = 4
_GROWTH: Final = 2
# What a write rewrites of small files, at most. Its own rows count.
_ROWS_MAX: Final = 16_384
_BYTES_MAX: Final = 4 * 1024 * 1024


def small_below(dataset: DatasetDefinition) -> int:
    """The size in bytes from which on a file is not small."""
    return -(-dataset.target_bytes // _SMALL_SHARE)


def is_small(dataset: DatasetDefinition, file: DataFile) -> bool:
    """Whether the file is small: far below the target size, so that it should take more rows."""
    return file.size_bytes < small_below(dataset)


def small_files_to_rewrite(
    dataset: DatasetDefinition,
    files: Sequence[DataFile],
    new_rows: int,
    kind: FileKind = FileKind.BASE,
) -> list[int]:
    """The numbers of a group's files of this kind that a merge of this many new rows rewrites, whatever their keys.

    By levels, from the new rows on. Small files only, and few rows and bytes, which bounds the cost of a small write.
    Large writes are stored by themselves. Clustered files keep their order.
    """
    rows, size_bytes = new_rows, 0
    numbers = []
    small = (
        at
        for at, file in enumerate(files)
        if file.kind is kind and file.clustered_by is None and is_small(dataset, file)
    )
    for number in sorted(small, key=lambda at: (files[at].live_rows, at)):
        file = files[number]
        size_bytes += file.size_bytes
        if file.live_rows > _GROWTH * rows or rows + file.live_rows > _ROWS_MAX or size_bytes > _BYTES_MAX:
            break
        rows += file.live_rows
        numbers.append(number)
    return sorted(numbers)


def small_files_to_join(files: Sequence[DataFile], rewritten_rows: int, left_max: int) -> list[DataFile]:
    """The files of these that a compaction rewrites, which rewrites this many rows of their bucket besides.

    By levels, and more if more than `left_max` files were left.
    """
    rows = rewritten_rows
    by_rows = sorted(files, key=lambda file: (file.live_rows, file.path))
    for number, file in enumerate(by_rows):
        left = 1 + len(by_rows) - number
        if rows and file.live_rows > _GROWTH * rows and left <= left_max:
            return by_rows[:number]
        rows += file.live_rows
    return by_rows
