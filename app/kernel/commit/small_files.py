"""Small files that a merge rewrites with its new rows, so that small writes do not leave ever more files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind

_GROWTH: Final = 2
_ROWS_MAX: Final = 16_384
# The share of the target size that the rewritten files have together, at most.
_SHARE: Final = 64


def small_files_to_rewrite(dataset: DatasetDefinition, files: Sequence[DataFile], new_rows: int) -> list[int]:
    """The numbers of the base files of a group that a merge of this many new rows rewrites; it marks rows in the rest.

    The smallest files first, as long as each has at most twice as many live rows as those before it and the new rows
    together. So the number of files grows with the logarithm of the rows, and a row is rewritten a few times until its
    file is large. Large writes and large files are left as they are. Clustered files keep their order.
    """
    rows, size_bytes = new_rows, 0
    bytes_max = dataset.target_bytes // _SHARE
    numbers = []
    base = (at for at, file in enumerate(files) if file.kind is FileKind.BASE and file.clustered_by is None)
    for number in sorted(base, key=lambda at: (files[at].live_rows, at)):
        file = files[number]
        size_bytes += file.size_bytes
        if file.live_rows > _GROWTH * rows or rows + file.live_rows > _ROWS_MAX or size_bytes > bytes_max:
            break
        rows += file.live_rows
        numbers.append(number)
    return sorted(numbers)
