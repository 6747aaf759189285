"""Each column of a file that leaves the service has an id of its own, and those of a dataset keep theirs."""

from __future__ import annotations

import io
from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from app.kernel.codecs.column_ids import SERVICE_FIELD_IDS, with_ids
from app.kernel.codecs.meta_on_read import CORRECTED_RESULT_FIELDS, META_RESULT_FIELDS
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.rows.changelog import OP_FIELD
from app.kernel.format.rows.meta_columns import META_FIELDS
from app.kernel.format.schema.types import FIELD_ID_METADATA, annotated

TYPES = {"id": "int64", "s": "struct<x: uint16, l: list<uint32>>", "m": "map<string, uuid>"}
FIELDS = [{"name": name, "type": kind} for name, kind in TYPES.items()]
SCHEMA = define_dataset(msgspec.convert({"name": "d", "schema": {"fields": FIELDS}}, CreateDataset)).schema
COLUMNS = list(SCHEMA.to_arrow())
META = [field.to_arrow() for field in (*META_RESULT_FIELDS, *CORRECTED_RESULT_FIELDS)]


def leaves_and_groups(field: pa.Field) -> Iterator[tuple[str, int]]:
    yield field.name, int(field.metadata[FIELD_ID_METADATA])
    kind = field.type
    if pa.types.is_map(kind):
        members = [kind.key_field, kind.item_field]
    else:
        nested = pa.types.is_struct(kind) or pa.types.is_list(kind)
        members = [kind.field(at) for at in range(kind.num_fields)] if nested else []
    for member in members:
        yield from leaves_and_groups(member)


def ids(fields: list[pa.Field]) -> list[tuple[str, int]]:
    """The ids of all columns and members in a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(annotated(with_ids(pa.schema(fields))).empty_table(), sink)
    found = [pair for field in pq.read_schema(sink) for pair in leaves_and_groups(field)]
    numbers = [number for _, number in found]
    assert all(numbers)
    assert len(set(numbers)) == len(numbers)
    return found


def test_columns_of_a_dataset_keep_their_ids() -> None:
    assert with_ids(pa.schema(COLUMNS)).equals(pa.schema(COLUMNS), check_metadata=True)
    assert [number for _, number in ids(COLUMNS)] == [1, 2, 4, 5, 6, 3, 7, 8]


def test_columns_that_the_service_adds_have_fixed_ids() -> None:
    own = [OP_FIELD, *META_FIELDS, *META]
    found = dict(ids([*own, *COLUMNS]))
    assert {field.name: found[field.name] for field in own} == {
        field.name: SERVICE_FIELD_IDS[field.name] for field in own
    }
    assert len(set(SERVICE_FIELD_IDS.values())) == len(SERVICE_FIELD_IDS)
    assert found["id"] == 1


def test_other_columns_have_the_next_ids() -> None:
    computed = pa.field("total", pa.list_(pa.struct([("a", pa.int64())])))
    unnumbered = pa.field("_change_type", pa.string(), metadata={FIELD_ID_METADATA: b"0"})
    found = ids([unnumbered, *COLUMNS, computed])
    assert found[0] == ("_change_type", 9)
    assert [number for _, number in found[-3:]] == [10, 11, 12]


def test_column_that_occurs_twice_has_two_ids() -> None:
    rows = pa.struct(COLUMNS)
    found = ids([pa.field("before", rows), pa.field("after", rows)])
    assert [name for name, _ in found].count("id") == 2
