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
    """Gives a field another name; it keeps its values."""

    name: str
    to: str


class WidenField(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="widen", rename={"type_": "type"}
):
    """Gives a field a wider type; with `explicit_cast` also a date that of a timestamp."""

    name: str
    type_: str
    explicit_cast: bool = False


class RelaxField(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="relax"):
    """Lets a required field hold nulls."""

    name: str


class ReorderFields(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="reorder"):
    """Puts the fields into another order, which names each of them once."""

    names: tuple[str, ...]


SchemaChange = AddField | DropField | RenameField | WidenField | RelaxField | ReorderFields
