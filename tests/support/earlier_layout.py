"""Files as releases without layouts wrote them: without ids of members and of own columns, and with unsigned types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from app.infra.files import data_sink, parquet_file
from app.kernel.format.rows.file_columns import OWN_FIELD_IDS


@contextmanager
def earlier_layout() -> Iterator[None]:
    """Files that this process writes meanwhile have no layout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_file, "file_schema", earlier_schema)
        patch.setattr(data_sink, "LAYOUT", None)
        yield


def earlier_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of such a file."""
    plain = [field.remove_metadata() if field.name in OWN_FIELD_IDS else field for field in schema]
    return pa.schema([field.with_type(_without_ids(field.type)) for field in plain])


def _without_ids(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_field), _plain(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_plain(kind.field(at)) for at in range(kind.num_fields)])
    return pa.list_(_plain(kind.value_field)) if pa.types.is_list(kind) else kind


def _plain(member: pa.Field) -> pa.Field:
    return member.remove_metadata().with_type(_without_ids(member.type))
