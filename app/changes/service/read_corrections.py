"""Which changes of a feed were taken back later, and by what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from app.catalog.values import Dataset
from app.changelog.changelog_scan import ChangelogReader
from app.changelog.corrections import CORRECTION_SOURCES, corrections_in, resolved_corrects
from app.changes.ports import ChangelogIndex
from app.format.dataset import ChangelogProducer
from app.format.errors import FieldError, InvalidRequest, OffsetAhead, OffsetExpired
from app.format.file_group import ChangelogSegment
from app.format.rows.changelog import Op

# Files that one look at the catalogue names, and rows that one request looks at: two columns of them, 9 bytes each.
_FILES_MAX: Final = 64
SCANNED_ROWS_MAX: Final = 8 * 1024 * 1024


class CorrectedChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change at `offset` was taken back by the change at `by`, of `version`: a -C, whose +C follows, or a -R."""

    offset: int
    by: int
    op: Op
    version: int
    system_time: datetime


class CorrectionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Corrections in the order of the feed. `next_since`: the position from which to look on; None after the last."""

    corrections: list[CorrectedChange]
    next_since: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadCorrections:
    """Finds what took changes back: only files whose bounds say that they may are read, and of them two columns."""

    index: ChangelogIndex
    reader: ChangelogReader

    def page(
        self, dataset: Dataset, first: int, end: int | None, *, since: int | None, limit: int
    ) -> CorrectionPage:
        """At most `limit` corrections of the changes [first, end) that the feed tells from position `since` on.

        `end`: the head, unless said. Raises InvalidRequest, OffsetAhead, OffsetExpired, CorruptFile.
        """
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        _check_producer(dataset)
        end = bounds.next_offset if end is None else end
        if first > end:
            detail = f"expected at most `to`, {end}"
            raise InvalidRequest(
                "the range ends before it begins", [FieldError(pointer="/from", detail=detail)]
            )
        if end > bounds.next_offset:
            raise OffsetAhead(
                f"to={end} is beyond the head at {bounds.next_offset}", since=end, head=bounds.next_offset
            )
        if first < bounds.earliest:
            raise OffsetExpired(
                f"changes before {bounds.earliest} are gone, and what took them back may be, too; ask from there on",
                since=first,
                earliest=bounds.earliest,
            )
        wanted = range(first, end)
        return self._page(dataset, wanted, wanted, first if since is None else since, limit)

    def of_rows(self, dataset: Dataset, offsets: Sequence[int], since: int) -> dict[int, CorrectedChange]:
        """For the changes at these offsets, which gave rows their values, what took them back, if anything did.

        `since`: how many changes there were when the rows had these values; none of those took one back. Raises
        InvalidRequest where the producer of the feed does not tell, or where too much of the feed would have to be
        looked at, OffsetExpired where it is not kept back to `since`.
        """
        _check_producer(dataset)
        if not offsets:
            return {}
        span = range(min(offsets), max(offsets) + 1)
        page = self._page(dataset, span, offsets, since, len(offsets) + 1)
        # Afterwards: what was cut while it was looked at may be missing.
        self.index.bounds(dataset.tenant_id, dataset.id).checked(since)
        if page.next_since is not None:
            detail = (
                f"too many changes came since ({SCANNED_ROWS_MAX} looked at): ask for fewer rows at a time"
            )
            raise InvalidRequest("corrected_since: " + detail, [FieldError(pointer="/limit", detail=detail)])
        return {each.offset: each for each in page.corrections}

    def _page(
        self, dataset: Dataset, span: range, wanted: range | Sequence[int], since: int, limit: int
    ) -> CorrectionPage:
        found: list[CorrectedChange] = []
        scanned = 0
        for segment in self._segments(dataset, span, since):
            if scanned and scanned + segment.file.row_count > SCANNED_ROWS_MAX:
                return CorrectionPage(corrections=found, next_since=segment.first_offset)
            scanned += segment.file.row_count
            for correction in self._corrections(segment, since, wanted):
                if len(found) == limit:
                    return CorrectionPage(corrections=found, next_since=correction.by)
                found.append(correction)
        return CorrectionPage(corrections=found, next_since=None)

    def _segments(self, dataset: Dataset, span: range, since: int) -> Iterator[ChangelogSegment]:
        """The files that may hold corrections of the span, in order."""
        while span:
            segments = self.index.correcting(
                dataset.tenant_id, dataset.id, span[0], span[-1], since=since, limit=_FILES_MAX
            )
            yield from segments
            if len(segments) < _FILES_MAX:
                return
            since = segments[-1].first_offset + segments[-1].file.row_count

    def _corrections(
        self, segment: ChangelogSegment, since: int, wanted: range | Sequence[int]
    ) -> Iterator[CorrectedChange]:
        first_row = max(0, since - segment.first_offset)
        rows = self.reader.read_slice(
            segment.file, CORRECTION_SOURCES, first_row, segment.file.row_count - first_row
        )
        stored = resolved_corrects(rows, segment.first_offset)
        for each in corrections_in(stored, segment.first_offset + first_row, wanted):
            yield CorrectedChange(
                offset=each.offset,
                by=each.by,
                op=each.op,
                version=segment.version,
                system_time=segment.committed_at,
            )


def _check_producer(dataset: Dataset) -> None:
    producer = dataset.definition.changelog.producer
    if producer is not ChangelogProducer.FULL:
        raise InvalidRequest(
            f"the feed of {dataset.definition.name!r} does not tell which changes it takes back: its producer is "
            f"{producer.value}, and only full finds the rows as they were"
        )
