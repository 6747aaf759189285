"""Which change of its input each change of a view was made of, where the view makes its rows one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from app.catalog.service import GrantedDatasets
from app.catalog.values import Dataset
from app.changelog.changelog_scan import ChangelogReader
from app.changes.ports import ChangelogIndex
from app.changes.positions import resolve_position
from app.format.errors import FieldError, InvalidRequest
from app.format.file_group import ChangelogSegment
from app.format.rows.changelog import OP_FIELD, Op
from app.jobs.values import InputRange
from app.views.repository.views import ViewStore
from app.views.values import View, ViewMode

SCANNED_ROWS_MAX: Final = 1024 * 1024
"""The most changes of the input that one request reads."""
VERSIONS_MAX: Final = 100
"""The most versions of the view on a page: each needs a query and files of its own."""
_STEP_ROWS: Final = 128 * 1024
_TAKE_AWAY: Final = (Op.RETRACT, Op.CORRECT_FROM)

_Key = tuple[Any, ...]


class ChangeOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a view, and the change of its input that it was made of."""

    offset: int
    """The offset of the change in the feed of the view."""
    op: Op
    """Its operation."""
    version: int
    """The version of the view that it is part of."""
    origin: int | None
    """The offset of the change of the input; None if it is not known (any more)."""


class OriginPage(msgspec.Struct, frozen=True, kw_only=True):
    """Origins of changes in the order of the view's feed, before position `next_since`; `source`: the input."""

    source: Dataset
    origins: list[ChangeOrigin]
    next_since: int
    pending: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FindOrigins:
    """Reads the keys of changes of the view, and of those changes of its input that the same versions have taken in."""

    views: ViewStore
    index: ChangelogIndex
    reader: ChangelogReader

    def page(self, granted: GrantedDatasets, reference: str, since: int, limit: int) -> OriginPage:
        """The origins of up to `limit` changes from position `since` on.

        A page ends before a version for which more than SCANNED_ROWS_MAX changes of the input would have been read, and
        after VERSIONS_MAX versions.
        Raises NotFound, Forbidden, RestrictedGrant, InvalidRequest if the view has no such origins, OffsetAhead,
        OffsetExpired, CorruptFile.
        """
        view = self.views.get(granted.principal.tenant_id, reference)
        dataset = granted.get(view.dataset.tenant_id, view.dataset.id)
        source = granted.get(view.dataset.tenant_id, _input(view).id)
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        start = resolve_position(since, bounds)
        end = min(start + limit, bounds.next_offset)
        segments = self.index.segments(dataset.tenant_id, dataset.id, start, end) if start < end else []
        ranges = self.views.taken_in(dataset.tenant_id, dataset.id, {each.version for each in segments})
        earliest = self.index.bounds(source.tenant_id, source.id).earliest
        key = view.definition.plan.key_columns
        origins: list[ChangeOrigin] = []
        scanned = 0
        for number, (version, parts) in enumerate(groupby(segments, lambda segment: segment.version)):
            changes = list(self._keys(dataset, parts, tuple(key.values()), start, end))
            among = _kept(source, ranges.get(version, ()), earliest)
            if origins and (number == VERSIONS_MAX or scanned + len(among) > SCANNED_ROWS_MAX):
                end = changes[0][0]
                break
            found: dict[tuple[_Key, bool], int] = {}
            if len(among) <= SCANNED_ROWS_MAX:
                scanned += len(among)
                found = self._sources(source, among, tuple(key), {each for _, _, each in changes})
            origins += [
                ChangeOrigin(
                    offset=offset, op=op, version=version, origin=found.get((each, op in _TAKE_AWAY))
                )
                for offset, op, each in changes
            ]
        return OriginPage(source=source, origins=origins, next_since=end, pending=bounds.next_offset - end)

    def _sources(
        self, source: Dataset, among: range, columns: Sequence[str], wanted: Collection[_Key]
    ) -> dict[tuple[_Key, bool], int]:
        """The offset of the last change of each key that sets its row, and (True) of the last that takes it away."""
        if not among:
            return {}
        segments = self.index.segments(source.tenant_id, source.id, among.start, among.stop)
        firsts = {key[0] for key in wanted}
        return {
            (key, op in _TAKE_AWAY): offset
            for offset, op, key in self._keys(source, segments, columns, among.start, among.stop, firsts)
            if key in wanted
        }

    def _keys(
        self,
        dataset: Dataset,
        segments: Iterator[ChangelogSegment] | Sequence[ChangelogSegment],
        columns: Sequence[str],
        start: int,
        end: int,
        firsts: Collection[Any] | None = None,
    ) -> Iterator[tuple[int, Op, _Key]]:
        """The offset, the op and the key of the changes [start, end) in these segments.

        `firsts`: only those whose first key field has one of these values.
        """
        fields = dataset.definition.schema.select(columns).to_arrow()
        schema = pa.schema([OP_FIELD, *(fields.field(name).with_nullable(True) for name in columns)])
        for segment in segments:
            stop = min(end, segment.end_offset)
            for first in range(max(start, segment.first_offset), stop, _STEP_ROWS):
                count = min(_STEP_ROWS, stop - first)
                rows = self.reader.read_slice(segment.file, schema, segment.row_of(first), count)
                rows = rows.append_column("offset", pa.array(range(first, first + count), pa.int64()))
                if firsts is not None:
                    rows = rows.filter(pc.is_in(rows.column(columns[0]), pa.array(firsts, schema.types[1])))
                for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                    yield row[-1], Op(row[0]), row[1:-1]


def _input(view: View) -> Dataset:
    if view.definition.mode is not ViewMode.ROW_BY_ROW:
        detail = (
            "the rows of the view are not made one by one with the key of its input, so its changes have no single "
            "origin; the timeline has the changes of the inputs that each version has taken in"
        )
        raise InvalidRequest(detail, [FieldError(pointer="/view", detail=detail)])
    [source] = view.inputs
    return source.dataset


def _kept(source: Dataset, taken: Sequence[InputRange], earliest: int) -> range:
    """The offsets of the input to read; empty if they are not known, or not all of them are kept."""
    known = [each for each in taken if each.dataset_id == source.id and each.since >= earliest]
    return range(known[0].since, known[0].until) if known else range(0)
