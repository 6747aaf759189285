"""Fields, and members of structs as in `meta.updated_at`: the ordering field and the fields of the record key."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.partition.fields import PartitionSyntaxError, Transform, parse_partition
from app.kernel.format.schema.schema import KeyStruct, Schema


def member_path(text: str, fields: Collection[str]) -> tuple[str, ...]:
    """The field, then members of structs. `fields`: the names of the dataset's fields.

    The name of a field is that field, whatever its characters. Other texts have the syntax of partition fields without
    transforms: `meta.updated_at`, or in backticks. Raises PartitionSyntaxError.
    """
    if text in fields:
        return (text,)
    field = parse_partition(text)
    if field.transform is not Transform.IDENTITY or field.text != text:
        raise PartitionSyntaxError(f"expected a field or a member as in 'meta.updated_at', got {text!r}")
    return field.path


def member_root(text: str | None, fields: Collection[str]) -> str | None:
    """The field that has the value in it; None without a text, or if it cannot be read."""
    if text is None:
        return None
    try:
        return member_path(text, fields)[0]
    except PartitionSyntaxError:
        return None


def roots(texts: Sequence[str], fields: Collection[str]) -> tuple[str, ...]:
    """The fields that have the values in them, each once. Raises PartitionSyntaxError."""
    return tuple(dict.fromkeys(member_path(text, fields)[0] for text in texts))


def key_fields(dataset: DatasetDefinition) -> tuple[str, ...]:
    """The fields that have the record key in them: those of the key, and structs whose members are part of it."""
    return roots(dataset.record_key, dataset.schema.names())


def with_key_members(schema: Schema, record_key: Sequence[str]) -> Schema:
    """The same schema with the members of structs that are part of the record key."""
    names = schema.names()
    below: dict[str, list[tuple[str, ...]]] = {}
    for text in record_key:
        name, *members = member_path(text, names)
        if members:
            below.setdefault(name, []).append(tuple(members))
    if not below:
        return schema
    fields = tuple(
        KeyStruct(**msgspec.structs.asdict(field), key_members=tuple(below[field.name]))
        if field.name in below
        else field
        for field in schema.fields
    )
    return msgspec.structs.replace(schema, fields=fields)


def column_of(rows: pa.Table, text: str) -> pa.ChunkedArray:
    """The values of a field, or of a member of structs; null where a struct on the way is null."""
    if rows.schema.get_field_index(text) >= 0:
        return rows.column(text)
    name, *members = member_path(text, rows.schema.names)
    return pc.struct_field(rows.column(name), members)


def columns_of(rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """The columns under these texts as their names."""
    return pa.table({text: column_of(rows, text) for text in texts})


def key_rows(keys: pa.Table, record_key: Sequence[str]) -> pa.Table:
    """The columns of keys, whose structs have the members of the key alone. No value is null."""
    names = keys.schema.names
    paths = [member_path(text, names) for text in record_key]
    return pa.table({name: _narrowed(_whole(keys.column(name)), _below(name, paths)) for name in names})


def _whole(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    return pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values


def _below(name: str, paths: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [path[1:] for path in paths if path[0] == name and len(path) > 1]


def _narrowed(values: pa.Array, paths: Sequence[tuple[str, ...]]) -> pa.Array:
    if not paths:
        return values
    names = list(dict.fromkeys(path[0] for path in paths))
    members = [_narrowed(pc.struct_field(values, [name]), _below(name, paths)) for name in names]
    return pa.StructArray.from_arrays(members, names)


def with_member(column: pa.ChunkedArray | pa.Array, path: Sequence[str], values: pa.ChunkedArray) -> pa.Array:
    """The column with these values of a member, in structs that are not null; without a path the values themselves."""
    whole = _whole(values)
    if not path:
        return whole
    structs = _whole(column) if isinstance(column, pa.ChunkedArray) else column
    name, *below = path
    members = [
        with_member(pc.struct_field(structs, [field.name]), below, values)
        if field.name == name
        else pc.struct_field(structs, [field.name])
        for field in structs.type
    ]
    return pa.StructArray.from_arrays(members, fields=list(structs.type))
