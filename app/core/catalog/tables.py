"""The tables.

Every row belongs to a tenant: `tenant_id` leads every key, and its default is the tenant of the transaction,
so that no statement names it; row level security (see the migrations) hides all others. Two keys reach across
tenants because they must: the digest of an API key identifies the tenant of a request, and tenants' own names differ.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import (
    CheckConstraint,
    Column,
    ColumnElement,
    Dialect,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
    type_coerce,
)

from app.infra.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    of_dataset,
    of_tenant,
    tenant_column,
    text_column,
    timestamp_column,
)
from app.infra.db.stored_json import Document
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.schema.member_ids import MemberIds, with_member_ids, without_member_ids
from app.kernel.format.schema.schema import Schema


def _plain_definition(definition: DatasetDefinition) -> DatasetDefinition:
    return msgspec.structs.replace(definition, schema=without_member_ids(definition.schema))


datasets: Final = Table(
    "datasets",
    metadata,
    tenant_column(),
    id_column("id"),
    text_column("name"),
    # Without the ids of members, which the release before refuses.
    json_column("definition", DatasetDefinition, stored=_plain_definition),
    # Those of its schema.
    json_column("member_ids", MemberIds, nullable=True),
    # Settings that are not of the table are columns, and rows of `dataset_labels`: they change without a version.
    Column("description", Text),
    integer_column("expected_every_seconds", nullable=True),
    timestamp_column("created_at", default=True),
    timestamp_column("deleted_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    of_tenant(),
    Index(
        "datasets_live_name", "tenant_id", "name", unique=True, postgresql_where=text("deleted_at IS NULL")
    ),
)

dataset_labels: Final = Table(
    "dataset_labels",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("key"),
    text_column("value"),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "key"),
    # A release that does not know the labels deletes datasets, too.
    ForeignKeyConstraint(
        ["tenant_id", "dataset_id"], ["datasets.tenant_id", "datasets.id"], ondelete="CASCADE"
    ),
    # Equality of texts is leakproof, so that a filter finds its rows under row level security.
    Index("dataset_labels_value", "tenant_id", "key", "value", "dataset_id"),
)

# The one hot row of a dataset, locked by each commit. It is apart from `datasets` so that accepting a write,
# which takes a share of the dataset's row, never waits behind a commit.
heads: Final = Table(
    "heads",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    integer_column("version", default=0),
    integer_column("next_offset", default=0),
    integer_column("earliest_offset", default=0),
    timestamp_column("committed_at", nullable=True),
    # The files of earlier versions are kept no longer, unless a name or a reader holds them.
    integer_column("earliest_version", default=0),
    # How far events are complete, where the dataset or the inputs of the view declare a watermark. It never goes back.
    timestamp_column("watermark", nullable=True),
    # Until then no writes are claimed: a table service waits for those that run to end, to publish between two groups.
    timestamp_column("turn_until", nullable=True),
    # When the first version was made that was not checked yet for the dataset's table services. Set until one is, so
    # that commits in a row leave the index alone.
    timestamp_column("unkept_since", nullable=True, default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    CheckConstraint("0 <= earliest_offset AND earliest_offset <= next_offset", name="offsets"),
    CheckConstraint("0 <= earliest_version AND earliest_version <= version", name="versions"),
    of_dataset(),
    Index("heads_unkept", "unkept_since", postgresql_where=text("unkept_since IS NOT NULL")),
)

schema_versions: Final = Table(
    "schema_versions",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    Column("schema_id", Integer, nullable=False),
    json_column("schema", Schema, stored=without_member_ids),
    json_column("member_ids", MemberIds, nullable=True),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "schema_id"),
    of_dataset(),
)


class _WithMemberIds(Document):
    """A value with a schema, from an array of its stored form and the ids of members. It has an id for each member."""

    cache_ok = True

    def __init__(self, type_: Any) -> None:
        super().__init__(type_)
        self._pairs = Document(tuple[type_, MemberIds | None])

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        pair = self._pairs.process_result_value(value, dialect)
        return None if pair is None else _identified(*pair)


def _identified(value: Any, member_ids: MemberIds | None) -> Any:
    if isinstance(value, Schema):
        return with_member_ids(value, member_ids)
    schema = with_member_ids(value.schema, member_ids)
    return value if schema is value.schema else msgspec.structs.replace(value, schema=schema)


def _joined(table: Table, name: str, type_: Any) -> ColumnElement[Any]:
    pair = func.json_build_array(table.c[name], table.c.member_ids)
    return type_coerce(pair, _WithMemberIds(type_)).label(name)


DEFINITION: Final = _joined(datasets, "definition", DatasetDefinition)
"""The definition of a dataset, as queries read it."""
SCHEMA: Final = _joined(schema_versions, "schema", Schema)
"""One of the schemas of a dataset, as queries read it."""

uploads: Final = Table(
    "uploads",
    metadata,
    tenant_column(),
    id_column("id"),
    id_column("dataset_id"),
    Column("path", Text, nullable=False),
    integer_column("size_bytes"),
    Column("checksum", Text, nullable=False),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    of_dataset(),
)
