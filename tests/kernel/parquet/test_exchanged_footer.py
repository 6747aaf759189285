"""Served files have ids and no hidden column, and all other values are those of the stored file."""

from __future__ import annotations

import io

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.kernel.format.rows.file_columns import OWN_FIELD_IDS
from app.kernel.parquet.compact import InvalidFooter
from app.kernel.parquet.exchange import exchange, exchanged_size
from tests.kernel.parquet.samples import (
    ALL,
    COLUMNS,
    OWN,
    SAMPLES,
    SECRET,
    SECRET_ID,
    SEEN,
    WRITERS,
    column,
    opened,
    rows,
    served,
    stored,
)

ROWS = 500


@pytest.mark.parametrize("visible", [ALL, SEEN], ids=["all", "seen"])
@pytest.mark.parametrize("writer", WRITERS)
def test_values_are_those_of_the_stored_file(writer, visible):
    table = rows(ROWS)
    data = stored(table, **WRITERS[writer])
    result = served(data, visible)
    names = [name for name in table.column_names if name != SECRET or SECRET_ID in visible]
    back = pq.read_table(io.BytesIO(result))
    assert back.column_names == names
    assert back.to_pylist() == table.select(names).to_pylist()
    file = pq.ParquetFile(io.BytesIO(result), page_checksum_verification=True)
    for number in range(file.num_row_groups):
        group = file.read_row_group(number)
        assert file.metadata.row_group(number).num_rows == group.num_rows


@pytest.mark.parametrize("writer", WRITERS)
def test_no_byte_of_a_hidden_column_is_served(writer):
    data = stored(rows(ROWS), **WRITERS[writer])
    result = served(data)
    body_end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    ranges = hidden_ranges(data)
    assert ranges
    for start, end in ranges:
        assert not any(result[start:end])
        assert end <= body_end
    assert SECRET.encode() not in result
    assert SECRET.upper().encode() not in result
    assert SECRET.encode() in data


def hidden_ranges(data: bytes) -> list[tuple[int, int]]:
    metadata = pq.read_metadata(io.BytesIO(data))
    chunks = [
        metadata.row_group(group).column(place)
        for group in range(metadata.num_row_groups)
        for place in range(metadata.num_columns)
        if metadata.row_group(group).column(place).path_in_schema == SECRET
    ]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    return [(start, start + chunk.total_compressed_size) for start, chunk in zip(starts, chunks, strict=True)]


def test_each_column_and_member_has_its_id():
    schema = pq.read_schema(io.BytesIO(served(stored(rows(3)))))
    found = {}
    for each in schema:
        ids(each, each.name, found)
    known = {sample.name: number for number, sample in enumerate(SAMPLES, 1) if sample.name != SECRET}
    members = {
        f"{sample.name}.{path}": number for sample in SAMPLES for path, number in sample.member_ids.items()
    }
    assert found == {**known, **members, **{name: OWN_FIELD_IDS[name] for name in OWN}}


def ids(field: pa.Field, path: str, found: dict[str, int]) -> None:
    found[path] = int(field.metadata[b"PARQUET:field_id"])
    kind = field.type
    if pa.types.is_list(kind):
        ids(kind.value_field, f"{path}.element", found)
    elif pa.types.is_map(kind):
        ids(kind.key_field, f"{path}.key", found)
        ids(kind.item_field, f"{path}.value", found)
    elif pa.types.is_struct(kind):
        for member in kind:
            name = member.name.replace("`", "``")
            step = f"`{name}`" if "." in name or "`" in name else name
            ids(member, f"{path}.{step}", found)


def test_narrow_unsigned_numbers_are_plain_integers():
    data = stored(rows(300), store_schema=False)
    assert str(pq.read_schema(io.BytesIO(data)).field("narrow").type) == "uint8"
    schema = pq.read_schema(io.BytesIO(served(data, ALL)))
    assert schema.field("narrow").type == schema.field("short").type == pa.int32()
    assert schema.field("counts").type.item_type.value_type == pa.int32()
    assert schema.field("signed").type == pa.int8()


def test_order_of_rows_ends_before_a_hidden_column():
    data = stored(rows(ROWS), **WRITERS["sorted"])
    group = pq.read_metadata(io.BytesIO(served(data, ALL))).row_group(1)
    assert [each.column_index for each in group.sorting_columns] == [0, 1, 2]
    group = pq.read_metadata(io.BytesIO(served(data, SEEN))).row_group(1)
    assert [each.column_index for each in group.sorting_columns] == [0]
    group = pq.read_metadata(io.BytesIO(served(data, ALL - {1}))).row_group(1)
    assert list(group.sorting_columns) == []


def test_statistics_and_sizes_are_those_of_the_columns_that_stay():
    data = stored(rows(ROWS), row_group_size=200)
    before = pq.read_metadata(io.BytesIO(data))
    after = pq.read_metadata(io.BytesIO(served(data)))
    assert after.num_rows == before.num_rows
    for number in range(before.num_row_groups):
        old, new = before.row_group(number), after.row_group(number)
        chunks = {old.column(place).path_in_schema: old.column(place) for place in range(old.num_columns)}
        hidden = chunks.pop(SECRET)
        assert new.total_byte_size == old.total_byte_size - hidden.total_uncompressed_size
        assert [new.column(place) for place in range(new.num_columns)] == list(chunks.values())


@pytest.mark.parametrize("visible", [ALL, SEEN, SEEN - {7, 8}], ids=len)
@pytest.mark.parametrize("writer", WRITERS)
def test_size_is_known_from_the_size_of_the_stored_file(writer, visible):
    what = exchange(COLUMNS, visible, None)
    for count in (0, 1, ROWS):
        data = stored(rows(count), **WRITERS[writer])
        assert len(served(data, visible)) == opened(data, what).size_bytes == exchanged_size(what, len(data))


@pytest.mark.parametrize("visible", [ALL, SEEN], ids=["all", "seen"])
@pytest.mark.parametrize("writer", ["row groups", "small pages", "Bloom filters"])
def test_duckdb_reads_the_file(writer, visible, tmp_path):
    table = rows(ROWS)
    path = tmp_path / "served.parquet"
    path.write_bytes(served(stored(table, **WRITERS[writer]), visible))
    with duckdb.connect() as connection:
        query = "select id, text, items, narrow from read_parquet(?) where id >= 100 and text = 'text 3' order by id"
        found = connection.execute(query, [str(path)]).fetchall()
    known = [row for row in table.to_pylist() if row["id"] >= 100 and row["text"] == "text 3"]
    assert found == [(row["id"], row["text"], row["items"], row["narrow"]) for row in known]


def test_column_without_a_field_is_hidden():
    back = pq.read_schema(io.BytesIO(served(stored(rows(3)), ALL, COLUMNS[:1])))
    assert back.names == ["id", *OWN]


def test_member_that_the_schema_lacks_is_an_error():
    columns = [column(7, {"element": 1})]
    with pytest.raises(InvalidFooter, match=r"member 'element\.a'"):
        served(stored(rows(3)), {7}, columns)


def test_rename_and_reuse_of_a_name_follow_the_id():
    """The file has the name of the time when it was written."""
    table = rows(3)
    data = stored(table.rename_columns(["other" if name == "id" else name for name in table.column_names]))
    assert pq.read_schema(io.BytesIO(served(data))).names[0] == "other"


@pytest.mark.parametrize("layout", [None, 1])
def test_columns_of_the_format_itself_can_be_hidden(layout):
    table = rows(ROWS)
    data = stored(table)
    what = exchange(COLUMNS, ALL, layout, shows_own=False)
    assert what.rendering not in ("0", exchange(COLUMNS, ALL, None).rendering)
    file = opened(data, what)
    result = file.read(0, file.size_bytes)
    assert len(result) == exchanged_size(what, len(data))
    assert b"_hw_" not in result
    served_table = pq.read_table(io.BytesIO(result))
    assert served_table.column_names == [name for name in table.column_names if name not in OWN]
    assert served_table.column("id").equals(table.column("id"))
