"""The input and output files of a task on one file group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.infra.files.data_sink import ChangelogSink, ChangesSection, DataSink
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.lookups.file_finder import FileFinder
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.lookups.lookup import KeyLookup
from app.infra.files.ordered_sink import OrderedSink, curve_through
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.file_slice import Block, SliceReader
from app.infra.files.slices.incoming import Incoming, InScope, incoming_schema
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.slice_merge import row_hashes
from app.infra.files.slices.tombstone_set import TombstoneSet, found_by
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import Storage
from app.infra.identifiers import random_hex
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.dataset import BucketMode, DatasetDefinition, IndexType, TableType
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import DataFile, FileKind, IndexKind, Slot
from app.kernel.format.halving import inside
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.paths import Folder, written_path
from app.kernel.format.rows.kept_fields import KEPT_COLUMN
from app.kernel.format.rows.meta_columns import stored_schema
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from app.kernel.format.rows.tombstones import tombstone_schema
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.prune import RowFilter

# Segments of many small batches are read at once.
_STEP_ROWS: Final = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResources:
    """The resources of this process and this machine for a task."""

    storage: Storage
    memory: MemoryBudget
    slices: SliceReader
    lookup: KeyLookup

    @classmethod
    def on(cls, storage: Storage, memory: MemoryBudget, hot: HotFolder | None = None) -> TaskResources:
        """Readers that are shared by many tasks: files never change, so their caches stay valid."""
        reader, vectors = ParquetReader(storage), VectorReader(storage)
        return cls(
            storage=storage,
            memory=memory,
            slices=SliceReader(reader, vectors),
            lookup=KeyLookup(storage, reader, vectors, hot),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskFiles:
    """The input and the output of one merge task.

    `section`: the section of a shared changelog file for its changes. `select`: what is merged of the staged rows,
    which it gets in tables of one write each.
    """

    task: MergeTask
    resources: TaskResources
    section: ChangesSection | None = None
    select: Callable[[Iterator[pa.Table]], Iterator[pa.Table]] = iter

    @property
    def live_rows(self) -> int:
        """The greatest possible number of rows in the group."""
        return sum(file.live_rows for file in self.task.files if file.kind.holds_rows)

    @property
    def base(self) -> list[int]:
        """Numbers of the files with rows of the table."""
        return [at for at, file in enumerate(self.task.files) if file.kind is FileKind.BASE]

    @property
    def pending(self) -> list[DataFile]:
        """Logs, and writes without a bucket yet, in the order of their commits."""
        return [file for file in self.task.files if file.kind.is_pending]

    def tombstones(self) -> TombstoneSet:
        """The tombstones of the group; of one that is halved, those of the task's part."""
        task = self.task
        schema = tombstone_schema(task.dataset)
        return TombstoneSet(
            task.dataset,
            task.files,
            lambda numbers: self._own_blocks(self.resources.slices.blocks(task.files, schema, numbers)),
            None if task.divides else found_by(self.resources.lookup, task.dataset),
        )

    def blocks(self, numbers: Sequence[int], row_filter: RowFilter | None = None) -> Iterator[Block]:
        """Live rows of these files; with `row_filter`, row groups without matches may be omitted. Raises CorruptFile.

        Of a group that is halved, those of the task's part.
        """
        schema = stored_schema(self.task.dataset)
        return self._own_blocks(self.resources.slices.blocks(self.task.files, schema, numbers, row_filter))

    def _own_blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        task = self.task
        for block in blocks:
            own = block.at(inside(block.rows, task.dataset, task.slot)) if task.divides else block
            if own.rows.num_rows:
                yield own

    def touched(self, hashes: np.ndarray) -> list[int]:
        """Numbers of the base files that may have a touched row.

        `hashes`: of the incoming keys, or of the rows that are retracted by value (uint64, unique).
        """
        task = self.task
        if task.divides:
            return self.base
        if (task.scope is None or task.by_value) and not len(hashes):
            return []
        if task.by_value:
            return [number for number in self.base if self._may_equal(number, hashes)]
        finder = FileFinder(self.resources.storage, self.resources.slices)
        answers = finder.answers(task.dataset, task.files, hashes, scope=task.scope)
        return [number for number, answer in answers.items() if answer.read]

    def _may_equal(self, number: int, hashes: np.ndarray) -> bool:
        """Whether a row of the file has one of the hashes of whole rows: only files that lose rows are rewritten."""
        hashes_of, hash_array = row_hashes(self.task.dataset), pa.array(hashes)
        return any(
            pc.any(pc.is_in(pa.array(hashes_of(block.rows)), value_set=hash_array)).as_py()
            for block in self.blocks([number])
        )

    def incoming(self) -> Incoming:
        """The rows of the grouped writes, and the scope of a write that runs alone."""
        return Incoming(
            tables=self.select(self._staged()),
            intents=self.task.intents,
            rows=sum(segment.rows for segment in self.task.segments),
            in_scope=None if self.task.by_value else self._in_scope(),
            by_value=self.task.by_value,
        )

    def _staged(self) -> Iterator[pa.Table]:
        """Staged rows in order of acceptance, those of one key also within a write, in batches.

        Raises CorruptFile, InvalidRequest.
        """
        store = StagedFileStore(self.resources.storage)
        for segment in self.task.segments:
            whole = segment.rows <= _STEP_ROWS
            for batches in [segment.batch_indices] if whole else [[index] for index in segment.batch_indices]:
                operation = self.task.intents[segment.job].operation
                rows = store.read(segment.file, batches, self.task.dataset, operation)
                rows = self._own(rows, {segment.file.batches[index].slot for index in batches})
                if rows.num_rows == 0:
                    continue
                job = pa.repeat(pa.scalar(segment.job, pa.int32()), rows.num_rows)
                rows = rows.append_column(pa.field(JOB_COLUMN, pa.int32(), nullable=False), job)
                schema = incoming_schema(self.task.dataset, with_kept_fields=KEPT_COLUMN in rows.column_names)
                rows = rows.select(schema.names).cast(schema)
                self._refuse_outside(rows)
                yield rows

    def _own(self, rows: pa.Table, slots: Collection[Slot]) -> pa.Table:
        """The rows of the task's bucket. `slots`: the buckets that they are staged in, which may be larger."""
        slot = self.task.slot
        if all((each.of or 1) >= (slot.of or 1) for each in slots):
            return rows
        return rows.filter(pa.array(inside(rows, self.task.dataset, slot)))

    def _refuse_outside(self, rows: pa.Table) -> None:
        """Raises InvalidRequest for an overwrite's row that does not match its filter: a repeated write would duplicate
        it.
        """
        scope = self.task.scope
        if scope is None or scope.where is None:
            return
        outside = np.flatnonzero(~matches(scope.where, rows))
        if len(outside):
            row = rows.column(ROW_COLUMN)[int(outside[0])].as_py()
            detail = f"row {row} does not match the filter of the overwrite: {scope.where.text}"
            raise InvalidRequest(detail, [FieldError(pointer=f"/source/rows/{row}", detail=detail)])

    def _in_scope(self) -> InScope | None:
        scope = self.task.scope
        if scope is None:
            return None

        def of(block: Block) -> np.ndarray:
            inside = np.ones(block.rows.num_rows, dtype=bool)
            if scope.partitions is not None and self.task.dataset.bucket.mode is BucketMode.KEY_DYNAMIC:
                codes, paths = partition_codes(block.rows, self.task.dataset.partition_by)
                inside &= np.array([scope.has_partition(path) for path in paths], dtype=bool)[codes]
            else:
                inside &= scope.has_partition(self.task.slot.partition_path)
            if scope.where is not None:
                inside &= matches(scope.where, block.rows)
            return inside

        return of

    def path(self, folder: Folder, slot: Slot) -> str:
        """A new path for a file of this attempt."""
        return written_path(self.task.data_prefix, folder, slot, self.task.attempt, random_hex(4))

    def data_sink(self, kind: FileKind = FileKind.BASE, schema: pa.Schema | None = None) -> DataSink:
        """The sink of data files."""
        by = self.task.cluster
        return DataSink(
            self.resources.storage,
            self.task.dataset,
            file_group=self.task.file_group,
            path_of=self.path,
            schema=schema or stored_schema(self.task.dataset),
            kind=kind,
            index=_index_kind(self.task.dataset, kind),
            copies=self.resources.lookup.copies
            if kind is FileKind.BASE and marks_rows(self.task.dataset)
            else None,
            # Tombstones are not in this order.
            clustered_by=by.mark(self.task.dataset.schema) if by and kind is FileKind.BASE else None,
        )

    def ordered_sink(self) -> DataSink | OrderedSink:
        """The sink of base files, in the order of the task, if it has one. Raises CorruptFile."""
        by = self.task.cluster
        if by is None:
            return self.data_sink()
        schema = self.task.dataset.schema.to_arrow()
        curve = curve_through(self.resources.slices.reader, self.task.files, by, schema)
        return OrderedSink(self.data_sink(), by, curve, self.resources.memory)

    def changelog_sink(self) -> ChangelogSink | ChangesSection:
        """The sink of changes."""
        return self.changelog_file(self.task.file_group) if self.section is None else self.section

    def changelog_file(self, file_group: str) -> ChangelogSink:
        """The sink of a new changelog file."""
        return ChangelogSink(
            self.resources.storage,
            self.task.dataset,
            file_group=file_group,
            path_of=lambda: self.path(Folder.CHANGES, self.task.slot),
        )


def marks_rows(dataset: DatasetDefinition) -> bool:
    """Whether writes look up rows to mark them in deletion vectors."""
    return dataset.keyed and dataset.table_type is TableType.MERGE_ON_READ and dataset.looks_up


def _index_kind(dataset: DatasetDefinition, kind: FileKind) -> IndexKind | None:
    """The kind of key index of each file: with positions, where rows or tombstones are marked by position."""
    if not dataset.keyed or kind.is_pending:
        return None
    if kind is FileKind.TOMBSTONE or marks_rows(dataset) or dataset.index is IndexType.RECORD:
        return IndexKind.RECORD
    return IndexKind.BLOOM if dataset.index is IndexType.BLOOM else None
