"""Files of generated schemas: the size holds, the ids are those of the schema, and the values stay."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.format.schema.types import FIELD_ID_METADATA
from app.kernel.parquet.exchange import exchange, exchanged_size
from tests.kernel.parquet.samples import column, served, stored

FLAT = st.sampled_from([pa.int64(), pa.uint8(), pa.uint16(), pa.string(), pa.bool_(), pa.decimal128(9, 2)])
NAMES = st.text(min_size=1, max_size=5).filter(lambda name: name.isprintable() and name.isascii())
GREATEST_ID = 2**31 - 1


def members(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    structs = st.dictionaries(NAMES, kinds, min_size=1, max_size=3).map(
        lambda each: pa.struct(list(each.items()))
    )
    maps = st.tuples(st.sampled_from([pa.string(), pa.int64()]), kinds).map(lambda pair: pa.map_(*pair))
    return kinds.map(pa.list_) | structs | maps


TYPES = st.recursive(FLAT, members, max_leaves=6)


def paths(kind: pa.DataType, start: str = "") -> list[str]:
    """The paths of members below a column of this type."""
    steps: list[tuple[str, pa.DataType]] = []
    if pa.types.is_list(kind):
        steps = [("element", kind.value_type)]
    elif pa.types.is_map(kind):
        steps = [("key", kind.key_type), ("value", kind.item_type)]
    elif pa.types.is_struct(kind):
        steps = [(step(member.name), member.type) for member in kind]
    return [path for name, member in steps for path in [start + name, *paths(member, f"{start}{name}.")]]


def step(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if "." in name or "`" in name else name


def empty(kind: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, kind)


@settings(max_examples=150)
@given(
    kinds=st.dictionaries(NAMES, TYPES, min_size=2, max_size=5),
    count=st.integers(0, 3),
    drops=st.sets(st.integers(0, 3)),
    has_arrow_schema=st.booleans(),
)
def test_any_schema(kinds, count, drops, has_arrow_schema):
    ids = iter(range(GREATEST_ID, 0, -1))
    columns = [column(next(ids), {path: next(ids) for path in paths(kind)}) for kind in kinds.values()]
    visible = {
        column.id for place, column in enumerate(columns) if place not in drops or place == len(kinds) - 1
    }
    fields = [
        pa.field(name, kind, metadata={FIELD_ID_METADATA: str(column.id).encode()})
        for (name, kind), column in zip(kinds.items(), columns, strict=True)
    ]
    table = pa.table([empty(kind, count) for kind in kinds.values()], pa.schema(fields))
    data = stored(table, store_schema=has_arrow_schema)
    answer = served(data, visible, columns)
    assert len(answer) == exchanged_size(exchange(columns, visible, None), len(data))
    back = pq.read_table(io.BytesIO(answer))
    names = [name for (name, _), column in zip(kinds.items(), columns, strict=True) if column.id in visible]
    assert back.column_names == names
    assert back.to_pylist() == table.select(names).to_pylist()
