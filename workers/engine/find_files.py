"""Which files of a group a write has to read: the index of the dataset answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.files.key_index_file import read_index
from app.lake.compaction_plan import is_small
from app.lake.dataset import IndexType
from app.lake.file_group import DataFile
from app.lake.filters.prune import may_match
from app.lake.key_hash import hash_keys
from app.lake.key_index import BloomFilter
from app.lake.record_key import encode_keys
from app.lake.write_plan import MergeTask
from workers.engine.task_files import TaskFiles


def files_to_read(files: TaskFiles, hashes: np.ndarray) -> list[int]:
    """Numbers of the base files that may hold a touched row. `hashes`: of the incoming keys (uint64, unique).

    With the bucket index that is every file of the bucket. A new key needs a place too, so a file that is small still
    is read, and written again with the new rows.
    """
    task = files.task
    if len(files.base) < 2 or not task.dataset.keyed:
        return [number for number in files.base if _in_scope(task, task.files[number]) or len(hashes)]
    return [
        number
        for number in files.base
        if _in_scope(task, task.files[number])
        or (len(hashes) and (is_small(task.dataset, task.files[number]) or _holds_any(files, number, hashes)))
    ]


def _in_scope(task: MergeTask, file: DataFile) -> bool:
    """Whether a row of the file may be in the scope of the write."""
    scope = task.scope
    if scope is None:
        return False
    if scope.partitions is not None and file.slot.partition_path not in scope.partitions:
        return False
    return scope.where is None or may_match(scope.where, file.statistics, task.dataset.schema, file.row_count)


def _holds_any(files: TaskFiles, number: int, hashes: np.ndarray) -> bool:
    """Whether the file may hold one of the keys."""
    file = files.task.files[number]
    match files.task.dataset.index:
        case IndexType.SIMPLE:
            return _scan_finds(files, number, hashes)
        case IndexType.BLOOM | IndexType.RECORD if file.index_file is not None:
            index = read_index(files.place.storage, file.index_file)
            if isinstance(index, BloomFilter):
                return bool(index.may_contain(hashes).any())
            return len(index.probe(hashes)[0]) > 0
        case _:
            return True


def _scan_finds(files: TaskFiles, number: int, hashes: np.ndarray) -> bool:
    wanted = pa.array(hashes)
    return any(
        pc.any(pc.is_in(pa.array(found), value_set=wanted)).as_py() for found in _hashes(files, [number])
    )


def _hashes(files: TaskFiles, numbers: Sequence[int]) -> Iterator[np.ndarray]:
    dataset = files.task.dataset
    declared = dataset.schema.to_arrow()
    schema = pa.schema([declared.field(name) for name in dataset.record_key])
    for block in files.place.slices.blocks(files.task.files, schema, numbers):
        yield hash_keys(encode_keys(block.rows, dataset.record_key))
