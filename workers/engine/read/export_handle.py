"""The export tasks: write a part of a feed, or the rows that it results in. They run in Spark's Python processes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.features.exports.selection import export_selection
from app.features.exports.tasks import ExportedPart, ExportFormat, ExportPart, ExportQuery
from app.infra.files.export_file import ExportSink, TextForm
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.row_scan import RowChoice, base_rows, merged_rows
from app.infra.files.slices.spill import SpillBuffer
from app.infra.files.storage import Storage
from app.kernel.changelog.change_positions import changes_since
from app.kernel.changelog.changelog_run import ChangelogRun, runs_of
from app.kernel.changelog.changelog_scan import ChangelogScan
from app.kernel.changelog.corrections import CORRECTION_SOURCES, resolved_corrects
from app.kernel.changelog.delivery_forms import flat, in_form, json_names, symbols_of
from app.kernel.changelog.shared_files import changes_by_unit, own_rows
from app.kernel.commit.table_rows import BaseRows, MergedRows
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.partition.members import key_fields
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN
from app.kernel.format.rows.record_key import encode_keys
from workers.engine.read.meta_rows import MetaRows, rows_schema, with_meta_fields
from workers.engine.read.text_forms import changes_text, rows_text

_STEP_CHANGES: Final = 64 * 1024


def export(part: ExportPart, storage: Storage, slices: SliceReader, memory: MemoryBudget) -> ExportedPart:
    """Runs one part of an export. Raises InvalidRequest, InvalidFilter, SchemaMismatch, CorruptFile, StorageFull."""
    scan = _scan(part, slices)
    if part.spec.query is ExportQuery.CHANGES:
        return _export_changes(part, scan, storage)
    with _sink(part, storage, _rows_schema(part, scan)) as sink:
        for rows in _changed_rows(part, scan, slices, memory):
            for start in range(0, rows.num_rows, _STEP_CHANGES):
                sink.write(rows.slice(start, _STEP_CHANGES), part.until)
        return ExportedPart(files=sink.finish(), splits_end=_splits_end(part, scan))


def changed_rows(part: ExportPart, slices: SliceReader, memory: MemoryBudget) -> Iterator[pa.Table]:
    """The rows that an incremental export of the part writes, with the requested columns.

    Raises InvalidRequest, InvalidFilter, CorruptFile.
    """
    return _changed_rows(part, _scan(part, slices), slices, memory)


def rows_of_table(
    part: ExportPart, slices: SliceReader, memory: MemoryBudget, schema: pa.Schema
) -> Iterator[pa.Table]:
    """The rows that changed, from the files of the table, with the columns of the schema, also meta columns.

    Raises InvalidRequest, InvalidFilter, CorruptFile.
    """
    return _rows_of_table(part, _scan(part, slices), slices, memory, schema)


def _scan(part: ExportPart, slices: SliceReader) -> ChangelogScan:
    return ChangelogScan(reader=slices.reader, selection=export_selection(part.spec))


def _export_changes(part: ExportPart, scan: ChangelogScan, storage: Storage) -> ExportedPart:
    empty_table = _shown(part, scan.selection.changes_schema().empty_table())
    with _sink(part, storage, empty_table.schema) as sink:
        for run in runs_of(part.segments):
            for first, last in _pieces(part, scan, run):
                sink.write(_shown(part, _changes(part, scan, run, first, last)), last)
        return ExportedPart(files=sink.finish(), splits_end=_splits_end(part, scan))


def _changes(part: ExportPart, scan: ChangelogScan, run: ChangelogRun, first: int, last: int) -> pa.Table:
    """The changes [first, last), which start or end within a pair only where the whole range does."""
    joins = part.spec.form.joins_pairs
    scan_start, lower = first, first
    if first == part.since:
        # The first half is out of the range, but may be selected, or be needed for the event.
        scan_start = max(part.earliest, run.first_offset, first - scan.selection.selects)
        lower = max(part.earliest, first - (scan.selection.selects or joins))
    changes = scan.find(run, scan_start, last, lower=lower, upper=last).changes
    return changes_since(changes, first, whole=joins)


def _shown(part: ExportPart, changes: pa.Table) -> pa.Table:
    """The changes as the columns of the delivery format."""
    form = part.spec.form
    events = in_form(changes, form, part.spec.dataset.name).table
    if part.spec.format is ExportFormat.NDJSON:
        return events
    if (
        part.spec.format is ExportFormat.CSV
        and "op" in events.column_names
        and pa.types.is_integer(events.column("op").type)
    ):
        names = pa.array(symbols_of(form), pa.string())
        at = events.schema.get_field_index("op")
        events = events.set_column(at, "op", pc.take(names, events.column("op")))
    return flat(events, form, part.spec.dataset.changelog.vocabulary)


def _pieces(part: ExportPart, scan: ChangelogScan, run: ChangelogRun) -> Iterator[tuple[int, int]]:
    """The changes of a run that are in the part. None ends within a pair, which would then be in two files."""
    first, last = max(part.first, run.first_offset), min(part.last, run.end_offset)
    cuts = [_cut(part, scan, run, at) for at in (*range(first, last, _STEP_CHANGES), last)]
    for begin, end in pairwise(cuts):
        if begin < end:
            yield begin, end


def _cut(part: ExportPart, scan: ChangelogScan, run: ChangelogRun, at: int) -> int:
    """The position, or the one behind the pair that it would split. A range with that end stops before it."""
    if at == part.since:
        return at
    splits = scan.splits_pair(run, at)
    return at - splits if at == part.until else at + splits


def _splits_end(part: ExportPart, scan: ChangelogScan) -> bool:
    return part.last == part.until and any(
        scan.splits_pair(run, part.until) for run in runs_of(part.segments)
    )


def _changed_rows(
    part: ExportPart, scan: ChangelogScan, slices: SliceReader, memory: MemoryBudget
) -> Iterator[pa.Table]:
    """The matching rows with the requested columns."""
    access, schema = scan.selection.access, rows_schema(scan.selection.shown_schema)
    spec = part.spec
    meta = MetaRows.of(spec.dataset, schema.names, access, spec.commit_times, spec.corrections, slices.reader)
    if meta is not None:
        for rows in _rows_of_table(part, scan, slices, memory, meta.sources):
            yield meta.shown(rows).cast(_rows_schema(part, scan))
        return
    if part.changed_after is not None or spec.query is ExportQuery.SNAPSHOT:
        for rows in _rows_of_table(part, scan, slices, memory, schema):
            yield access.shown(rows).cast(schema)
        return
    has_key = part.spec.dataset.keyed
    for changes in _latest_rows(part, scan, memory) if has_key else _standing_rows(part, scan):
        rows = changes.filter(pa.array(scan.selection.chosen(changes))).select(schema.names)
        yield access.shown(rows).cast(schema)


def _rows_schema(part: ExportPart, scan: ChangelogScan) -> pa.Schema:
    """The columns of exported rows, and the meta columns where rows have them."""
    schema = rows_schema(scan.selection.shown_schema)
    return with_meta_fields(schema, part.spec.commit_times, part.spec.corrections)


def _rows_of_table(
    part: ExportPart, scan: ChangelogScan, slices: SliceReader, memory: MemoryBudget, schema: pa.Schema
) -> Iterator[pa.Table]:
    choice = RowChoice(where=scan.selection.where, changed_after=part.changed_after)
    for piece in part.table:
        match piece:
            case BaseRows(file=file, first=first, end=end):
                yield from base_rows(slices, part.spec.dataset, file, schema, choice, first, end)
            case MergedRows(files=files):
                yield from merged_rows(
                    slices, part.spec.dataset, files, schema, choice, part.spec.partitions, memory
                )


def _latest_rows(part: ExportPart, scan: ChangelogScan, memory: MemoryBudget) -> Iterator[pa.Table]:
    """By key, the row of its last change; no row for a deleted key."""
    key = part.spec.dataset.record_key
    for unit in changes_by_unit(part.segments):
        segments = [segment for segment in unit if not scan.selection.rules_out(segment.file)]
        changes = sum(segment.row_count for segment in segments)
        with SpillBuffer(
            lambda rows: hash_keys(encode_keys(rows, key)),
            memory_bytes=memory.bytes_max,
            expected_rows=changes,
            scratch=memory.scratch,
        ) as rows_by_key:
            for run in runs_of(segments):
                for first, last in _pieces(part, scan, run):
                    read = scan.read(run, first, last, also=key_fields(part.spec.dataset))
                    groups = [segment.file.file_group for segment in run.segments]
                    own_changes = own_rows(read, groups, part.spec.dataset, part.share, part.shares)
                    takes_effect = pc.not_equal(own_changes.column(OP_COLUMN), int(Op.CORRECT_FROM))
                    rows_by_key.add_incoming(own_changes.filter(takes_effect))
            for spilled in rows_by_key.parts():
                if spilled.incoming is not None:
                    yield _last_of_keys(spilled.incoming.combine_chunks(), key)


def _last_of_keys(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Of changes in order, the last of each key, unless it is a retraction."""
    numbers = encode_keys(rows, key).combine_chunks().dictionary_encode().indices.to_numpy()
    last = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
    # Of several values for one index, the last one stays.
    last[numbers] = np.arange(len(numbers))
    ops = rows.column(OP_COLUMN).to_numpy()
    return rows.take(pa.array(np.sort(last[ops[last] != Op.RETRACT])))


def _standing_rows(part: ExportPart, scan: ChangelogScan) -> Iterator[pa.Table]:
    """Without a key, the rows that were appended in the range and not retracted in it."""
    retracted_offsets = _retracted(part, scan)
    segments = [segment for segment in part.segments if not scan.selection.rules_out(segment.file)]
    for run in runs_of(segments):
        for first, last in _pieces(part, scan, run):
            changes = scan.read(run, first, last)
            stands = changes.column(OP_COLUMN).to_numpy() == Op.APPEND
            stands &= ~np.isin(np.arange(first, last), retracted_offsets)
            yield changes.filter(pa.array(stands))


def _retracted(part: ExportPart, scan: ChangelogScan) -> np.ndarray:
    """The offsets of the part's changes that others of the range retract: int64."""
    parts = [np.zeros(0, dtype=np.int64)]
    for segment in part.retracting:
        first, last = max(part.since, segment.first_offset), min(part.until, segment.end_offset)
        for start in range(first, last, _STEP_CHANGES):
            count = min(_STEP_CHANGES, last - start)
            rows = scan.reader.read_slice(segment.file, CORRECTION_SOURCES, segment.row_of(start), count)
            offsets = resolved_corrects(rows, segment.first_offset).column(CORRECTS_COLUMN).drop_null()
            targets = offsets.to_numpy()
            parts.append(targets[(targets >= part.first) & (targets < part.last)])
    return np.concatenate(parts)


def _sink(part: ExportPart, storage: Storage, schema: pa.Schema) -> ExportSink:
    return ExportSink(
        storage,
        part.prefix,
        part.spec.format.file_format,
        schema,
        target_bytes=part.spec.target_bytes,
        texts=_texts(part, schema),
    )


def _texts(part: ExportPart, schema: pa.Schema) -> TextForm | None:
    if part.spec.query is ExportQuery.CHANGES and part.spec.format is ExportFormat.NDJSON:
        form, vocabulary = part.spec.form, part.spec.dataset.changelog.vocabulary
        return changes_text(symbols_of(form), json_names(form, vocabulary))
    return rows_text(part.spec.format.file_format, schema)
