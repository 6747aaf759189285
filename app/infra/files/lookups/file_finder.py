"""Finds the files of a group that a write must read, with the index of the dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.infra.files.lookups.key_index_file import read_index
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.storage import Storage
from app.kernel.commit.small_files import small_files_to_rewrite
from app.kernel.commit.storing import Storing
from app.kernel.commit.write_plan import WriteScope
from app.kernel.format.dataset import DatasetDefinition, IndexType
from app.kernel.format.file_group import DataFile, FileKind, IndexFile
from app.kernel.format.index.index_answer import FileAnswer
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.index.key_index import BloomFilter
from app.kernel.format.partition.members import key_fields
from app.kernel.format.rows.record_key import encode_keys
from app.kernel.sql.conditions.prune import may_match


@dataclass(frozen=True, slots=True)
class FileFinder:
    """Queries the index of a dataset."""

    storage: Storage
    slices: SliceReader

    def answers(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        hashes: np.ndarray,
        *,
        scope: WriteScope | None = None,
        storing: Storing = Storing.REWRITE,
    ) -> dict[int, FileAnswer]:
        """For the base files of a group, by number, whether each may have a row that is touched, and why.

        `hashes`: of the incoming keys (uint64, unique). `scope`: the rows that the write retracts besides. Some small
        files are rewritten with the new rows, whatever keys they have. Where old rows are marked, they are found by
        position, and no other files are rewritten. Raises CorruptFile.
        """
        base = [number for number, file in enumerate(files) if file.kind is FileKind.BASE]
        small = frozenset(small_files_to_rewrite(dataset, files, len(hashes)))
        if storing is Storing.MARK and scope is None:
            return {
                number: FileAnswer.SMALL
                if number in small
                else self._by_index(dataset, files, number, hashes)
                for number in base
            }
        if storing not in (Storing.REWRITE, Storing.MARK):
            return dict.fromkeys(base, FileAnswer.NOT_CONSULTED)
        return {number: self._answer(dataset, files, number, hashes, scope, small) for number in base}

    def _answer(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        number: int,
        hashes: np.ndarray,
        scope: WriteScope | None,
        small: Collection[int],
    ) -> FileAnswer:
        if _in_scope(scope, dataset, files[number]):
            return FileAnswer.IN_SCOPE
        if not len(hashes):
            return FileAnswer.OUT_OF_SCOPE
        if not dataset.keyed:
            return FileAnswer.ONLY
        if number in small:
            return FileAnswer.SMALL
        if dataset.index is IndexType.BUCKET:
            return FileAnswer.OF_BUCKET
        return self._by_index(dataset, files, number, hashes)

    def _by_index(
        self, dataset: DatasetDefinition, files: Sequence[DataFile], number: int, hashes: np.ndarray
    ) -> FileAnswer:
        """Whether the file may have one of the keys."""
        index_file = files[number].index_file
        if index_file is not None:
            return self._by_index_file(index_file, hashes)
        return self._by_scan(dataset, files, number, hashes)

    def _by_index_file(self, file: IndexFile, hashes: np.ndarray) -> FileAnswer:
        index = read_index(self.storage, file)
        if isinstance(index, BloomFilter):
            possible = bool(index.may_contain(hashes).any())
            return FileAnswer.BLOOM_MAY_HOLD if possible else FileAnswer.BLOOM_HOLDS_NONE
        has_record = len(index.probe(hashes)[0]) > 0
        return FileAnswer.RECORD_FOUND if has_record else FileAnswer.RECORD_FOUND_NONE

    def _by_scan(
        self, dataset: DatasetDefinition, files: Sequence[DataFile], number: int, hashes: np.ndarray
    ) -> FileAnswer:
        incoming_hashes = pa.array(hashes)
        for file_hashes in self._hashes(dataset, files, [number]):
            if pc.any(pc.is_in(pa.array(file_hashes), value_set=incoming_hashes)).as_py():
                return FileAnswer.SCAN_FOUND
        return FileAnswer.SCAN_FOUND_NONE

    def _hashes(
        self, dataset: DatasetDefinition, files: Sequence[DataFile], numbers: Sequence[int]
    ) -> Iterator[np.ndarray]:
        arrow_schema = dataset.schema.to_arrow()
        schema = pa.schema([arrow_schema.field(name) for name in key_fields(dataset)])
        for block in self.slices.blocks(files, schema, numbers):
            yield hash_keys(encode_keys(block.rows, dataset.record_key))


def _in_scope(scope: WriteScope | None, dataset: DatasetDefinition, file: DataFile) -> bool:
    """Whether a row of the file may be in the scope of the write."""
    if scope is None:
        return False
    if scope.partitions is not None and file.slot.partition_path not in scope.partitions:
        return False
    return scope.where is None or may_match(scope.where, file.statistics, dataset.schema, file.row_count)
