"""The schema of change rows: each row has the operation on its key."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.kernel.format.dataset import DEFAULT_VOCABULARY, Vocabulary
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.schema.schema import Field, Schema


class ChangeSchema(Schema, frozen=True, kw_only=True):
    """`_hw_op`, then the columns of a dataset. Only those of the key are required, if there is one.

    `required`: the columns that an added row needs as well; a retracted row needs its key only. `vocabulary`: the
    dataset's names of what changes have beside their rows; the standard names are read, too.
    """

    required: frozenset[str]
    vocabulary: Vocabulary = DEFAULT_VOCABULARY

    def rows(self) -> Schema:
        """The columns without the op."""
        return Schema(id=self.id, fields=self.fields[1:])


def change_schema(
    schema: Schema, record_key: Sequence[str], vocabulary: Vocabulary = DEFAULT_VOCABULARY
) -> ChangeSchema:
    """The schema of changes to rows of `schema`."""
    op = Field(id=0, name=OP_COLUMN, type="uint8", nullable=False)
    fields = optional_unless_key(schema, record_key).fields
    return ChangeSchema(
        id=schema.id,
        fields=(op, *fields),
        required=frozenset(field.name for field in schema.fields if not field.nullable),
        vocabulary=vocabulary,
    )


def optional_unless_key(schema: Schema, record_key: Sequence[str]) -> Schema:
    """The same schema with only the fields of the key required. Unchanged without a key: whole rows are compared."""
    if not record_key:
        return schema
    fields = tuple(
        field if field.name in record_key else msgspec.structs.replace(field, nullable=True)
        for field in schema.fields
    )
    return Schema(id=schema.id, fields=fields)
