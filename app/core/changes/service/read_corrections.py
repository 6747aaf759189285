"""Which changes of a feed later changes have corrected or retracted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from app.core.catalog.values import Dataset
from app.core.changes.positions import StartingPosition, resolve_position
from app.core.changes.repository import ChangelogStore
from app.core.timeline.errors import OffsetExpired
from app.infra.files.errors import CorruptFile
from app.kernel.changelog.changelog_scan import ChangelogReader
from app.kernel.changelog.corrections import CORRECTION_SOURCES, corrections_in, resolved_corrects
from app.kernel.changelog.corrections_since import CorrectionsSince
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import ChangelogSegment
from app.kernel.format.rows.changelog import Op

# The most files that one query of the catalogue returns, and the most rows that one request scans: 9 bytes each.
_FILES_MAX: Final = 64
SCANNED_ROWS_MAX: Final = 8 * 1024 * 1024
# The most files and rows that are read to find whether a change was corrected at all.
CHECKED_FILES_MAX: Final = 8
CHECKED_ROWS_MAX: Final = 1024 * 1024
_POSITION_MAX: Final = 2**63 - 1
_Correction = TypeVar("_Correction")


class CorrectedChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change at `offset` was taken back by the change at `by` in `version`: a -C, whose +C follows, or a -R."""

    offset: int
    by: int
    op: Op
    version: int
    system_time: datetime


class CorrectionPage(msgspec.Struct, Generic[_Correction], frozen=True, kw_only=True):
    """Corrections in the order of the feed, found before position `next_since`; see ChangePage."""

    corrections: list[_Correction]
    """The corrections."""
    next_since: int
    """The next call's `since`."""
    pending: int
    """How many changes follow the page, each of which may be a correction."""
    earliest: Annotated[int, msgspec.Meta(examples=[0])]
    """The first offset that can still be read."""


class CorrectionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """At most `limit` corrections before position `until`, of the changes `first` to `last`; None for all up to now."""

    limit: int
    until: int | None = None
    first: int = 0
    last: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadCorrections:
    """Finds the changes that take earlier ones back. Reads two columns of the files whose bounds allow such changes."""

    index: ChangelogStore
    reader: ChangelogReader

    def page(
        self, dataset: Dataset, since: int | StartingPosition, query: CorrectionQuery
    ) -> CorrectionPage[CorrectedChange]:
        """The corrections that the feed has from position `since` on.

        A page ends after SCANNED_ROWS_MAX scanned changes, whatever it has found. Raises InvalidRequest, OffsetAhead,
        OffsetExpired, CorruptFile.
        """
        check_records_corrections(dataset)
        if query.last is not None and query.last < query.first:
            detail = f"expected at least `first_offset`, {query.first}"
            raise InvalidRequest(
                f"last_offset: {detail}", [FieldError(pointer="/last_offset", detail=detail)]
            )
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        start = resolve_position(since, bounds)
        end = max(start, bounds.next_offset if query.until is None else min(query.until, bounds.next_offset))
        last = bounds.next_offset - 1 if query.last is None else min(query.last, bounds.next_offset - 1)
        span = range(query.first, last + 1)
        corrections, stopped_at = self._find(dataset, span, range(start, end), span, query.limit)
        # Checked after the scan, since a cut during the scan may have removed files.
        earliest = self._check_kept(dataset, start)
        next_since = end if stopped_at is None else stopped_at
        return CorrectionPage(
            corrections=corrections,
            next_since=next_since,
            pending=bounds.next_offset - next_since,
            earliest=earliest,
        )

    def of_rows(self, dataset: Dataset, offsets: Sequence[int], since: int) -> dict[int, CorrectedChange]:
        """The corrections of the changes at these offsets, by offset; changes that were not corrected are left out.

        `since`: the end of the feed at the version of the rows; no change before it corrects one of them. Raises
        InvalidRequest if the feed does not record corrections, or too many changes would have to be scanned,
        OffsetExpired if the feed no longer goes back to `since`.
        """
        check_records_corrections(dataset)
        if not offsets:
            return {}
        span = range(min(offsets), max(offsets) + 1)
        corrections, stopped_at = self._find(
            dataset, span, range(since, _POSITION_MAX), offsets, len(offsets) + 1
        )
        self._check_kept(dataset, since)
        if stopped_at is not None:
            detail = (
                f"more than {SCANNED_ROWS_MAX} changes were committed since; request fewer rows at a time"
            )
            raise InvalidRequest("corrected_since: " + detail, [FieldError(pointer="/limit", detail=detail)])
        return {each.offset: each for each in corrections}

    def any_of(self, dataset: Dataset, offsets: range | npt.NDArray[np.int64], since: int) -> bool | None:
        """Whether a change from position `since` on corrects one of the changes at these offsets, which are before it.

        None if that is not known: the feed does not record corrections, or
        is not kept from `since` on, or more than `CHECKED_FILES_MAX` files or `CHECKED_ROWS_MAX` changes would have to
        be read.
        """
        if dataset.definition.changelog.producer is not ChangelogProducer.FULL:
            return None
        if not len(offsets):
            return False
        try:
            found = self._finds_any(dataset, offsets, since)
            self._check_kept(dataset, since)
        except (CorruptFile, OffsetExpired):
            # The feed was cut, or has a damaged file. The rows are read without it.
            return None
        return found

    def _finds_any(self, dataset: Dataset, offsets: range | npt.NDArray[np.int64], since: int) -> bool | None:
        first, last = (
            (offsets[0], offsets[-1]) if isinstance(offsets, range) else (offsets.min(), offsets.max())
        )
        segments = self.index.correcting(
            dataset.tenant_id, dataset.id, int(first), int(last), since=since, limit=CHECKED_FILES_MAX + 1
        )
        read_rows = 0
        for segment in segments[:CHECKED_FILES_MAX]:
            read_rows += segment.row_count
            if read_rows > CHECKED_ROWS_MAX:
                return None
            if next(self._corrections(segment, since, offsets), None) is not None:
                return True
        return False if len(segments) <= CHECKED_FILES_MAX else None

    def _check_kept(self, dataset: Dataset, since: int) -> int:
        """The first offset that is kept. Raises OffsetExpired if the feed was cut after `since`."""
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        bounds.checked(since)
        return bounds.earliest

    def _find(
        self, dataset: Dataset, span: range, among: range, offsets: range | Sequence[int], limit: int
    ) -> tuple[list[CorrectedChange], int | None]:
        """The changes at offsets `among` that correct one of `offsets`, and the offset where the scan stopped early, if
        so.

        `span` includes all of `offsets`.
        """
        corrections: list[CorrectedChange] = []
        scanned_rows = 0
        for segment in _correcting(self.index, dataset, span, among.start):
            if segment.first_offset >= among.stop:
                break
            if scanned_rows and scanned_rows + segment.row_count > SCANNED_ROWS_MAX:
                return corrections, segment.first_offset
            scanned_rows += segment.row_count
            for correction in self._corrections(segment, among.start, offsets):
                if correction.by >= among.stop:
                    break
                if len(corrections) == limit:
                    return corrections, correction.by
                corrections.append(correction)
        return corrections, None

    def _corrections(
        self, segment: ChangelogSegment, since: int, offsets: range | Sequence[int] | npt.NDArray[np.int64]
    ) -> Iterator[CorrectedChange]:
        first = max(since, segment.first_offset)
        rows = self.reader.read_slice(
            segment.file, CORRECTION_SOURCES, segment.row_of(first), segment.end_offset - first
        )
        resolved_rows = resolved_corrects(rows, segment.first_offset)
        for each in corrections_in(resolved_rows, first, offsets):
            yield CorrectedChange(
                offset=each.offset,
                by=each.by,
                op=each.op,
                version=segment.version,
                system_time=segment.committed_at,
            )


def _correcting(
    index: ChangelogStore, dataset: Dataset, span: range, since: int
) -> Iterator[ChangelogSegment]:
    """The files that may hold corrections of the span, in order."""
    while span:
        segments = index.correcting(
            dataset.tenant_id, dataset.id, span[0], span[-1], since=since, limit=_FILES_MAX
        )
        yield from segments
        if len(segments) < _FILES_MAX:
            return
        since = segments[-1].end_offset


def corrections_since(index: ChangelogStore, dataset: Dataset, since: int) -> CorrectionsSince:
    """Where the feed has corrections of the changes before `since` by later ones.

    Raises InvalidRequest if too many changes would have to be scanned, OffsetExpired if the feed no longer goes back to
    `since`.
    """
    segments: list[ChangelogSegment] = []
    scanned_rows = 0
    for segment in _correcting(index, dataset, range(since), since):
        scanned_rows += segment.row_count
        if scanned_rows > SCANNED_ROWS_MAX:
            detail = (
                f"more than {SCANNED_ROWS_MAX} changes were committed since; omit it, or read a later version"
            )
            raise InvalidRequest(
                f"corrected_since: {detail}", [FieldError(pointer="/corrected_since", detail=detail)]
            )
        segments.append(segment)
    # Last: the feed may be cut while its segments are read.
    index.bounds(dataset.tenant_id, dataset.id).checked(since)
    return CorrectionsSince(since=since, segments=tuple(segments))


def check_records_corrections(dataset: Dataset) -> None:
    """Raises InvalidRequest if the feed does not record which changes it takes back."""
    producer = dataset.definition.changelog.producer
    if producer is not ChangelogProducer.FULL:
        raise InvalidRequest(
            f"the feed of {dataset.definition.name!r} does not record which changes it takes back: its producer is "
            f"{producer.value}; expected full"
        )
