"""Explanations: which files a write would touch, and why, without running it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.name_winner import NameWinner
from app.features.writes.explanation import BucketRule, ExplainedFile, ExplainedGroup, WriteExplanation
from app.features.writes.service.accept import checked_write
from app.features.writes.service.explained_batch import ExplainedBatch, batch_of, explained_keys
from app.features.writes.service.plan import intent_of, least_commit_time
from app.features.writes.service.touched_files import touched_files
from app.features.writes.values import Body, IncomingWrite
from app.infra.files.lookups.key_search import KeySearch
from app.kernel.codecs.json.json_rows import decode_json_rows
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.commit.storing import Storing, storing_of
from app.kernel.commit.write_options import OnError, WriteOptions
from app.kernel.commit.write_plan import MergeTask, plan_merge
from app.kernel.commit.write_scope import has_scope, is_no_op, scope_of
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import DataExists, FieldError, InvalidRequest
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.index_answer import FileAnswer
from app.kernel.format.index.live_key import LiveKey
from app.kernel.format.operation import Operation, input_schema
from app.kernel.format.partition.members import key_fields, with_key_members
from app.kernel.format.rows.record_key import encode_keys
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits

KEYS_MAX: Final = 100
ROWS_MAX: Final = 1_000
GROUPS_SHOWN_MAX: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainWrite:
    """Plans writes as workers do, with the same indexes."""

    timeline: VersionReader
    winners: NameWinner
    search: KeySearch
    limits: RowLimits = DEFAULT_LIMITS

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
        fields = with_key_members(definition.schema, definition.record_key).select(key_fields(definition))
        keys = decode_json_rows(f"[{','.join(texts)}]".encode(), fields, pointer="/key")
        rows = pa.table(
            {
                field.name: keys.column(field.name)
                if field.name in keys.column_names
                else pa.nulls(keys.num_rows, field.type)
                for field in definition.schema.to_arrow()
            }
        )
        return self._explained(
            dataset, batch_of(definition, Operation.UPSERT, WriteOptions(), rows, keys_only=True)
        )

    def write(self, dataset: Dataset, incoming: IncomingWrite) -> WriteExplanation:
        """What a write would touch; rows it brings are in its JSON. Records that would be quarantined are left out.

        Raises what accepting the write would, CommitConflict and DataExists if it could not commit now, CorruptFile.
        """
        definition = dataset.definition
        incoming = checked_write(incoming, dataset)
        expected_version = incoming.options.expected_version
        self.winners.check_version(dataset.tenant_id, dataset.id, expected_version, dataset.version)
        if incoming.options.merge_schema:
            detail = "rows are explained under the dataset's own schema: change that first"
            raise InvalidRequest(
                f"merge_schema: {detail}", [FieldError(pointer="/merge_schema", detail=detail)]
            )
        match incoming.source:
            case None:
                rows = definition.schema.to_arrow().empty_table()
            case Body(content=bytes() as text, in_envelope=True):
                bad_records = (
                    BadRecords(write=_discard) if incoming.options.on_error is OnError.QUARANTINE else None
                )
                rows = decode_json_rows(
                    text,
                    input_schema(incoming.operation, definition),
                    bad_records=bad_records,
                    limits=self.limits,
                )
            case _:
                detail = "an explanation reads rows that are in the request only: kind 'rows'"
                raise InvalidRequest(f"source: {detail}", [FieldError(pointer="/source/kind", detail=detail)])
        if rows.num_rows > ROWS_MAX:
            detail = f"at most {ROWS_MAX} rows are explained, not {rows.num_rows}: send a sample"
            raise InvalidRequest(detail, [FieldError(pointer="/source/rows", detail=detail)])
        return self._explained(dataset, batch_of(definition, incoming.operation, incoming.options, rows))

    def _explained(self, dataset: Dataset, batch: ExplainedBatch) -> WriteExplanation:
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

    def _tasks(self, dataset: Dataset, batch: ExplainedBatch) -> list[MergeTask]:
        """The tasks that the write would take at this version."""
        definition, staged_files = dataset.definition, batch.staged(dataset.definition)
        if has_scope(batch.operation, batch.options, definition):
            live = self.timeline.live_files(dataset.tenant_id, dataset.id, dataset.version, None)
        else:
            live = touched_files(self.timeline, dataset, dataset.version, {0: staged_files})
        holds_rows = any(file.live_rows for file in live if file.kind.holds_rows)
        try:
            if is_no_op(batch.options, holds_rows=holds_rows, version=dataset.version):
                return []
        except DataExists as error:
            raise self.winners.named(dataset.tenant_id, dataset.id, error) from None
        committed_at = least_commit_time(self.timeline, dataset, live)
        intent = intent_of(batch.operation, batch.options, definition, committed_at)
        return plan_merge(
            definition,
            {0: staged_files},
            {0: intent},
            live,
            scope=scope_of(batch.operation, batch.options, definition, staged_files, live),
            attempt="new",
            data_prefix="",
        )

    def _group(self, task: MergeTask, batch: ExplainedBatch) -> ExplainedGroup:
        dataset = task.dataset
        pending = any(file.kind.is_pending for file in task.files)
        storing = storing_of(dataset, has_scope=task.scope is not None, pending=pending, divides=task.divides)
        rows = batch.rows_of(task) if task.segments else None
        keys = encode_keys(rows, dataset.record_key) if rows is not None and dataset.keyed else _NO_KEYS
        if task.divides or (
            pending and (storing is Storing.REWRITE or _searches_logs(storing, batch.operation))
        ):
            answers = dict.fromkeys(range(len(task.files)), FileAnswer.MERGED)
        else:
            answers = self.search.answers(dataset, task.files, keys, task.scope, storing)
        live = self.search.live(dataset, task.files, keys) if len(keys) else {}
        tombstones = self.search.tombstones(dataset, task.files, keys) if len(keys) else {}
        files = tuple(_file(file, answers.get(number)) for number, file in enumerate(task.files))
        return ExplainedGroup(
            file_group=task.file_group,
            partition_path=task.slot.partition_path,
            number=task.slot.bucket,
            rows=0 if rows is None else rows.num_rows,
            storing=storing,
            reason=_reason(task, storing),
            files=files,
            rewritten_bytes=sum(file.size_bytes for file in files if _is_rewritten(storing, file)),
            marked_files=tuple(_marked(task, storing, answers, live.values())),
            keys=()
            if rows is None or not dataset.keyed
            else tuple(explained_keys(task, batch, rows, keys, live, tombstones, storing)),
        )


def _discard(_: Sequence[BadRecord]) -> None:
    """Ignores quarantined records, since nothing is written."""


_NO_KEYS: Final = pa.chunked_array([pa.array([], pa.large_binary())])


def _check_object(text: str) -> None:
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise _no_object() from None


def _no_object() -> InvalidRequest:
    detail = 'expected a JSON object of the key fields, such as {"id": 1}'
    return InvalidRequest(f"key: {detail}", [FieldError(pointer="/key", detail=detail)])


def _searches_logs(storing: Storing, operation: Operation) -> bool:
    """Whether rows are stored in a log, but must not have live keys."""
    return storing is Storing.LOG and operation.refuses_live_keys


def _file(file: DataFile, answer: FileAnswer | None) -> ExplainedFile:
    answer = answer or FileAnswer.NOT_CONSULTED
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


def _is_rewritten(storing: Storing, file: ExplainedFile) -> bool:
    """Whether the write rewrites the file: where it marks old rows, only if the file is small."""
    if storing is Storing.MARK:
        return file.answer is FileAnswer.SMALL
    return storing is Storing.REWRITE and file.read


def _marked(
    task: MergeTask, storing: Storing, answers: Mapping[int, FileAnswer], live: Iterable[LiveKey]
) -> list[str]:
    """The files that lose rows to a deletion vector, as far as keys show."""
    if storing is not Storing.MARK:
        return []
    numbers = {key.file for key in live if key.file is not None}
    return [
        task.files[number].path for number in sorted(numbers) if answers.get(number) is not FileAnswer.SMALL
    ]


def _reason(task: MergeTask, storing: Storing) -> str:
    """The reason for the way of storing, as a sentence."""
    dataset = task.dataset
    table_type, producer = dataset.table_type.value, dataset.changelog.producer
    match storing:
        case Storing.APPEND:
            return "the dataset has no record key: rows are appended in new files"
        case Storing.POSTPONE:
            return "bucket mode postpone: rows are invisible until a compaction assigns their bucket"
        case Storing.LOG:
            suffix = "" if producer is not ChangelogProducer.DEFERRED else " and emitted"
            return f"{table_type} with changelog.producer {producer.value}: rows are merged{suffix} later, by key"
        case Storing.MARK:
            return (
                f"{table_type} with changelog.producer full: old rows are found by key and marked as deleted; "
                "small files are rewritten"
            )
        case Storing.REWRITE if task.divides:
            return (
                "the bucket would have too many rows or bytes: it is halved, and its rows move to the parts"
            )
        case Storing.REWRITE if task.scope is not None and table_type == "merge_on_read":
            return "the write removes rows by a filter, and the group has logs: all of them are merged now"
        case Storing.REWRITE:
            return f"{table_type}: files with rows that change are rewritten"
