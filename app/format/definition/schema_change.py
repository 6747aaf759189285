"""Changes of a dataset as a user sends them, before any rule was checked."""

from __future__ import annotations

import msgspec

from app.format.definition.new_dataset import CreateField, CreateRetention
from app.format.policies import TableServices


class _Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    pass


class AddField(_Change, frozen=True, kw_only=True, tag="add"):
    """Adds a field behind the others. It is nullable: rows that are there already have no value of it."""

    field: CreateField
    """The new field."""


class DropField(_Change, frozen=True, kw_only=True, tag="drop"):
    """Drops a field. Its values stay readable at earlier versions."""

    name: str
    """The name of the field."""


class RenameField(_Change, frozen=True, kw_only=True, tag="rename"):
    """Gives a field another name; it keeps its values."""

    name: str
    """The present name of the field."""
    to: str
    """The new name."""


class WidenField(_Change, frozen=True, kw_only=True, tag="widen"):
    """Gives a field a type that holds every value of the one it has.

    `explicit_cast` allows a date to become a timestamp, the start of that day.
    """

    name: str
    """The name of the field."""
    type_: str = msgspec.field(name="type")
    """The new type."""
    explicit_cast: bool = False
    """Allows a change of type that is a cast."""


class RelaxField(_Change, frozen=True, kw_only=True, tag="relax"):
    """Lets a required field hold nulls."""

    name: str
    """The name of the field."""


class ReorderFields(_Change, frozen=True, kw_only=True, tag="reorder"):
    """Puts the fields into another order, which names each of them once."""

    names: list[str]
    """The names of all fields, in the new order."""


SchemaChange = AddField | DropField | RenameField | WidenField | RelaxField | ReorderFields


class UpdateChangelog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gives the feed another retention; null keeps it for ever."""

    retention: CreateRetention | None
    """How long changes are kept; null keeps them for ever."""


class UpdateDataset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of a dataset to change; a member that is left out keeps its value. All are changed, or none."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    """The new name. The old one is free at once; what refers to the dataset by its id goes on working."""
    changes: list[SchemaChange] = []
    """Changes of the schema, made one after another."""
    changelog: UpdateChangelog | msgspec.UnsetType = msgspec.UNSET
    """Settings of the change feed."""
    services: TableServices | msgspec.UnsetType = msgspec.UNSET
    """The table services, in place of those that the dataset has."""
