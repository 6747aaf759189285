"""How the columns of a Parquet file are encoded and compressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from app.format.dataset import DatasetDefinition, FileCompression

# What the offsets of texts alone take in memory, and in a column chunk without a dictionary.
_OFFSET_BYTES: Final = 4
_SCHEMAS_MAX: Final = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """How the files of a dataset, or other files, are stored. `unique_columns` never repeat a value."""

    unique_columns: tuple[str, ...] = ()
    compression: FileCompression = FileCompression.ZSTD

    @classmethod
    def of(cls, dataset: DatasetDefinition) -> Encoding:
        """The encoding of data files and changelog files."""
        return cls(unique_columns=unique_columns(dataset), compression=dataset.compression)


def unique_columns(dataset: DatasetDefinition) -> tuple[str, ...]:
    """Columns that never repeat a value: a key of one field."""
    key = dataset.record_key
    return key if len(key) == 1 and key[0] in dataset.schema.names() else ()


def dictionary_columns(schema: pa.Schema, unique: Sequence[str]) -> list[str]:
    """Columns whose values are likely to repeat.

    Measurements and wide numbers rarely repeat: a dictionary for them nearly doubles the time to write a file, and
    makes it larger (`make bench-upsert` writes such a table).
    """
    return [field.name for field in schema if field.name not in unique and not _seldom_repeats(field.type)]


@lru_cache(maxsize=_SCHEMAS_MAX)
def column_codecs(schema: pa.Schema, compression: FileCompression) -> dict[str, str]:
    """The codec of each column that has values, by its path in the file."""
    fast = compression is FileCompression.LZ4
    return {
        path: "lz4" if fast or pa.types.is_floating(kind) else "zstd"
        for field in schema
        for path, kind in _leaves(field.name, field.type)
    }


def stored_as_dictionary(parquet: pq.ParquetFile, name: str) -> bool:
    """Whether all values of a flat text column are in dictionaries: writers give up one that grows too large."""
    number = parquet.schema_arrow.get_field_index(name)
    kind = parquet.schema_arrow.field(number).type
    metadata = parquet.metadata
    if not pa.types.is_string(kind):
        return False
    places = [at for at in range(metadata.num_columns) if metadata.schema.column(at).path == name]
    if len(places) != 1:
        # A member `b` of a struct `a` has the path of a column `a.b`.
        return False
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(places[0])
        if not chunk.has_dictionary_page or chunk.total_uncompressed_size > _OFFSET_BYTES * chunk.num_values:
            return False
    return True


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns of a Parquet file that hold the values of a column of this type."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    else:
        yield path, kind


def _seldom_repeats(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_timestamp(kind) or pa.types.is_int64(kind)
