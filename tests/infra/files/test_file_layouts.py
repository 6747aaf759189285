"""Data files of both layouts: what other engines find in new ones, and that rows of both are the same rows."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from app.infra.files.changelog_merge import ChangelogMerger
from app.infra.files.parquet_file import ParquetReader, create_parquet
from app.infra.files.storage import LocalStorage
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.file_format import FileCompression
from app.kernel.format.file_group import StoredFile
from app.kernel.format.rows.changelog import OP_FIELD
from app.kernel.format.rows.file_columns import OWN_FIELD_IDS
from app.kernel.format.rows.meta_columns import CORRECTS_FIELD, META_FIELDS
from app.kernel.format.schema.types import FIELD_ID_METADATA
from app.kernel.sql.conditions.parse import parse_filter
from tests.support.earlier_layout import earlier_layout

TYPES = {
    "id": "int64",
    "a": "uint8",
    "b": "uint16",
    "c": "uint32",
    "s": "struct<x: uint16, l: list<uint32>>",
    "m": "map<uint8, uint32>",
}
FIELDS = [{"name": name, "type": kind} for name, kind in TYPES.items()]
DATASET = define_dataset(msgspec.convert({"name": "d", "schema": {"fields": FIELDS}}, CreateDataset))
COLUMNS = DATASET.schema.to_arrow()
STORED = pa.schema([OP_FIELD, CORRECTS_FIELD, *COLUMNS, *META_FIELDS])


def rows(first: int) -> pa.Table:
    values = [
        {
            "_hw_op": at % 4, "_hw_corrects": at, "id": at, "a": 255 - at, "b": 65_535 - at, "c": 2**32 - 1 - at,
            "s": {"x": 65_535, "l": [2**32 - 1, at]} if at % 3 else None, "m": [(255, 2**32 - 1)],
            "_hw_version": at, "_hw_offset": -1 - at,
        }
        for at in range(first, first + 20)
    ]  # fmt: skip
    return pa.Table.from_pylist(values, schema=STORED)


def write(storage: LocalStorage, path: str, table: pa.Table) -> StoredFile:
    with create_parquet(storage, path, table.schema, row_group_rows=10) as sink:
        sink.write(table)
        sink.finish()
    return sink.stored(1)


def write_old(storage: LocalStorage, path: str, table: pa.Table) -> StoredFile:
    with earlier_layout():
        return write(storage, path, table)


def test_new_file_has_an_id_for_every_column_and_no_unsigned_column_of_the_dataset(tmp_path: Path) -> None:
    write(LocalStorage(tmp_path), "d/a.parquet", rows(0))
    schema = pq.read_schema(tmp_path / "d/a.parquet")
    ids = {field.name: int(field.metadata[FIELD_ID_METADATA]) for field in schema}
    assert ids == {"id": 1, "a": 2, "b": 3, "c": 4, "s": 5, "m": 6} | {
        name: OWN_FIELD_IDS[name] for name in ("_hw_op", "_hw_corrects", "_hw_version", "_hw_offset")
    }
    assert len(set(OWN_FIELD_IDS.values())) == len(OWN_FIELD_IDS)
    assert [schema.field(name).type for name in "abc"] == [pa.int32(), pa.int32(), pa.int64()]
    assert schema.field("s").type == pa.struct([("x", pa.int32()), ("l", pa.list_(pa.int64()))])
    assert schema.field("m").type == pa.map_(pa.int32(), pa.int64())
    stored = pq.ParquetFile(tmp_path / "d/a.parquet").schema
    assert [str(stored.column(at).logical_type) for at in (3, 4, 5)] == ["None"] * 3


def test_files_of_both_layouts_have_the_same_rows(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    reader = ParquetReader(storage)
    old = write_old(storage, "d/old.parquet", rows(0))
    new = write(storage, "d/new.parquet", rows(0))
    assert pq.read_schema(tmp_path / "d/old.parquet").field("a").type == pa.uint8()
    for file in (old, new):
        assert reader.read_slice(file, STORED, 0, 20) == rows(0)
        assert reader.read_slice(file, STORED, 5, 9) == rows(0).slice(5, 9)


def test_filters_skip_row_groups_of_both_layouts(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    reader = ParquetReader(storage)
    for file in (
        write_old(storage, "d/old.parquet", rows(0)),
        write(storage, "d/new.parquet", rows(0)),
    ):
        for text in ("a > 250", "b > 65530", "c > 4294967290"):
            where = parse_filter(text, DATASET.schema)
            assert reader.row_ranges(file, where, DATASET.schema, 0, 20) == [(0, 10)]


def test_changelog_files_of_both_layouts_are_merged(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    reader = ParquetReader(storage)
    files = [
        write_old(storage, "c/old.parquet", rows(0)),
        write(storage, "c/new.parquet", rows(20)),
    ]
    merger = ChangelogMerger(storage=storage, reader=reader)
    merged = merger.merge(files, "c/merged.parquet", FileCompression.ZSTD)
    assert merged is not None
    assert merged.inputs == 2
    assert reader.read_slice(merged.file, STORED, 0, 40) == pa.concat_tables([rows(0), rows(20)])
    # Old and new files were merged before they could be merged together.
    stored = pq.read_schema(tmp_path / merged.file.path)
    assert stored.equals(pq.read_schema(tmp_path / "c/new.parquet"), check_metadata=True)
    assert id_of(stored.field("s").type.field("l").type.value_field) > len(TYPES)


def id_of(field: pa.Field) -> int:
    return int(field.metadata[FIELD_ID_METADATA])
