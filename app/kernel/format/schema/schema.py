"""The schema of a dataset: fields with ids, and their Arrow form."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

import msgspec
import pyarrow as pa

from app.kernel.format.schema.types import DataType, id_metadata, parse_type, to_arrow

FIELDS_MAX: Final = 2_000
FIELD_ID_MAX: Final = 2_147_483_446
"""Ids above are those of columns of the format itself: Iceberg reserves them and assigns none to a column."""
FIELD_NAME_CHARACTERS_MAX: Final = 255
_SHOWN_CHARACTERS_MAX: Final = 60
RESERVED_PREFIX: Final = "_hw_"
NAMES_EXPECTED: Final = f"expected 1–{FIELD_NAME_CHARACTERS_MAX} printable characters"


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column with the id that it keeps for ever."""

    id: int
    """The number that the column keeps for ever."""
    name: str
    """Its present name."""
    type: str
    """Its type."""
    nullable: bool = True
    """Whether it may hold nulls."""
    doc: str | None = None
    """What it holds, for its users."""
    member_ids: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """The numbers of its members, by their paths: `element`, `key`, `value`, or the name of a member, joined by dots.

    Left out for a column without members.
    """

    def __hash__(self) -> int:
        return hash((self.id, self.name, self.type))

    def data_type(self) -> DataType:
        """The parsed type. The text was validated when the dataset was registered."""
        return parse_type(self.type)

    def to_arrow(self) -> pa.Field:
        """The Arrow field. Its id and those of its members are in the metadata that Parquet keeps as `field_id`."""
        return _arrow_field(self)


@lru_cache(maxsize=8192)
def _arrow_field(field: Field) -> pa.Field:
    # Parsing the type and creating the field takes longer than reading a column of a short page.
    kind = to_arrow(field.data_type(), {} if field.member_ids is msgspec.UNSET else field.member_ids)
    return pa.field(field.name, kind, nullable=field.nullable, metadata=id_metadata(field.id))


class KeyStruct(Field, frozen=True, kw_only=True):
    """A struct with members that are part of the record key.

    `key_members`: their paths below it. None of them is ever null.
    """

    key_members: tuple[tuple[str, ...], ...]


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An ordered list of fields. `id` counts the dataset's schema versions from 1.

    `last_field_id`: the highest id of any version's fields and members; 0 before the first change of a schema without
    members, where the fields have it.
    """

    id: int
    fields: tuple[Field, ...]
    last_field_id: int = 0

    @property
    def highest_field_id(self) -> int:
        """The highest id that was ever assigned: a new field gets the next one, so that ids are never reused."""
        own = [field.id for field in self.fields]
        members = [number for field in self.fields for number in (field.member_ids or {}).values()]
        return max([self.last_field_id, *own, *members])

    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    def field(self, name: str) -> Field:
        """The field with this name. Raises KeyError."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def select(self, names: Sequence[str]) -> Schema:
        """The same schema with the named fields only, in that order. Raises KeyError."""
        by_name = {field.name: field for field in self.fields}
        return msgspec.structs.replace(self, fields=tuple(by_name[name] for name in names))

    def to_arrow(self) -> pa.Schema:
        return pa.schema([field.to_arrow() for field in self.fields])

    def with_required(self, names: Sequence[str]) -> Schema:
        """The same schema with the named fields required: record keys never contain nulls."""
        fields = tuple(
            msgspec.structs.replace(field, nullable=False) if field.name in names else field
            for field in self.fields
        )
        return msgspec.structs.replace(self, fields=fields)


def name_fault(name: str) -> str | None:
    """What is wrong with the name of a field, to follow the words for the field; None for nothing.

    Names that are reserved, or that another field has, are checked elsewhere.
    """
    if not name:
        return f"has no name; {NAMES_EXPECTED}"
    if len(name) <= FIELD_NAME_CHARACTERS_MAX and name.isprintable():
        return None
    start = ascii(name[:_SHOWN_CHARACTERS_MAX])
    return f"has the name {start} of {len(name)} characters; {NAMES_EXPECTED}"


def may_be_added(name: str, names: Collection[str]) -> bool:
    """Whether a field with the name may be added to those with the names, which are in lower case (`casefold`)."""
    return not name_fault(name) and not name.startswith(RESERVED_PREFIX) and name.casefold() not in names
