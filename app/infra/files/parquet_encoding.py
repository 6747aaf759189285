"""How the columns of a Parquet file are encoded and compressed: by their types, and by a sample of their values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.kernel.format.file_format import FileCompression
from app.kernel.format.rows.changelog import OP_COLUMN

# A dictionary that grows to this size is given up: the default of pyarrow's writer.
_DICTIONARY_BYTES_MAX: Final = 1024 * 1024
# Of fewer and smaller rows, the contexts of zstd take several times as long to make as the rows to write or read.
_FEW_ROWS: Final = 128
_FEW_BYTES: Final = 256 * 1024
# Of fewer rows, whose columns are smaller on average, a sample takes as long as it saves.
_SAMPLED_ROWS_MIN: Final = 16 * 1024
_SAMPLED_COLUMN_BYTES_MIN: Final = 128 * 1024
# A sample has a value of this number of rows, between a least and a greatest number of values.
_SAMPLED_OF_ROWS: Final = 64
_SAMPLE_VALUES_MIN: Final = 64
_SAMPLE_VALUES_MAX: Final = 1024
# The largest share of the values of a row group that are different, if it is to have a dictionary.
_DISTINCT_SHARE_MAX: Final = 1 / 4
_BITS: Final = 64
# Shorter texts of one length are often alike in their beginnings, which zstd finds faster together with their lengths.
_LENGTH_MIN: Final = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnLayout:
    """How the columns of a file are stored. `encodings`, `codecs`: by the path of a column; others have the default."""

    dictionaries: list[str] = field(default_factory=list)
    encodings: dict[str, str] = field(default_factory=dict)
    codecs: dict[str, str] = field(default_factory=dict)

    def open(
        self, out: pa.NativeFile, schema: pa.Schema, metadata: list[pq.FileMetaData]
    ) -> pq.ParquetWriter:
        """A writer of a file, which adds the footer to `metadata` when it is closed."""
        levels = {path: 1 for path, codec in self.codecs.items() if codec == "zstd"}
        return pq.ParquetWriter(
            out,
            schema,
            compression=self.codecs or "snappy",
            compression_level=levels or None,
            use_dictionary=self.dictionaries or False,
            column_encoding=self.encodings or None,
            write_statistics=True,
            metadata_collector=metadata,
        )


def column_layout(rows: pa.Table, compression: FileCompression) -> ColumnLayout:
    """The layout of a file that begins with these rows.

    A column whose values repeat has a dictionary, unless integers, dates or times are as small without. These are then
    stored as differences, and texts and bytes of one length without their lengths, if zstd compresses them. Without a
    sample, nothing counts as repeated. The operation of changes always has a dictionary, as Open Data Fabric
    recommends.
    """
    if rows.num_rows <= _FEW_ROWS and rows.nbytes <= _FEW_BYTES:
        return ColumnLayout(dictionaries=[name for name in rows.column_names if name == OP_COLUMN])
    layout = ColumnLayout(codecs=_codecs_of_members(rows.schema, compression))
    members = frozenset(layout.codecs)
    has_sample = _is_sampled(rows)
    for name, column in _flat_columns(rows):
        number = _is_number(column.type)
        codec = layout.codecs[name] = "lz4" if number or compression is FileCompression.LZ4 else "zstd"
        if name in members or pa.types.is_boolean(column.type):
            # A member `b` of a struct `a` has the path of a column `a.b`.
            continue
        values = _sample(column) if has_sample else None
        if name == OP_COLUMN or (values is not None and _is_smaller_as_dictionary(column, values)):
            layout.dictionaries.append(name)
        elif _is_integer(column.type):
            layout.encodings[name] = "DELTA_BINARY_PACKED"
        elif codec == "zstd" and values is not None and _have_one_length(values):
            layout.encodings[name] = "DELTA_LENGTH_BYTE_ARRAY"
    return layout


def repeating_columns(rows: pa.Table) -> list[str]:
    """The columns without members that are smaller with a dictionary."""
    if not _is_sampled(rows):
        return []
    return [
        name for name, column in _flat_columns(rows) if _is_smaller_as_dictionary(column, _sample(column))
    ]


def stored_as_dictionaries(parquet: pq.ParquetFile, names: Collection[str]) -> set[str]:
    """Those of the columns that are flat texts, all of whose values are in dictionaries.

    Writers give up a dictionary that grows too large.
    """
    metadata = parquet.metadata
    # A member `b` of a struct `a` has the path of a column `a.b`.
    paths = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    counts = Counter(paths)
    texts = {field.name for field in parquet.schema_arrow if pa.types.is_string(field.type)}
    places = [
        (at, path) for at, path in enumerate(paths) if path in texts and path in names and counts[path] == 1
    ]
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return {path for at, path in places if all(_has_whole_dictionary(group.column(at)) for group in groups)}


def _has_whole_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    return bool(chunk.has_dictionary_page and chunk.total_uncompressed_size < _DICTIONARY_BYTES_MAX)


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


def _flat_columns(rows: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if not pa.types.is_nested(column.type):
            yield name, column


def _codecs_of_members(schema: pa.Schema, compression: FileCompression) -> dict[str, str]:
    """The codec of each column of the file that holds values of members, by its path."""
    fast = compression is FileCompression.LZ4
    return {
        path: "lz4" if fast or pa.types.is_floating(kind) else "zstd"
        for each in schema
        if pa.types.is_nested(each.type)
        for path, kind in _leaves(each.name, each.type)
    }


def _is_number(kind: pa.DataType) -> bool:
    """Whether Parquet stores the values as floats or integers, which hardly shrink by zstd once they are encoded."""
    return pa.types.is_floating(kind) or _is_integer(kind)


def _is_integer(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _is_sampled(rows: pa.Table) -> bool:
    return bool(
        rows.num_rows >= _SAMPLED_ROWS_MIN or rows.nbytes >= _SAMPLED_COLUMN_BYTES_MIN * rows.num_columns
    )


def _sample(column: pa.ChunkedArray) -> pa.Array:
    """Values of the whole column, evenly spaced, without nulls."""
    count = min(max(len(column) // _SAMPLED_OF_ROWS, _SAMPLE_VALUES_MIN), _SAMPLE_VALUES_MAX)
    # With an even step, rows that alternate would seem alike, such as those of four sensors in turn.
    step = -(-len(column) // count) | 1
    parts, first = [pa.array([], column.type)], 0
    for chunk in column.chunks:
        places = np.arange(first, len(chunk), step)
        if len(places):
            parts.append(chunk.take(pa.array(places)))
        first = (first - len(chunk)) % step
    return pa.concat_arrays(parts).drop_null()


def _is_smaller_as_dictionary(column: pa.ChunkedArray, sample: pa.Array) -> bool:
    if not len(sample):
        # Later row groups may have values, which seldom repeat in numbers.
        return not _is_number(column.type)
    count = len(column) - column.null_count
    distinct = _distinct_values(sample)
    if distinct > _DISTINCT_SHARE_MAX * count:
        return False
    if not _is_integer(column.type):
        return True
    ends = pc.min_max(sample.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())).as_py()
    # Numbers into the dictionary, and the dictionary, against differences.
    return math.log2(distinct) + _BITS * distinct / count < math.log2(ends["max"] - ends["min"] + 1)


def _distinct_values(sample: pa.Array) -> float:
    """The number of different values in the column of a sample, as Chao (1984) estimates it.

    It is infinite if no value of the sample repeats.
    """
    counts = pc.value_counts(sample).field("counts").to_numpy()
    if len(counts) == len(sample):
        return math.inf
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return len(counts) + once * (once - 1) / (2 * (twice + 1))


def _have_one_length(sample: pa.Array) -> bool:
    if not (pa.types.is_string(sample.type) or pa.types.is_binary(sample.type)):
        return False
    lengths = pc.min_max(pc.binary_length(sample))
    shortest, longest = lengths["min"].as_py(), lengths["max"].as_py()
    return shortest is not None and _LENGTH_MIN <= shortest == longest
