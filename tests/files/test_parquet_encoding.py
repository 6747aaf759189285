"""How columns are compressed, and texts that are read as the dictionaries that they are stored in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.files.parquet_encoding import Encoding
from app.files.parquet_file import ParquetReader, create_parquet
from app.files.storage import LocalStorage
from app.format.dataset import FileCompression
from app.format.file_group import StoredFile

_COUNT = 300


def _field(number: int, name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


_PAIR = pa.struct([pa.field("x", pa.float32()), pa.field("word", pa.string())])
_SCHEMA = pa.schema(
    [
        _field(1, "id", pa.string()),
        _field(2, "fare", pa.float64()),
        _field(3, "city", pa.string()),
        _field(4, "long", pa.string()),
        _field(5, "pairs", pa.list_(_PAIR)),
        _field(6, "scores", pa.map_(pa.string(), pa.list_(pa.float64()))),
        _field(7, "pair.word", pa.string()),
        _field(8, "pair", _PAIR),
        _field(9, "nothing", pa.string()),
    ]
)


def _rows(count: int) -> pa.Table:
    """`long` has values of 8 KiB that do not repeat: more than fit into a dictionary."""
    rows = [
        {
            "id": f"key-{at}",
            "fare": at / 4,
            "city": None if at % 7 == 0 else ["oslo", "rom"][at % 2],
            "long": f"{at:08}" * 1024,
            "pairs": [{"x": at, "word": "w"}],
            "scores": [("s", [at / 2])],
            "pair.word": "same",
            "pair": {"x": at, "word": f"other {at % 3}"},
            "nothing": None,
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _write(
    folder: Path, rows: pa.Table, compression: FileCompression = FileCompression.ZSTD
) -> tuple[LocalStorage, StoredFile]:
    encoding = Encoding(unique_columns=("id",), compression=compression)
    storage = LocalStorage(folder)
    with create_parquet(storage, "f", _SCHEMA, row_group_rows=_COUNT // 2, encoding=encoding) as sink:
        sink.write(rows)
        sink.finish()
    return storage, sink.stored(1)


def _codecs(file: Path) -> dict[str, str]:
    """The codec of each column of the second row group, by its path."""
    group = pq.read_metadata(file).row_group(1)
    return {group.column(at).path_in_schema: group.column(at).compression for at in range(group.num_columns)}


def test_floats_are_compressed_for_speed_and_all_else_for_size(tmp_path: Path) -> None:
    _write(tmp_path, _rows(_COUNT))
    codecs = _codecs(tmp_path / "f")
    floats = {"fare", "pairs.list.element.x", "scores.key_value.value.list.element", "pair.x"}
    assert {path for path, codec in codecs.items() if codec == "LZ4"} == floats
    assert set(codecs.values()) == {"LZ4", "ZSTD"}


def test_all_columns_are_compressed_for_speed_if_the_dataset_says_so(tmp_path: Path) -> None:
    rows = _rows(_COUNT)
    storage, stored = _write(tmp_path, rows, FileCompression.LZ4)
    assert set(_codecs(tmp_path / "f").values()) == {"LZ4"}
    assert ParquetReader(storage).read_slice(stored, _SCHEMA, 0, _COUNT).equals(rows)


def test_texts_that_repeat_are_read_as_dictionaries_with_the_same_values(tmp_path: Path) -> None:
    rows = _rows(_COUNT)
    storage, stored = _write(tmp_path, rows)
    reader = ParquetReader(storage)
    schema = reader.with_dictionaries(stored, _SCHEMA)
    encoded = {field.name for field in schema if pa.types.is_dictionary(field.type)}
    # Neither a key, nor a dictionary that was given up, nor a name that a member of a struct has as its path.
    assert encoded == {"city", "nothing"}
    for first, count in ((0, _COUNT), (3, 10), (140, 20), (160, 5), (_COUNT, 0)):
        found = reader.read_slice(stored, schema, first, count)
        assert found.schema.field("city").type == pa.dictionary(pa.int32(), pa.string())
        assert found.cast(_SCHEMA).equals(rows.slice(first, count))
        # A row group that is cached in one form is not returned in the other.
        assert reader.read_slice(stored, _SCHEMA, first, count).equals(rows.slice(first, count))


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_dictionaries_are_read_under_a_later_schema(tmp_path: Path, kind: pa.DataType) -> None:
    rows = _rows(_COUNT)
    storage, stored = _write(tmp_path, rows)
    reader = ParquetReader(storage)
    later = pa.schema([_field(3, "town", pa.string()), _field(10, "added", kind)])
    schema = reader.with_dictionaries(stored, later)
    assert [pa.types.is_dictionary(field.type) for field in schema] == [True, False]
    found = reader.read_slice(stored, schema, 0, _COUNT)
    assert found.column("town").to_pylist() == rows.column("city").to_pylist()
    assert found.column("added").null_count == _COUNT
