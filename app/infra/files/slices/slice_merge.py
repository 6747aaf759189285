"""Merges incoming rows with the live rows of a file group.

Writes, compaction and reads of logs all use `merge_incoming`, so a row always has the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.infra.files.slices.file_slice import (
    FILE_COLUMN,
    PLACE_COLUMNS,
    POSITION_COLUMN,
    SCOPED_COLUMN,
    Block,
)
from app.infra.files.slices.incoming import Incoming, IncomingKeys, incoming_schema
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.spill import SpillBuffer, SpilledPart
from app.infra.files.slices.tombstone_set import TombstoneSet
from app.kernel.commit.merge.merge import merge
from app.kernel.commit.merge.outcome import MergeResult
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.kept_fields import with_kept_column
from app.kernel.format.rows.meta_columns import stored_schema
from app.kernel.format.rows.placement import numbers_in
from app.kernel.format.rows.record_key import canonical_bytes, encode_keys

_RETRACTING = pa.array([Op.RETRACT, Op.CORRECT_FROM], pa.uint8())


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchedRows:
    """The result for touched rows.

    `live`: the rows before the merge, with their places: `files` (int32) and `positions` (int64) are -1 for a row that
    was in no file in this form. `tombstones`: those of the touched keys before the merge, with their places; None for
    none. `buckets`: by live row and, behind these, by tombstone, the number of the file in whose bucket its key is, -1
    for none (int64). `complete`: whether these are all touched rows.
    """

    result: MergeResult
    live: pa.Table
    files: np.ndarray
    positions: np.ndarray
    tombstones: pa.Table | None
    buckets: np.ndarray
    complete: bool

    def former_files(self) -> np.ndarray:
        """By new row, the number of the file that had its key, as a row or a tombstone; -1 for a new key (int64)."""
        return _former(self.buckets, self.result.replaces)

    def kept_blocks(self) -> Iterator[Block]:
        """The unchanged live rows, by their files."""
        for file in numbers_in(self.files):
            mask = self.result.stays & (self.files == file)
            if mask.any():
                yield Block(
                    file=int(file),
                    positions=self.positions[mask],
                    rows=self.live.filter(pa.array(mask)),
                )


def merge_incoming(
    dataset: DatasetDefinition,
    blocks: Callable[[IncomingKeys], Iterable[Block]],
    incoming: Incoming,
    memory: MemoryBudget,
    *,
    live_rows: int,
    tombstones: TombstoneSet | None = None,
) -> Iterator[Block | MatchedRows]:
    """First the untouched rows, block by block in their order, then the result for the others.

    A row is touched if an incoming row has its key, if it is in scope, or if it may be retracted by value. `blocks`
    receives the keys of all incoming rows; it may omit blocks without touched rows. `live_rows`: the greatest possible
    number of live rows, from which the need to spill is estimated. `tombstones`: those of the group; they get the
    result.
    """
    scope = incoming.in_scope
    row_count = incoming.rows + (min(incoming.rows, live_rows) if scope is None else live_rows)
    hashes = row_hashes(dataset)
    may_match = live_rows > 0 or (tombstones is not None and not tombstones.is_empty)
    with SpillBuffer(
        hashes,
        memory_bytes=memory.bytes_max,
        expected_rows=row_count,
        scratch=memory.scratch,
        form=with_kept_column,
    ) as rows_by_key:
        hash_parts = [np.zeros(0, dtype=np.uint64)]
        keys: list[pa.ChunkedArray] = []
        for table in incoming.tables:
            rows_by_key.add_incoming(table)
            # Without live rows and tombstones, nothing is looked up.
            if may_match and dataset.keyed:
                encoded_keys = encode_keys(table, dataset.record_key)
                hash_parts.append(hash_keys(encoded_keys))
                if not rows_by_key.spilled:
                    keys.append(encoded_keys)
            elif may_match and incoming.by_value:
                hash_parts.append(
                    hashes(table.filter(pc.is_in(table.column(OP_COLUMN), value_set=_RETRACTING)))
                )
        unique = _distinct(np.concatenate(hash_parts))
        incoming_hashes = pa.array(unique)
        incoming_keys = IncomingKeys(hashes=unique, encoded_keys=None if rows_by_key.spilled else keys)
        for block in blocks(incoming_keys):
            in_scope = np.zeros(block.rows.num_rows, dtype=bool) if scope is None else scope(block)
            touch_mask = in_scope
            if len(unique):
                touch_mask = in_scope | pc.is_in(
                    pa.array(hashes(block.rows)), value_set=incoming_hashes
                ).to_numpy(zero_copy_only=False)
            if touch_mask.any():
                rows_by_key.add_live(block.at(touch_mask).placed(in_scope[touch_mask]))
            if not touch_mask.all():
                yield block.at(~touch_mask)
        for block in () if tombstones is None else tombstones.touched(incoming_keys):
            same = pc.is_in(pa.array(hashes(block.rows)), value_set=incoming_hashes).to_numpy(
                zero_copy_only=False
            )
            rows_by_key.add_tombstones(block.at(same).placed(np.zeros(int(same.sum()), dtype=bool)))
        for part in rows_by_key.parts():
            yield from _matched_rows(dataset, part, incoming, tombstones, complete=not rows_by_key.spilled)


def _distinct(hashes: np.ndarray) -> np.ndarray:
    """The distinct values, ascending. Sorting is the fastest method for values as large as hashes."""
    ascending = np.sort(hashes)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])] if len(ascending) else ascending


def row_hashes(dataset: DatasetDefinition) -> Callable[[pa.Table], np.ndarray]:
    """The function that maps rows that may have one key, or without keys may be equal, to one hash: uint64 per row."""
    key = dataset.record_key
    if not key:
        return _whole_row_hashes(dataset)

    def of_keys(rows: pa.Table) -> np.ndarray:
        return hash_keys(encode_keys(rows, key))

    return of_keys


def _whole_row_hashes(dataset: DatasetDefinition) -> Callable[[pa.Table], np.ndarray]:
    """The hashes of rows without a key: of all their flat values. Nested values have no such bytes and are ignored."""
    flat = [field.name for field in dataset.schema.to_arrow() if not pa.types.is_nested(field.type)]

    def of_rows(rows: pa.Table) -> np.ndarray:
        total = np.zeros(rows.num_rows, dtype=np.uint64)
        for name in flat:
            column = rows.column(name)
            hashes = hash_keys(pc.fill_null(canonical_bytes(column), b""))
            hashes[column.is_null().to_numpy()] = np.uint64(0)
            total = total * np.uint64(0x9E3779B97F4A7C15) + hashes
        return total

    return of_rows


def _matched_rows(
    dataset: DatasetDefinition,
    part: SpilledPart,
    incoming: Incoming,
    tombstones: TombstoneSet | None,
    *,
    complete: bool,
) -> Iterator[Block | MatchedRows]:
    live = _no_live(dataset) if part.live is None else part.live.combine_chunks()
    rows = _no_incoming(dataset) if part.incoming is None else part.incoming
    if incoming.in_scope is not None and dataset.keyed:
        # A row out of scope that merely shares its hash with an incoming row must stay.
        has_incoming_key = pc.is_in(
            encode_keys(live, dataset.record_key), value_set=encode_keys(rows, dataset.record_key).unique()
        )
        mask = pc.or_(has_incoming_key, live.column(SCOPED_COLUMN))
        yield from _as_blocks(live.filter(pc.invert(mask)))
        live = live.filter(mask)
    current = live.drop_columns(list(PLACE_COLUMNS))
    placed = None if part.tombstones is None else part.tombstones.combine_chunks()
    result = merge(
        dataset,
        current,
        rows,
        incoming.intents,
        tombstones=None if placed is None else placed.drop_columns(list(PLACE_COLUMNS)),
        retract_rest=incoming.in_scope is not None,
        committed=incoming.committed,
    )
    if incoming.committed and result.conflicts:
        # Without its rows, a reader would see a table that never existed.
        raise HeadwaterError(f"{dataset.name}: committed rows cannot be merged: {result.conflicts}")
    files = live.column(FILE_COLUMN).to_numpy()
    buckets = files.astype(np.int64)
    if tombstones is not None:
        if placed is not None:
            places = (placed.column(name).to_numpy() for name in (FILE_COLUMN, POSITION_COLUMN))
            buckets = np.concatenate([buckets, tombstones.buckets(*places)])
        tombstones.take(result, placed, _former(buckets, result.tombstones_replace))
    yield MatchedRows(
        result=result,
        live=current,
        files=files,
        positions=live.column(POSITION_COLUMN).to_numpy(),
        tombstones=placed,
        buckets=buckets,
        complete=complete,
    )


def _former(buckets: np.ndarray, replaced: np.ndarray) -> np.ndarray:
    """The buckets of what is replaced, by its numbers; -1 where it is -1."""
    former: np.ndarray = np.append(buckets, -1)[replaced]
    return former


def _as_blocks(table: pa.Table) -> Iterator[Block]:
    files = table.column(FILE_COLUMN).to_numpy()
    for file in numbers_in(files):
        rows = table.filter(pa.array(files == file))
        yield Block(
            file=int(file),
            positions=rows.column(POSITION_COLUMN).to_numpy(),
            rows=rows.drop_columns(list(PLACE_COLUMNS)),
        )


def _no_live(dataset: DatasetDefinition) -> pa.Table:
    empty = np.zeros(0, dtype=np.int64)
    block = Block(file=-1, positions=empty, rows=stored_schema(dataset).empty_table())
    return block.placed(empty.astype(bool))


def _no_incoming(dataset: DatasetDefinition) -> pa.Table:
    return incoming_schema(dataset).empty_table()
