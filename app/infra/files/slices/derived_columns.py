"""The meta columns of rows that are derived from their file: the path of the partition, and the name of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from app.infra.files.slices.file_slice import Block
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.rows.meta_columns import FILE_NAME_FIELD, PARTITION_FIELD


def of_file(file: DataFile, count: int, schema: pa.Schema) -> dict[str, pa.Array]:
    """The derived columns of the schema for rows of a base file, by name."""
    texts = {PARTITION_FIELD.name: file.slot.partition_path, FILE_NAME_FIELD.name: _file_name(file)}
    return {name: _repeated(text, count) for name, text in texts.items() if name in schema.names}


def block_rows(
    block: Block, dataset: DatasetDefinition, files: Sequence[DataFile], schema: pa.Schema
) -> pa.Table:
    """The rows of a merged block. `files`: those of the group. `schema`: some of their columns, also derived ones."""
    file = files[block.file] if block.file >= 0 else None
    count = block.rows.num_rows
    derived_columns = {}
    if FILE_NAME_FIELD.name in schema.names:
        derived_columns[FILE_NAME_FIELD.name] = _repeated(None if file is None else _file_name(file), count)
    if PARTITION_FIELD.name in schema.names:
        derived_columns[PARTITION_FIELD.name] = _partitions(block.rows, dataset, file or files[0])
    return projected(block.rows, schema, derived_columns)


def projected(table: pa.Table, schema: pa.Schema, derived_columns: Mapping[str, pa.Array]) -> pa.Table:
    """The columns of the schema. `derived_columns`: those that the table does not have."""
    columns = [
        derived_columns[field.name]
        if field.name in derived_columns
        else table.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _partitions(rows: pa.Table, dataset: DatasetDefinition, file: DataFile) -> pa.Array:
    """The partitions of rows. `file`: the file of the rows, or any of the group for rows of a log."""
    if dataset.bucket.mode is not BucketMode.KEY_DYNAMIC:
        return _repeated(file.slot.partition_path, rows.num_rows)
    # A group has keys of several partitions, and its logs belong to no single partition.
    codes, paths = partition_codes(rows, dataset.partition_by)
    return pa.array(paths, PARTITION_FIELD.type).take(pa.array(codes))


def _file_name(file: DataFile) -> str:
    return file.path.rsplit("/", 1)[-1]


def _repeated(text: str | None, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)
