"""The tables.

Every row belongs to a tenant: `tenant_id` leads every key, and its default is the tenant of the transaction,
so that no statement names it; row level security (see the migrations) hides all others. Two keys reach across
tenants because they must: the digest of an API key tells which tenant asks, and tenants' own names differ.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.lake.dataset import DatasetDefinition
from app.lake.file_group import ColumnStatistics
from app.lake.instant import RowCounts
from app.lake.schema import Schema
from app.services.model import Fault, Progress, WriteRequest
from app.store.document import Document

metadata: Final = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(referred_table_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

_CURRENT_TENANT: Final = text("(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid")
_UNFINISHED: Final = text("state IN ('queued', 'running')")


def _tenant() -> Column[str]:
    return Column("tenant_id", Uuid(as_uuid=False), nullable=False, server_default=_CURRENT_TENANT)


def _id(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Uuid(as_uuid=False), nullable=nullable)


def _word(name: str, *, nullable: bool = False) -> Column[str]:
    # Bytewise order: the same on every server, and the order that paging tokens continue.
    return Column(name, Text(collation="C"), nullable=nullable)


def _number(name: str, *, nullable: bool = False, default: int | None = None) -> Column[int]:
    return Column(
        name, BigInteger, nullable=nullable, server_default=None if default is None else text(str(default))
    )


def _moment(name: str, *, nullable: bool = False, default: bool = False) -> Column[Any]:
    return Column(
        name,
        DateTime(timezone=True),
        nullable=nullable,
        server_default=func.clock_timestamp() if default else None,
    )


def _document(name: str, type_: Any, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Document(type_), nullable=nullable)


def _of_dataset() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant_id", "dataset_id"], ["datasets.tenant_id", "datasets.id"])


def _of_tenant() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"])


tenants: Final = Table(
    "tenants",
    metadata,
    _tenant(),
    _word("name"),
    _moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id"),
    UniqueConstraint("name"),
)

api_keys: Final = Table(
    "api_keys",
    metadata,
    _tenant(),
    _id("id"),
    Column("digest", LargeBinary, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("name", Text, nullable=False),
    _moment("created_at", default=True),
    _moment("revoked_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("digest"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    _of_tenant(),
)

datasets: Final = Table(
    "datasets",
    metadata,
    _tenant(),
    _id("id"),
    _word("name"),
    _document("definition", DatasetDefinition),
    _moment("created_at", default=True),
    _moment("deleted_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    _of_tenant(),
    Index(
        "datasets_live_name", "tenant_id", "name", unique=True, postgresql_where=text("deleted_at IS NULL")
    ),
)

# The one hot row of a dataset, locked by each commit. It is apart from `datasets` so that accepting a write,
# which takes a share of the dataset's row, never waits behind a commit.
heads: Final = Table(
    "heads",
    metadata,
    _tenant(),
    _id("dataset_id"),
    _number("version", default=0),
    _number("next_offset", default=0),
    _number("earliest_offset", default=0),
    _moment("committed_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    CheckConstraint("0 <= earliest_offset AND earliest_offset <= next_offset", name="offsets"),
    _of_dataset(),
)

schema_versions: Final = Table(
    "schema_versions",
    metadata,
    _tenant(),
    _id("dataset_id"),
    Column("schema_id", Integer, nullable=False),
    _document("schema", Schema),
    _moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "schema_id"),
    _of_dataset(),
)

uploads: Final = Table(
    "uploads",
    metadata,
    _tenant(),
    _id("id"),
    _id("dataset_id"),
    Column("path", Text, nullable=False),
    _number("size_bytes"),
    Column("checksum", Text, nullable=False),
    _moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    _of_dataset(),
)

jobs: Final = Table(
    "jobs",
    metadata,
    _tenant(),
    _id("id"),
    # The order of acceptance. It has gaps (rolled back transactions), which matter to no one.
    Column("seq", BigInteger, Identity(always=True), nullable=False),
    _id("dataset_id"),
    _word("instant_id"),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    _document("request", WriteRequest),
    _number("epoch", default=0),
    _number("attempts", default=0),
    # Set while a job waits whose last run died (worker gone, or a fault of its own): the next is made alone.
    Column("abandoned", Boolean, nullable=False, server_default=text("false")),
    Column("owner", Text),
    # The job that leads the group commit this job was claimed for.
    _id("group_id", nullable=True),
    _moment("lease_until", nullable=True),
    _document("progress", Progress),
    _number("committed_version", nullable=True),
    _number("first_offset", nullable=True),
    _number("last_offset", nullable=True),
    _document("rows", RowCounts),
    _document("error", Fault, nullable=True),
    _moment("created_at", default=True),
    _moment("started_at", nullable=True),
    _moment("finished_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name="state"),
    CheckConstraint("(state = 'running') = (lease_until IS NOT NULL AND group_id IS NOT NULL)", name="lease"),
    CheckConstraint("(state = 'succeeded') = (committed_version IS NOT NULL)", name="outcome"),
    CheckConstraint("(finished_at IS NOT NULL) = (state NOT IN ('queued', 'running'))", name="finish"),
    _of_dataset(),
    Index("jobs_unfinished", "tenant_id", "dataset_id", "seq", postgresql_where=_UNFINISHED),
)

idempotency: Final = Table(
    "idempotency",
    metadata,
    _tenant(),
    _id("dataset_id"),
    _word("key"),
    Column("request_hash", Text, nullable=False),
    _id("job_id"),
    _moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "key"),
    # Checked at COMMIT: the key is reserved before its job is inserted.
    ForeignKeyConstraint(
        ["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"], deferrable=True, initially="DEFERRED"
    ),
)

instants: Final = Table(
    "instants",
    metadata,
    _tenant(),
    _id("dataset_id"),
    _word("id"),
    Column("action", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("state", Text, nullable=False),
    _id("job_id", nullable=True),
    # Null for an instant that completed without changing a file.
    _number("version", nullable=True),
    _moment("requested_at", default=True),
    _moment("completed_at", nullable=True),
    _document("counts", RowCounts),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "id"),
    UniqueConstraint("tenant_id", "job_id"),
    CheckConstraint("state IN ('requested', 'inflight', 'completed', 'rolled_back')", name="state"),
    CheckConstraint("version IS NULL OR state = 'completed'", name="version"),
    _of_dataset(),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
)

commits: Final = Table(
    "commits",
    metadata,
    _tenant(),
    _id("dataset_id"),
    _number("version"),
    Column("action", Text, nullable=False),
    # The instant that leads the group; all of them carry the version.
    _word("instant_id"),
    _moment("committed_at"),
    _number("first_offset"),
    _number("next_offset"),
    Column("schema_id", Integer, nullable=False),
    _number("files_added"),
    _number("files_removed"),
    _number("bytes_added"),
    _document("counts", RowCounts),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "version"),
    CheckConstraint("version > 0", name="version"),
    CheckConstraint("0 <= first_offset AND first_offset <= next_offset", name="offsets"),
    _of_dataset(),
    Index("commits_committed_at", "tenant_id", "dataset_id", "committed_at", unique=True),
)


def _of_commit(column: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "dataset_id", column], ["commits.tenant_id", "commits.dataset_id", "commits.version"]
    )


files: Final = Table(
    "files",
    metadata,
    _tenant(),
    _id("dataset_id"),
    _word("path"),
    _word("file_group"),
    _word("partition_path"),
    Column("bucket", Integer, nullable=False),
    _number("added_version"),
    _number("removed_version", nullable=True),
    _number("size_bytes"),
    _number("row_count"),
    Column("checksum", Text, nullable=False),
    Column("schema_id", Integer, nullable=False),
    _document("statistics", dict[str, ColumnStatistics]),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    CheckConstraint("removed_version > added_version", name="lifetime"),
    _of_commit("added_version"),
    # Planning reads the live files of some groups, a look at an older version also those removed since, and a
    # conflict check what came and went lately: each reads its own answer, however old the table is.
    Index(
        "files_live",
        "tenant_id",
        "dataset_id",
        "file_group",
        postgresql_where=text("removed_version IS NULL"),
    ),
    Index(
        "files_removed",
        "tenant_id",
        "dataset_id",
        "removed_version",
        postgresql_where=text("removed_version IS NOT NULL"),
    ),
    Index("files_added", "tenant_id", "dataset_id", "added_version"),
)

changelog_files: Final = Table(
    "changelog_files",
    metadata,
    _tenant(),
    _id("dataset_id"),
    _word("path"),
    _word("file_group"),
    _number("version"),
    _number("first_offset"),
    _number("row_count"),
    _number("size_bytes"),
    Column("checksum", Text, nullable=False),
    Column("schema_id", Integer, nullable=False),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    CheckConstraint("row_count > 0", name="rows"),
    _of_commit("version"),
    Index("changelog_files_first_offset", "tenant_id", "dataset_id", "first_offset", unique=True),
)

outbox: Final = Table(
    "outbox",
    metadata,
    _tenant(),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("topic", Text, nullable=False),
    _id("dataset_id"),
    _moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    Index("outbox_order", "id"),
    # The application may leave messages but not read them, not even the number of its own.
    implicit_returning=False,
)

# Workers serve every tenant, so this table has none; only the relay's role sees it.
workers: Final = Table(
    "workers",
    metadata,
    _word("id"),
    _moment("started_at", default=True),
    _moment("polled_at", default=True),
    PrimaryKeyConstraint("id"),
)
