"""How columns are encoded and compressed, and texts that are read as the dictionaries that they are stored in."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.infra.files import parquet_encoding
from app.infra.files.parquet_encoding import column_layout, stored_as_dictionaries
from app.infra.files.parquet_file import ParquetReader, create_parquet
from app.infra.files.storage import LocalStorage
from app.kernel.format.file_format import FileCompression
from app.kernel.format.file_group import StoredFile
from app.kernel.format.rows.changelog import OP_FIELD

_COUNT = 300
_FEW = 100


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of a few hundred rows are sampled, too: all of their values."""
    monkeypatch.setattr(parquet_encoding, "_SAMPLED_ROWS_MIN", _FEW)
    monkeypatch.setattr(parquet_encoding, "_SAMPLE_VALUES_MIN", _COUNT)


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
    """`long` has 37 values of 32 KiB: more than fit into a dictionary."""
    rows = [
        {
            "id": f"key-{at}",
            "fare": at / 4,
            "city": None if at % 7 == 0 else ["oslo", "rom"][at % 2],
            "long": f"{at % 37:08}" * 4096,
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
    storage = LocalStorage(folder)
    with create_parquet(
        storage, "f", rows.schema, row_group_rows=_COUNT // 2, compression=compression
    ) as sink:
        sink.write(rows)
        sink.finish()
    return storage, sink.stored(1)


def _encodings(file: Path) -> dict[str, str]:
    """How each column is stored: `dictionary`, or the encoding of its values."""
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    return {
        column.path_in_schema: "dictionary"
        if column.has_dictionary_page
        else ", ".join(sorted({*column.encodings} - {"RLE"}))
        for column in columns
    }


def _codecs(file: Path) -> dict[str, str]:
    """The codec of each column of the second row group, by its path."""
    group = pq.read_metadata(file).row_group(1)
    return {group.column(at).path_in_schema: group.column(at).compression for at in range(group.num_columns)}


def test_numbers_are_compressed_for_speed_and_all_else_for_size(tmp_path: Path) -> None:
    _write(tmp_path, _rows(_COUNT))
    codecs = _codecs(tmp_path / "f")
    floats = {"fare", "pairs.list.element.x", "scores.key_value.value.list.element", "pair.x"}
    assert {path for path, codec in codecs.items() if codec == "LZ4"} == floats
    assert set(codecs.values()) == {"LZ4", "ZSTD"}


_TIMES = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=at) for at in range(_COUNT)]
_VALUES: list[tuple[str, pa.DataType, list[Any], str]] = [
    ("repeated text", pa.string(), [f"city {at % 9}" for at in range(_COUNT)], "dictionary"),
    ("different texts", pa.string(), [f"note {at * at}" for at in range(_COUNT)], "PLAIN"),
    ("uuids", pa.string(), [str(uuid.UUID(int=at)) for at in range(_COUNT)], "DELTA_LENGTH_BYTE_ARRAY"),
    ("digests", pa.binary(), [at.to_bytes(16, "big") for at in range(_COUNT)], "DELTA_LENGTH_BYTE_ARRAY"),
    ("repeated wide numbers", pa.int64(), [1 << 10 * (at % 6) for at in range(_COUNT)], "dictionary"),
    ("numbers", pa.int64(), [at * 7 for at in range(_COUNT)], "DELTA_BINARY_PACKED"),
    ("short numbers", pa.uint16(), list(range(_COUNT)), "DELTA_BINARY_PACKED"),
    ("times", pa.timestamp("us", "UTC"), _TIMES, "DELTA_BINARY_PACKED"),
    (
        "days",
        pa.date32(),
        [time.date() + dt.timedelta(at) for at, time in enumerate(_TIMES)],
        "DELTA_BINARY_PACKED",
    ),
    ("prices", pa.float64(), [at % 5 / 4 for at in range(_COUNT)], "dictionary"),
    ("measurements", pa.float32(), [at / 7 for at in range(_COUNT)], "PLAIN"),
    ("amounts", pa.decimal128(9, 2), [Decimal(at).scaleb(-2) for at in range(_COUNT)], "PLAIN"),
    ("flags", pa.bool_(), [at % 2 == 0 for at in range(_COUNT)], "PLAIN"),
    ("no numbers", pa.int64(), [None] * _COUNT, "DELTA_BINARY_PACKED"),
    ("no texts", pa.string(), [None] * _COUNT, "dictionary"),
]


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize(
    ("kind", "values", "expected"), [each[1:] for each in _VALUES], ids=[each[0] for each in _VALUES]
)
def test_encoding_follows_from_the_values(
    tmp_path: Path, kind: pa.DataType, values: list[Any], expected: str
) -> None:
    # A null between all values, and several chunks.
    values = [value for each in values for value in (each, None)]
    half = pa.array(values[:_COUNT], kind), pa.array(values[_COUNT:], kind)
    rows = pa.Table.from_arrays([pa.chunked_array(half)], schema=pa.schema([_field(1, "v", kind)]))
    storage, stored = _write(tmp_path, rows)
    assert _encodings(tmp_path / "f") == {"v": expected}
    assert ParquetReader(storage).read_slice(stored, rows.schema, 0, rows.num_rows).equals(rows)


@pytest.mark.parametrize("chunk_rows", [3, 1000, 50_000])
def test_the_whole_of_a_column_decides(chunk_rows: int) -> None:
    """Neither its first values do, nor its last ones."""
    different, wide = list(range(40_000)), [1 << 10 * (at % 6) for at in range(10_000)]
    for values, expected in (
        ([*different, *wide], []),
        ([*wide, *different], []),
        ([*wide[:100], *wide, *wide], ["v"]),
    ):
        chunks = [pa.array(values[at : at + chunk_rows]) for at in range(0, len(values), chunk_rows)]
        rows = pa.table({"v": pa.chunked_array(chunks)})
        assert column_layout(rows, FileCompression.ZSTD).dictionaries == expected


@pytest.mark.parametrize(
    ("distinct", "rows", "expected"),
    # A dictionary of as many values costs as much as it saves in a small row group.
    [(20_000, 131_072, True), (20_000, 32_768, False), (1_000, 32_768, True)],
)
def test_a_dictionary_is_for_values_that_repeat_in_a_row_group(
    distinct: int, rows: int, expected: bool
) -> None:
    numbers = np.random.default_rng(1).integers(0, distinct, rows)
    column = pa.array([f"rider {number:b}" for number in numbers])
    assert bool(column_layout(pa.table({"v": column}), FileCompression.ZSTD).dictionaries) is expected


def test_rows_that_alternate_are_sampled_alike() -> None:
    """Each 64th value is one of few, all others are different."""
    values = np.arange(65_536) * 1_000
    values[::64] = np.resize([1, 1 << 40, 1 << 50], len(values[::64]))
    layout = column_layout(pa.table({"v": values}), FileCompression.ZSTD)
    assert layout.encodings == {"v": "DELTA_BINARY_PACKED"}


def test_row_groups_of_large_rows_are_sampled() -> None:
    """They have few rows: their size is bounded."""
    count = 2_000
    wide = [1 << 10 * (at % 6) for at in range(count)]
    rows = pa.table({"long": [f"{at:02}" * 2_000 for at in range(count)], "wide": wide})
    assert column_layout(rows, FileCompression.ZSTD).dictionaries == ["wide"]
    assert column_layout(rows.select(["wide"]), FileCompression.ZSTD).dictionaries == []


def test_few_large_rows_are_compressed_for_size() -> None:
    rows = pa.table({"long": [f"{at:02}" * 10_000 for at in range(_FEW)]})
    assert column_layout(rows, FileCompression.ZSTD).codecs == {"long": "zstd"}
    assert column_layout(rows.slice(0, 3), FileCompression.ZSTD).codecs == {}


class _Counted:
    """An opened file that counts what is read of it."""

    def __init__(self, parquet: pq.ParquetFile) -> None:
        self._parquet = parquet
        self.counts: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.counts[name] += 1
        return getattr(self._parquet, name)


def test_dictionaries_of_many_columns_are_found_at_once(tmp_path: Path) -> None:
    """Each reading of the schema takes time for every column."""
    fields = [_field(at + 1, f"c{at}", pa.string()) for at in range(100)]
    storage, stored = _write(tmp_path, pa.Table.from_pylist([{}] * 3, schema=pa.schema(fields)))
    parquet = _Counted(ParquetReader(storage).open(stored))
    stored_as_dictionaries(cast(pq.ParquetFile, parquet), {field.name for field in fields})
    assert parquet.counts == {"schema_arrow": 1, "metadata": 1}


def test_a_column_with_the_path_of_a_member_of_another_type_is_written(tmp_path: Path) -> None:
    member = pa.struct([pa.field("b", pa.string())])
    schema = pa.schema([_field(1, "a.b", pa.int64()), _field(2, "a", member)])
    rows = pa.Table.from_pylist(
        [{"a.b": at, "a": {"b": f"word {at}"}} for at in range(_COUNT)], schema=schema
    )
    storage, stored = _write(tmp_path, rows)
    assert ParquetReader(storage).read_slice(stored, schema, 0, _COUNT).equals(rows)


@pytest.mark.parametrize(("count", "of_numbers"), [(_FEW, "PLAIN"), (_COUNT, "DELTA_BINARY_PACKED")])
def test_columns_of_few_rows_have_no_dictionary_but_the_operation(
    tmp_path: Path, count: int, of_numbers: str
) -> None:
    fields = [OP_FIELD, _field(1, "n", pa.int64()), _field(2, "city", pa.string())]
    values = [{"_hw_op": 0, "n": 1, "city": "oslo"}] * count
    rows = pa.Table.from_pylist(values, schema=pa.schema(fields))
    storage, stored = _write(tmp_path, rows)
    assert _encodings(tmp_path / "f") == {"_hw_op": "dictionary", "n": of_numbers, "city": "PLAIN"}
    assert ParquetReader(storage).read_slice(stored, rows.schema, 0, count).equals(rows)


def test_all_columns_are_compressed_for_speed_if_the_dataset_says_so(tmp_path: Path) -> None:
    rows = _rows(_COUNT)
    storage, stored = _write(tmp_path, rows, FileCompression.LZ4)
    assert set(_codecs(tmp_path / "f").values()) == {"LZ4"}
    assert ParquetReader(storage).read_slice(stored, _SCHEMA, 0, _COUNT).equals(rows)


@pytest.mark.usefixtures("sampled")
def test_texts_that_repeat_are_read_as_dictionaries_with_the_same_values(tmp_path: Path) -> None:
    rows = _rows(_COUNT)
    storage, stored = _write(tmp_path, rows)
    reader = ParquetReader(storage)
    schema = reader.opened(stored).with_dictionaries(_SCHEMA)
    encoded = {field.name for field in schema if pa.types.is_dictionary(field.type)}
    # Neither different texts, nor a dictionary that was given up, nor a name that a member of a struct has as its path.
    assert encoded == {"city", "nothing"}
    for first, count in ((0, _COUNT), (3, 10), (140, 20), (160, 5), (_COUNT, 0)):
        found = reader.read_slice(stored, schema, first, count)
        assert found.schema.field("city").type == pa.dictionary(pa.int32(), pa.string())
        assert found.cast(_SCHEMA).equals(rows.slice(first, count))
        # A row group that is cached in one form is not returned in the other.
        assert reader.read_slice(stored, _SCHEMA, first, count).equals(rows.slice(first, count))


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_dictionaries_are_read_under_a_later_schema(tmp_path: Path, kind: pa.DataType) -> None:
    rows = _rows(_COUNT)
    storage, stored = _write(tmp_path, rows)
    reader = ParquetReader(storage)
    later = pa.schema([_field(3, "town", pa.string()), _field(10, "added", kind)])
    schema = reader.opened(stored).with_dictionaries(later)
    assert [pa.types.is_dictionary(field.type) for field in schema] == [True, False]
    found = reader.read_slice(stored, schema, 0, _COUNT)
    assert found.column("town").to_pylist() == rows.column("city").to_pylist()
    assert found.column("added").null_count == _COUNT
