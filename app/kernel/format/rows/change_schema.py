"""The schemas of rows that may delete their key: changes, each with its operation, and rows with a delete marker."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.kernel.format.dataset import DEFAULT_VOCABULARY, Vocabulary
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.schema.schema import Field, Schema


class ChangeSchema(Schema, frozen=True, kw_only=True):
    """`_hw_op`, then the columns of a dataset. Only those of the key are required, if there is one.

    `required`: the columns that an added row needs as well; a retracted row needs its key only. `vocabulary`: the
    dataset's names of what changes have beside their rows; the standard names are read, too. `keepable`: the columns
    of which an update may keep the stored value (`app.kernel.format.rows.kept_fields`). `place`: the columns that
    determine which row it replaces.
    """

    required: frozenset[str]
    keepable: frozenset[str] = frozenset()
    place: frozenset[str] = frozenset()
    vocabulary: Vocabulary = DEFAULT_VOCABULARY

    def rows(self) -> Schema:
        """The columns without the op."""
        return Schema(id=self.id, fields=self.fields[1:])


def change_schema(
    schema: Schema,
    record_key: Sequence[str],
    vocabulary: Vocabulary = DEFAULT_VOCABULARY,
    *,
    keepable: frozenset[str] = frozenset(),
    place: frozenset[str] = frozenset(),
) -> ChangeSchema:
    """The schema of changes to rows of `schema`. `keepable`, `place`: of the ChangeSchema."""
    op = Field(id=0, name=OP_COLUMN, type="uint8", nullable=False)
    fields = optional_unless_key(schema, record_key).fields
    return ChangeSchema(
        id=schema.id,
        fields=(op, *fields),
        required=frozenset(field.name for field in schema.fields if not field.nullable),
        vocabulary=vocabulary,
        keepable=keepable,
        place=place,
    )


class MarkedSchema(Schema, frozen=True, kw_only=True):
    """The columns of a dataset with a delete marker. Only those of the key are required.

    `required`: the columns that a row needs as well, unless it deletes its key: its `delete_marker` is true.
    """

    required: frozenset[str]
    delete_marker: str

    def unmarked(self) -> Schema:
        """The schema of rows that do not delete."""
        return Schema(id=self.id, fields=self.fields).with_required(sorted(self.required))


def marked_schema(schema: Schema, record_key: Sequence[str], delete_marker: str | None) -> Schema:
    """The schema of rows of `schema` that may have a delete marker; unchanged if all rows need the same columns."""
    fields = optional_unless_key(schema, record_key).fields
    required = frozenset(
        field.name for field, own in zip(schema.fields, fields, strict=True) if field.nullable != own.nullable
    )
    if delete_marker is None or not required:
        return schema
    return MarkedSchema(id=schema.id, fields=fields, required=required, delete_marker=delete_marker)


def optional_unless_key(schema: Schema, record_key: Sequence[str]) -> Schema:
    """The same schema with only the fields of the key required. Unchanged without a key: whole rows are compared."""
    if not record_key:
        return schema
    fields = tuple(
        field if field.name in record_key else msgspec.structs.replace(field, nullable=True)
        for field in schema.fields
    )
    return Schema(id=schema.id, fields=fields)
