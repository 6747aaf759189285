"""Changes of a dataset as the client sends them, before validation."""

from __future__ import annotations

import msgspec

from app.kernel.format.dataset import Deletes
from app.kernel.format.definition.new_dataset import CreateField, CreateRetention, CreateVocabulary
from app.kernel.format.definition.settings import SettingsUpdate
from app.kernel.format.policies import UpdateTableServices


class _Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    pass


class AddField(_Change, frozen=True, kw_only=True, tag="add"):
    """Adds a field behind the others. The field is nullable: existing rows have no value for it."""

    field: CreateField
    """The new field."""


class DropField(_Change, frozen=True, kw_only=True, tag="drop"):
    """Drops a field. Its values stay readable at earlier versions."""

    name: str
    """The name of the field."""


class RenameField(_Change, frozen=True, kw_only=True, tag="rename"):
    """Renames a field; it keeps its values."""

    name: str
    """The present name of the field."""
    to: str
    """The new name."""


class WidenField(_Change, frozen=True, kw_only=True, tag="widen"):
    """Changes the type of a field to one that holds every value of the old type.

    `explicit_cast` allows a date to become a timestamp, at the start of that day.
    """

    name: str
    """The name of the field."""
    type_: str = msgspec.field(name="type")
    """The new type."""
    explicit_cast: bool = False
    """Allows a change of type that is a cast."""


class RelaxField(_Change, frozen=True, kw_only=True, tag="relax"):
    """Makes a required field nullable."""

    name: str
    """The name of the field."""


class ReorderFields(_Change, frozen=True, kw_only=True, tag="reorder"):
    """Changes the order of the fields. Lists each field once."""

    names: list[str]
    """The names of all fields, in the new order."""


SchemaChange = AddField | DropField | RenameField | WidenField | RelaxField | ReorderFields


class UpdateChangelog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes settings of the feed; one that is left out keeps its value."""

    retention: CreateRetention | msgspec.UnsetType | None = msgspec.UNSET
    """How long changes are kept; null keeps them for ever."""
    vocabulary: CreateVocabulary | msgspec.UnsetType = msgspec.UNSET
    """The names of the system columns, in place of those that the dataset has: one that is left out is the standard
    name.
    """


class UpdateDataset(SettingsUpdate, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of a dataset to change; a member that is left out keeps its value. All are changed, or none."""

    changes: list[SchemaChange] = []
    """Changes of the schema, made one after another."""
    deletes: Deletes | msgspec.UnsetType = msgspec.UNSET
    """What deletes leave from the next version on; tombstones that exist last as long as before."""
    changelog: UpdateChangelog | msgspec.UnsetType = msgspec.UNSET
    """Settings of the change feed."""
    services: UpdateTableServices | msgspec.UnsetType = msgspec.UNSET
    """The table services, in place of those that the dataset has."""
