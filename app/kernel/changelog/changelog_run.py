"""Runs of the feed: consecutive segments, of which a scan reads the rows of each file together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.format.file_group import ChangelogFile, ChangelogSegment

SYSTEM_TIME: Final = pa.timestamp("ms", tz="UTC")
# A run ends after this number of files, so that a scan which needs only its beginning opens few of them.
RUN_FILES_MAX: Final = 64

_Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRange:
    """The changes [start, end), which are consecutive rows of a file from `first_row` on."""

    file: ChangelogFile
    first_row: int
    start: int
    end: int

    def part(self, first_row: int, end_row: int) -> FileRange:
        """Rows [first_row, end_row) of the file, which are within the range."""
        start = self.start + first_row - self.first_row
        return FileRange(file=self.file, first_row=first_row, start=start, end=start + end_row - first_row)


@dataclass(frozen=True, slots=True)
class ChangelogRun:
    """Segments in the order of their offsets, each of which begins where the one before it ends."""

    segments: Sequence[ChangelogSegment]

    @property
    def first_offset(self) -> int:
        """The offset of its first change."""
        return self.segments[0].first_offset

    @property
    def end_offset(self) -> int:
        """The offset behind its last change."""
        return self.segments[-1].end_offset

    @property
    def files(self) -> int:
        """The number of its files."""
        return len({segment.file.path for segment in self.segments})

    def ranges(self, first: int, last: int) -> Iterator[FileRange]:
        """The changes [first, last) as ranges of files; adjacent rows of a file are one range."""
        file, row, begin, stop = None, 0, 0, 0
        for segment in self.segments:
            start, end = max(first, segment.first_offset), min(last, segment.end_offset)
            if start >= end:
                continue
            first_row = segment.row_of(start)
            if file is None or file.path != segment.file.path or first_row != row + start - begin:
                if file is not None:
                    yield FileRange(file=file, first_row=row, start=begin, end=stop)
                file, row, begin = segment.file, first_row, start
            stop = end
        if file is not None:
            yield FileRange(file=file, first_row=row, start=begin, end=stop)

    def segment_at(self, offset: int) -> ChangelogSegment:
        """The segment that holds the change, or that is nearest to the offset."""
        starts = [segment.first_offset for segment in self.segments]
        return self.segments[max(int(np.searchsorted(starts, offset, side="right")) - 1, 0)]

    def origins(self, offsets: _Offsets) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Version, commit time, and first offset of the segment, for each of these changes of the run."""
        starts = np.array([segment.first_offset for segment in self.segments], dtype=np.int64)
        numbers = np.searchsorted(starts, offsets, side="right") - 1
        versions = np.array([segment.version for segment in self.segments], dtype=np.int64)
        times = pa.array([segment.committed_at for segment in self.segments], SYSTEM_TIME)
        return pa.array(versions[numbers]), times.take(pa.array(numbers)), pa.array(starts[numbers])


def runs_of(segments: Iterable[ChangelogSegment]) -> Iterator[ChangelogRun]:
    """Segments in the order of their offsets as runs, of up to RUN_FILES_MAX files each."""
    run: list[ChangelogSegment] = []
    files = 0
    for segment in segments:
        new_file = not run or run[-1].file.path != segment.file.path
        if run and (run[-1].end_offset != segment.first_offset or (new_file and files == RUN_FILES_MAX)):
            yield ChangelogRun(run)
            run, files, new_file = [], 0, True
        run.append(segment)
        files += new_file
    if run:
        yield ChangelogRun(run)
