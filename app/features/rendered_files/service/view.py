"""What a reader sees of the data files of one schema, at the versions of another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final

import msgspec
import pyarrow as pa

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.bound_access import BoundAccess
from app.kernel.sql.conditions.row_access import RowAccess

_DIGEST_BYTES: Final = 8


@dataclass(frozen=True, kw_only=True)
class FileView:
    """The columns, values and rows that are shown of data files.

    `definition`: the dataset under the schema of the version that is read. `access`, and `bound`: what it means under
    that schema. `file_schema`: the one with which the files were written.
    """

    definition: DatasetDefinition
    access: RowAccess
    bound: BoundAccess
    file_schema: Schema

    @cached_property
    def columns(self) -> tuple[Field, ...]:
        """The columns of a rendered file: those of the schema that the data file has, too.

        Readers give the others as nulls. A file has one of them if there are no columns otherwise, since it has rows.
        """
        fields = self.definition.schema.fields
        stored_ids = {field.id for field in self.file_schema.fields}
        return tuple(field for field in fields if field.id in stored_ids) or fields[:1]

    @cached_property
    def visible_schema(self) -> Schema:
        """The columns with values."""
        fields = tuple(field for field in self.columns if field.name not in self.bound.masked)
        return msgspec.structs.replace(self.definition.schema, fields=fields)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns of a rendered file; those that are masked are nullable."""
        masked = self.bound.masked
        fields = [(field.name, field.to_arrow()) for field in self.columns]
        return pa.schema([each.with_nullable(True) if name in masked else each for name, each in fields])

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits: data files of equal digests are rendered equally.

        The id of the schema is no part of it: a column that is added later renders no file again.
        """
        where = self.bound.where
        names = frozenset() if where is None else frozenset(where.columns())
        facts = (
            [_facts(field) for field in self.columns],
            [field.id for field in self.columns if field.name in self.bound.masked],
            sorted(set(self.access.where)),
            [_facts(field) for field in self.definition.schema.fields if field.name in names],
        )
        return blake2b(msgspec.json.encode(facts), digest_size=_DIGEST_BYTES).hexdigest()


def _facts(field: Field) -> tuple[object, ...]:
    return field.id, field.name, field.type, field.nullable, field.member_ids or {}
