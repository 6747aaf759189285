"""Files of a table cut into blocks by the commits that wrote them, so that a further commit changes few blocks.

The commits from 0 on are halved until a half has few files. So the bounds of a block depend on the files in it alone:
it is cut when it has grown, and joined with its neighbour when both have shrunk. The block of the latest commit, which
changes with the next one, is smaller. A commit with many files is cut into parts by the hashes of their paths.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

# Of the files of another block, how many that of the latest commit has.
_LATEST_SHARE: Final = 8


class Cut(NamedTuple):
    """The commits [first, end), and how many parts their files are cut into, a power of two."""

    first: int
    end: int
    parts: int


def cut_files(counts: Sequence[tuple[int, int]], files_max: int, step: int = 1) -> Iterator[Cut]:
    """The cuts that have files, ascending. `counts`: the number of files by commit, ascending; with a `step`, a power
    of two, of as many commits from a multiple of it on, unless they have more than `files_max`.
    """
    versions = [version for version, _ in counts]
    sums = [0, *accumulate(count for _, count in counts)]
    latest = versions[-1] if versions else 0

    def cut(first: int, end: int) -> Iterator[Cut]:
        count = sums[bisect_left(versions, end)] - sums[bisect_left(versions, first)]
        most = files_max // _LATEST_SHARE if end - first > step and first <= latest < end else files_max
        if count == 0:
            return
        if count <= most or end - first == 1:
            yield Cut(first, end, 1 << (-(-count // files_max) - 1).bit_length())
            return
        middle = (first + end) // 2
        yield from cut(first, middle)
        yield from cut(middle, end)

    yield from cut(0, 1 << (latest | (step - 1)).bit_length())
