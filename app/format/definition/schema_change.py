"""Changes of a dataset as a user sends them, before any rule was checked."""

from __future__ import annotations

import msgspec

from app.format.definition.new_dataset import NewField, NewRetention
from app.format.policies import TableServices


class _Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    pass


class AddField(_Change, frozen=True, kw_only=True, tag="add"):
    """Adds a field behind the others. It is nullable: rows that are there already have no value of it."""

    field: NewField


class DropField(_Change, frozen=True, kw_only=True, tag="drop"):
    """Drops a field. Its values stay readable at earlier versions."""

    name: str


class RenameField(_Change, frozen=True, kw_only=True, tag="rename"):
    """Gives a field another name; it keeps its values."""

    name: str
    to: str


class WidenField(_Change, frozen=True, kw_only=True, tag="widen"):
    """Gives a field a type that holds every value of the one it has.

    `explicit_cast` allows a date to become a timestamp, the start of that day.
    """

    name: str
    type_: str = msgspec.field(name="type")
    explicit_cast: bool = False


class RelaxField(_Change, frozen=True, kw_only=True, tag="relax"):
    """Lets a required field hold nulls."""

    name: str


class ReorderFields(_Change, frozen=True, kw_only=True, tag="reorder"):
    """Puts the fields into another order, which names each of them once."""

    names: list[str]


SchemaChange = AddField | DropField | RenameField | WidenField | RelaxField | ReorderFields


class ChangelogChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gives the feed another retention; null keeps it for ever."""

    retention: NewRetention | None


class DatasetChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a dataset's schema, made one after another, of how long its feed is kept, and of its table services,
    which take the place of those it has: all, or none.
    """

    changes: list[SchemaChange] = []
    changelog: ChangelogChange | msgspec.UnsetType = msgspec.UNSET
    services: TableServices | msgspec.UnsetType = msgspec.UNSET
