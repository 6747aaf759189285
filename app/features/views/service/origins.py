"""Which change of its input each change of a view was made of, where the view makes its rows one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.changes.positions import StartingPosition, resolve_position
from app.core.changes.repository import ChangelogStore
from app.core.jobs.kinds.write import InputRange
from app.features.views.repository.views import ViewStore
from app.features.views.values import View, ViewMode
from app.kernel.changelog.changelog_scan import ChangelogReader
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import ChangelogSegment
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.record_key import encode_keys

SCANNED_ROWS_MAX: Final = 1024 * 1024
"""The most changes of the input that one request reads."""
VERSIONS_MAX: Final = 100
"""The most versions of the view on a page: each needs a query and files of its own."""
_STEP_ROWS: Final = 128 * 1024
_TAKE_AWAY: Final = (Op.RETRACT, Op.CORRECT_FROM)


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
class _KeyedChanges:
    """Changes with consecutive offsets. `ops`: uint8. `keys`: canonical, one for each change."""

    first_offset: int
    ops: npt.NDArray[np.uint8]
    keys: pa.ChunkedArray

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return np.arange(self.first_offset, self.first_offset + len(self.ops), dtype=np.int64)

    @property
    def taken_away(self) -> npt.NDArray[np.int8]:
        """1 for a change that takes its row away, 0 for one that sets it."""
        return np.isin(self.ops, _TAKE_AWAY).astype(np.int8)

    def numbers(self, among: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """The place of each key among these, and whether it is there."""
        numbers = pc.index_in(self.keys, value_set=among)
        return pc.fill_null(numbers, 0).to_numpy(), numbers.is_valid().to_numpy(zero_copy_only=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class FindOrigins:
    """Reads the keys of changes of the view, and of those changes of its input that the same versions have taken in."""

    views: ViewStore
    index: ChangelogStore
    reader: ChangelogReader

    def page(
        self, granted_datasets: GrantedDatasets, reference: str, since: int | StartingPosition, limit: int
    ) -> OriginPage:
        """The origins of up to `limit` changes from position `since` on.

        A page ends before a version for which more than SCANNED_ROWS_MAX changes of the input would have been read, and
        after VERSIONS_MAX versions.
        Raises NotFound, Forbidden, RestrictedGrant, InvalidRequest if the view has no such origins, OffsetAhead,
        OffsetExpired, CorruptFile.
        """
        view = self.views.get(granted_datasets.principal.tenant_id, reference)
        dataset = granted_datasets.get(view.dataset.tenant_id, view.dataset.id)
        source = granted_datasets.get(view.dataset.tenant_id, _input(view).id)
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        start = resolve_position(since, bounds)
        end = min(start + limit, bounds.next_offset)
        segments = self.index.segments(dataset.tenant_id, dataset.id, start, end) if start < end else []
        ranges = self.views.taken_in(dataset.tenant_id, dataset.id, {each.version for each in segments})
        earliest = self.index.bounds(source.tenant_id, source.id).earliest
        key = view.definition.plan.key_columns
        origins: list[ChangeOrigin] = []
        scanned_rows = 0
        for number, (version, parts) in enumerate(groupby(segments, lambda segment: segment.version)):
            changes = list(self._keyed(dataset, parts, tuple(key.values()), start, end))
            among = _kept(source, ranges.get(version, ()), earliest)
            if origins and (number == VERSIONS_MAX or scanned_rows + len(among) > SCANNED_ROWS_MAX):
                end = changes[0].first_offset
                break
            if len(among) > SCANNED_ROWS_MAX:
                among = range(0)
            scanned_rows += len(among)
            origins += self._origins(version, changes, source, among, tuple(key))
        return OriginPage(source=source, origins=origins, next_since=end, pending=bounds.next_offset - end)

    def _origins(
        self,
        version: int,
        changes: Sequence[_KeyedChanges],
        source: Dataset,
        among: range,
        columns: Sequence[str],
    ) -> Iterator[ChangeOrigin]:
        """The origins of the changes of one version. `among`: the offsets of the input that it has taken in."""
        keys = pa.chunked_array([chunk for each in changes for chunk in each.keys.chunks]).unique()
        # By whether the row is taken away, and by key: the last change of the input that does so, or -1.
        latest = np.full((2, len(keys)), -1, dtype=np.int64)
        segments = self.index.segments(source.tenant_id, source.id, among.start, among.stop) if among else []
        for each in self._keyed(source, segments, columns, among.start, among.stop):
            number, mask = each.numbers(keys)
            np.maximum.at(latest, (each.taken_away[mask], number[mask]), each.offsets[mask])
        for each in changes:
            number, _ = each.numbers(keys)
            origins = latest[each.taken_away, number]
            for offset, op, origin in zip(
                each.offsets.tolist(), each.ops.tolist(), origins.tolist(), strict=True
            ):
                yield ChangeOrigin(
                    offset=offset, op=Op(op), version=version, origin=None if origin < 0 else origin
                )

    def _keyed(
        self,
        dataset: Dataset,
        segments: Iterable[ChangelogSegment],
        columns: Sequence[str],
        start: int,
        end: int,
    ) -> Iterator[_KeyedChanges]:
        """The changes [start, end) in these segments, in steps."""
        fields = dataset.definition.schema.select(columns).to_arrow()
        schema = pa.schema([OP_FIELD, *(fields.field(name).with_nullable(True) for name in columns)])
        for segment in segments:
            stop = min(end, segment.end_offset)
            for first in range(max(start, segment.first_offset), stop, _STEP_ROWS):
                count = min(_STEP_ROWS, stop - first)
                rows = self.reader.read_slice(segment.file, schema, segment.row_of(first), count)
                yield _KeyedChanges(
                    first_offset=first,
                    ops=rows.column(OP_COLUMN).to_numpy(),
                    keys=encode_keys(rows, columns),
                )


def _input(view: View) -> Dataset:
    if view.definition.mode is not ViewMode.ROW_BY_ROW:
        detail = (
            "the rows of the view are not made one by one with the key of its input, so its changes have no single "
            "origin; the timeline has the changes of the inputs that each version has taken in"
        )
        raise InvalidRequest(detail, [FieldError(pointer="/view", detail=detail)])
    [source] = view.inputs
    return source.dataset


def _kept(source: Dataset, ranges: Sequence[InputRange], earliest: int) -> range:
    """The offsets of the input to read; empty if they are not known, or not all of them are kept."""
    kept_ranges = [each for each in ranges if each.dataset_id == source.id and each.since >= earliest]
    return range(kept_ranges[0].since, kept_ranges[0].until) if kept_ranges else range(0)
