"""Changes of a schema."""

from __future__ import annotations

import msgspec

from headwater_client.values import NewField


class AddField(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="add"):
    """Adds a nullable field behind the others."""

    field: NewField


class DropField(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="drop"):
    """Drops a field."""

    name: str


class RenameField(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="rename"):
    """Renames a field; it keeps its values."""

    name: str
    to: str


class WidenField(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="widen", rename={"type_": "type"}
):
    """Widens the type of a field; with `explicit_cast` also a date to a timestamp."""

    name: str
    type_: str
    explicit_cast: bool = False


class RelaxField(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="relax"):
    """Makes a required field nullable."""

    name: str


class ReorderFields(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="reorder"):
    """Changes the order of the fields. Lists each field once."""

    names: tuple[str, ...]


SchemaChange = AddField | DropField | RenameField | WidenField | RelaxField | ReorderFields
