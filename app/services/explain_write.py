"""What a write would touch, and why, without running it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from app.lake.changelog import OP_COLUMN
from app.lake.dataset import (
    BucketFunction,
    BucketMode,
    ChangelogProducer,
    DatasetDefinition,
    MergeMode,
)
from app.lake.errors import FieldError, InvalidRequest
from app.lake.file_answer import FileAnswer
from app.lake.file_group import DataFile, FileKind
from app.lake.key_hash import hash_keys
from app.lake.live_key import LiveKey
from app.lake.operation import Operation, input_schema
from app.lake.partition import partition_codes
from app.lake.placement import Placement
from app.lake.record_key import encode_keys
from app.lake.rows.json_rows import decode_json_rows
from app.lake.rows.objects import to_objects
from app.lake.staging import ROW_COLUMN, Slot, StagedBatch, StagedFile, split_by_slot, with_ops
from app.lake.storing import Storing, storing_of
from app.lake.write_effect import WriteEffect, effect_of
from app.lake.write_options import OnError, WriteOptions
from app.lake.write_plan import MergeTask, WriteIntent, plan_merge, touched_groups
from app.lake.write_scope import has_scope, scope_of
from app.services.accept_write import IncomingWrite, JsonRows
from app.services.model import Dataset
from app.services.ports import Timeline
from app.services.reader_ports import KeySearch
from app.services.write_explanation import (
    BucketRule,
    ExplainedFile,
    ExplainedGroup,
    ExplainedKey,
    LiveRow,
    WriteExplanation,
)

KEYS_MAX: Final = 100
ROWS_MAX: Final = 1_000
GROUPS_SHOWN_MAX: Final = 1_000


class _Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A write of rows in memory: `_hw_op`, the dataset's columns, `_hw_row`, by the slots they go to.

    `partitions`: those that the rows are in, where slots do not tell. `keys_only`: nothing but keys is known.
    """

    operation: Operation
    options: WriteOptions
    by_slot: dict[Slot, pa.Table]
    partitions: tuple[str, ...]
    keys_only: bool

    def staged(self) -> list[StagedFile]:
        """What the rows would be staged as; there is no such file."""
        batches = tuple(
            StagedBatch(slot=slot, index=index, rows=rows.num_rows)
            for index, (slot, rows) in enumerate(self.by_slot.items())
        )
        rows = sum(batch.rows for batch in batches)
        size = sum(table.nbytes for table in self.by_slot.values())
        staged = StagedFile(
            path="", size_bytes=size, checksum="", rows=rows, batches=batches, partitions=self.partitions
        )
        return [staged] if rows else []


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainWrite:
    """Plans writes as workers do, and asks the indexes that they ask."""

    timeline: Timeline
    search: KeySearch

    def keys(self, dataset: Dataset, texts: Sequence[str]) -> WriteExplanation:
        """What an upsert of these keys would touch: each the text of a JSON object of the key fields.

        Raises InvalidRequest, SchemaMismatch, CorruptFile.
        """
        definition = dataset.definition
        if not definition.keyed:
            detail = "the dataset is append-only (no record_key): POST a batch to see where its rows would go"
            raise InvalidRequest(f"key: {detail}", [FieldError(pointer="/key", detail=detail)])
        if not 1 <= len(texts) <= KEYS_MAX:
            detail = f"give 1–{KEYS_MAX} keys, each as a JSON object of its fields"
            raise InvalidRequest(f"key: {detail}", [FieldError(pointer="/key", detail=detail)])
        for text in texts:
            _check_object(text)
        fields = definition.schema.select(definition.record_key)
        keys = decode_json_rows(f"[{','.join(texts)}]".encode(), fields, pointer="/key")
        rows = pa.table(
            {
                field.name: keys.column(field.name)
                if field.name in definition.record_key
                else pa.nulls(keys.num_rows, field.type)
                for field in definition.schema.to_arrow()
            }
        )
        return self._explained(
            dataset, _batch(definition, Operation.UPSERT, WriteOptions(), rows, keys_only=True)
        )

    def write(self, dataset: Dataset, incoming: IncomingWrite) -> WriteExplanation:
        """What a write would touch; rows it brings are in its JSON. Raises what accepting it would, CorruptFile."""
        definition = dataset.definition
        incoming = incoming.checked(definition)
        match incoming.source:
            case None:
                rows = definition.schema.to_arrow().empty_table()
            case JsonRows(text=text):
                rows = decode_json_rows(text, input_schema(incoming.operation, definition))
            case _:
                detail = "an explanation reads rows that are in the request only: kind 'rows'"
                raise InvalidRequest(f"source: {detail}", [FieldError(pointer="/source/kind", detail=detail)])
        if rows.num_rows > ROWS_MAX:
            detail = f"at most {ROWS_MAX} rows are explained, not {rows.num_rows}: send a sample"
            raise InvalidRequest(detail, [FieldError(pointer="/source/rows", detail=detail)])
        return self._explained(dataset, _batch(definition, incoming.operation, incoming.options, rows))

    def _explained(self, dataset: Dataset, batch: _Batch) -> WriteExplanation:
        tasks = self._tasks(dataset, batch)
        bucket = dataset.definition.bucket
        return WriteExplanation(
            version=dataset.version,
            operation=batch.operation,
            index=dataset.definition.index,
            bucket=BucketRule(
                mode=bucket.mode,
                function=bucket.function,
                key=dataset.definition.bucket_key,
                count=bucket.count,
            ),
            group_count=len(tasks),
            file_groups=tuple(self._group(task, batch) for task in tasks[:GROUPS_SHOWN_MAX]),
        )

    def _tasks(self, dataset: Dataset, batch: _Batch) -> list[MergeTask]:
        """The tasks that the write would take at this version."""
        definition, staged = dataset.definition, batch.staged()
        whole = has_scope(batch.operation, batch.options)
        groups = None if whole else touched_groups({0: staged}) if definition.keyed else []
        live = self.timeline.live_files(dataset.tenant_id, dataset.id, dataset.version, groups)
        intent = WriteIntent(
            operation=batch.operation,
            drop_duplicates=batch.options.drop_duplicates,
            quarantine=batch.options.on_error is OnError.QUARANTINE,
        )
        return plan_merge(
            definition,
            {0: staged},
            {0: intent},
            live,
            scope=scope_of(batch.operation, batch.options, definition, staged, live),
            attempt="new",
            data_prefix="",
        )

    def _group(self, task: MergeTask, batch: _Batch) -> ExplainedGroup:
        dataset = task.dataset
        pending = any(file.kind is not FileKind.BASE for file in task.files)
        storing = storing_of(dataset, scoped=task.scope is not None, pending=pending)
        rows = batch.by_slot.get(task.slot) if task.segments else None
        keys = encode_keys(rows, dataset.record_key) if rows is not None and dataset.keyed else _NO_KEYS
        if pending and (storing is Storing.REWRITE or _looks_through_logs(storing, batch.operation)):
            answers = dict.fromkeys(range(len(task.files)), FileAnswer.MERGED)
        else:
            answers = self.search.answers(dataset, task.files, keys, task.scope, storing)
        live = self.search.live(dataset, task.files, keys) if len(keys) else {}
        files = tuple(_file(file, answers.get(number)) for number, file in enumerate(task.files))
        return ExplainedGroup(
            file_group=task.file_group,
            partition_path=task.slot.partition_path,
            number=task.slot.bucket,
            rows=0 if rows is None else rows.num_rows,
            storing=storing,
            reason=_reason(dataset, storing, scoped=task.scope is not None),
            files=files,
            rewritten_bytes=(
                sum(file.size_bytes for file in files if file.read) if storing is Storing.REWRITE else 0
            ),
            marked_files=tuple(_marked(task, storing, live.values())),
            keys=()
            if rows is None or not dataset.keyed
            else tuple(_keys(task, batch, rows, keys, live, storing)),
        )


_NO_KEYS: Final = pa.chunked_array([pa.array([], pa.large_binary())])


def _check_object(text: str) -> None:
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise _no_object() from None


def _no_object() -> InvalidRequest:
    detail = 'expected a JSON object of the key fields, such as {"id": 1}'
    return InvalidRequest(f"key: {detail}", [FieldError(pointer="/key", detail=detail)])


def _batch(
    dataset: DatasetDefinition,
    operation: Operation,
    options: WriteOptions,
    rows: pa.Table,
    *,
    keys_only: bool = False,
) -> _Batch:
    by_slot = {
        slot: pa.Table.from_batches([batch])
        for slot, batch in split_by_slot(with_ops(rows, operation, dataset), dataset, 0)
    }
    hidden = operation is Operation.OVERWRITE and dataset.bucket.mode is BucketMode.KEY_DYNAMIC
    return _Batch(
        operation=operation,
        options=options,
        by_slot=by_slot,
        partitions=tuple(partition_codes(rows, dataset.partition_by)[1]) if hidden else (),
        keys_only=keys_only,
    )


def _looks_through_logs(storing: Storing, operation: Operation) -> bool:
    """Whether rows go to a log and even so must not meet live keys."""
    return storing is Storing.LOG and operation.refuses_live_keys


def _file(file: DataFile, answer: FileAnswer | None) -> ExplainedFile:
    answer = answer or FileAnswer.NOT_ASKED
    return ExplainedFile(
        path=file.path,
        kind=file.kind,
        partition_path=file.slot.partition_path,
        bucket=file.slot.bucket,
        size_bytes=file.size_bytes,
        live_rows=file.live_rows,
        read=answer.read,
        answer=answer,
    )


def _marked(task: MergeTask, storing: Storing, live: Iterable[LiveKey]) -> list[str]:
    """The files that lose rows to a deletion vector, as far as keys tell."""
    if storing is not Storing.MARK:
        return []
    return [task.files[number].path for number in sorted({key.file for key in live if key.file is not None})]


def _keys(
    task: MergeTask,
    batch: _Batch,
    rows: pa.Table,
    keys: pa.ChunkedArray,
    live: dict[bytes, LiveKey],
    storing: Storing,
) -> list[ExplainedKey]:
    dataset = task.dataset
    names = dataset.record_key
    values = [[value for chunk in rows.column(name).chunks for value in to_objects(chunk)] for name in names]
    found = [live.get(key) for key in keys.to_pylist()]
    ops = rows.column(OP_COLUMN).to_pylist()
    effects = [_effect(batch, op, live=at is not None) for op, at in zip(ops, found, strict=True)]
    slots = _slots(task, batch, rows, found, effects, storing)
    looked_at = storing is not Storing.POSTPONE
    return [
        ExplainedKey(
            row=row,
            key=dict(zip(names, key, strict=True)),
            hash=text,
            live=None if at is None else _live_row(task.files, at),
            effect=effect if looked_at else None,
            partition_path=None if slot is None else slot.partition_path,
            bucket=None if slot is None else slot.bucket,
        )
        for row, key, text, at, effect, slot in zip(
            rows.column(ROW_COLUMN).to_pylist(),
            zip(*values, strict=True),
            _hashes(dataset, rows),
            found,
            effects,
            slots,
            strict=True,
        )
    ]


def _effect(batch: _Batch, op: int, *, live: bool) -> WriteEffect:
    return effect_of(
        batch.operation,
        op,
        live=live,
        drop_duplicates=batch.options.drop_duplicates,
        quarantine=batch.options.on_error is OnError.QUARANTINE,
    )


def _live_row(files: Sequence[DataFile], at: LiveKey) -> LiveRow:
    file = None if at.file is None else files[at.file].path
    return LiveRow(version=at.version, offset=at.offset, file=file, position=at.position)


def _hashes(dataset: DatasetDefinition, rows: pa.Table) -> list[str | None]:
    if dataset.bucket.function is BucketFunction.MOD:
        return [None] * rows.num_rows
    return [f"{number:016x}" for number in hash_keys(encode_keys(rows, dataset.bucket_key)).tolist()]


def _slots(
    task: MergeTask,
    batch: _Batch,
    rows: pa.Table,
    found: Sequence[LiveKey | None],
    effects: Sequence[WriteEffect],
    storing: Storing,
) -> list[Slot | None]:
    """Where each row would be stored; None where none is, where compaction decides that, or where nothing says."""
    slots: list[Slot | None] = [None] * rows.num_rows
    dataset = task.dataset
    if storing in (Storing.LOG, Storing.POSTPONE) and dataset.bucket.target_rows is not None:
        return slots
    former = np.array([-1 if at is None or at.file is None else at.file for at in found], dtype=np.int64)
    stored = np.array([effect in _STORED for effect in effects])
    if dataset.bucket.mode is BucketMode.KEY_DYNAMIC and (batch.keys_only or dataset.merge_mode in _STAYING):
        stays = stored & (former >= 0)
        for number in np.flatnonzero(stays):
            slots[number] = task.files[int(former[number])].slot
        # A key alone does not say in which partition its row would be.
        stored &= ~stays & (not batch.keys_only)
    numbered = rows.append_column(_NUMBER, pa.array(np.arange(rows.num_rows))).filter(pa.array(stored))
    placement = Placement(dataset, task.slot, task.files)
    for slot, part in placement.split(numbered, former[stored]):
        for number in part.column(_NUMBER).to_pylist():
            slots[number] = slot
    return slots


_NUMBER: Final = "_hw_number"
_STORED: Final = (WriteEffect.INSERT, WriteEffect.MERGE, WriteEffect.REPLACE)
# Modes in which a row that comes with another partition stays where the first one was.
_STAYING: Final = (MergeMode.FIRST, MergeMode.PARTIAL, MergeMode.AGGREGATE)


def _reason(dataset: DatasetDefinition, storing: Storing, *, scoped: bool) -> str:
    """Why it is stored so, in a sentence."""
    table_type, producer = dataset.table_type.value, dataset.changelog.producer
    match storing:
        case Storing.APPEND:
            return "the dataset has no record key: rows go to new files and meet nothing"
        case Storing.POSTPONE:
            return "bucket mode postpone: rows stay unseen until compaction gives them a bucket"
        case Storing.LOG:
            deferred = "" if producer is not ChangelogProducer.DEFERRED else " and told"
            return f"{table_type} with changelog.producer {producer.value}: rows are merged{deferred} later, by key"
        case Storing.MARK:
            return (
                f"{table_type} with changelog.producer full: old rows are found by key and marked as deleted"
            )
        case Storing.REWRITE if scoped and table_type == "merge_on_read":
            return "the write takes out rows that it does not name, and the group has logs: all is merged at once"
        case Storing.REWRITE:
            return f"{table_type}: files with rows that change are written anew"
