"""The tables of versions and their files: commits, data, changelog and quarantine files."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    case,
    text,
)

from app.infra.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    of_dataset,
    tenant_column,
    text_column,
    timestamp_column,
)
from app.kernel.format.file_group import ColumnStatistics, DeletionVector, IndexFile
from app.kernel.format.instant import RowCounts

commits: Final = Table(
    "commits",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    integer_column("version"),
    Column("action", Text, nullable=False),
    # The first instant of the group; all of the group have the version.
    text_column("instant_id"),
    timestamp_column("committed_at"),
    integer_column("first_offset"),
    integer_column("next_offset"),
    Column("schema_id", Integer, nullable=False),
    integer_column("files_added"),
    integer_column("files_removed"),
    # Of data files that the commit added and removed; a file that is listed again counts as neither.
    integer_column("bytes_added"),
    integer_column("bytes_removed", default=0),
    json_column("counts", RowCounts, stored=attrgetter("stored")),
    # The watermark after the commit.
    timestamp_column("watermark", nullable=True),
    # That of its writes which have some, in the order of their acceptance, and its size as JSON.
    json_column("metadata", tuple[dict[str, str], ...], nullable=True),
    Column("metadata_bytes", Integer, nullable=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "version"),
    CheckConstraint("version > 0", name="version"),
    CheckConstraint("0 <= first_offset AND first_offset <= next_offset", name="offsets"),
    of_dataset(),
    Index("commits_committed_at", "tenant_id", "dataset_id", "committed_at", unique=True),
    # Finds the commit of a change.
    Index("commits_next_offset", "tenant_id", "dataset_id", "next_offset"),
)


def _of_commit(column: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "dataset_id", column], ["commits.tenant_id", "commits.dataset_id", "commits.version"]
    )


# As Postgres prints it: with these line breaks a test finds it equal to that of the migrations.
_WRITTEN: Final = "(\nCASE\n WHEN written_version IS NULL THEN added_version\n ELSE written_version\nEND)"

files: Final = Table(
    "files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("path"),
    text_column("file_group"),
    text_column("partition_path"),
    Column("bucket", Integer, nullable=False),
    integer_column("added_version"),
    integer_column("removed_version", nullable=True),
    integer_column("size_bytes"),
    integer_column("row_count"),
    Column("checksum", Text, nullable=False),
    Column("schema_id", Integer, nullable=False),
    json_column("statistics", dict[str, ColumnStatistics]),
    Column("kind", Text, nullable=False, server_default=text("'base'")),
    # The commit that wrote the file, if earlier than `added_version`: a deletion vector has changed since.
    integer_column("written_version", nullable=True),
    # The time of that commit; null for base files of older releases.
    timestamp_column("written_at", nullable=True),
    integer_column("first_offset", nullable=True),
    json_column("deletion_vector", DeletionVector, nullable=True),
    json_column("index_file", IndexFile, nullable=True),
    # Identifies the order of its rows.
    Column("clustered_by", Text, nullable=True),
    # How its columns are stored; null for files of releases without layouts.
    Column("layout", SmallInteger, nullable=True),
    # When a clean found that no retained version uses the file. Scans that were planned before still read it.
    timestamp_column("unused_at", nullable=True),
    # The paths in the two documents above, for queries of references to a file.
    Column("vector_path", Text, nullable=True),
    Column("index_path", Text, nullable=True),
    # A file is listed again with each new deletion vector.
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path", "added_version"),
    CheckConstraint("kind IN ('base', 'log', 'postponed', 'tombstone')", name="kind"),
    CheckConstraint("removed_version > added_version", name="lifetime"),
    _of_commit("added_version"),
    # Planning reads the live files of some groups, a read of an older version also files removed since, and a conflict
    # check files that were added or removed lately. Each reads only its result, however old the table is.
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
    Index(
        "files_vector",
        "tenant_id",
        "dataset_id",
        "vector_path",
        postgresql_where=text("vector_path IS NOT NULL"),
    ),
    Index(
        "files_index",
        "tenant_id",
        "dataset_id",
        "index_path",
        postgresql_where=text("index_path IS NOT NULL"),
    ),
    Index("files_added", "tenant_id", "dataset_id", "added_version"),
    # Manifests of open tables list live files by the commits that wrote them.
    Index(
        "files_written",
        "tenant_id",
        "dataset_id",
        text(_WRITTEN),
        postgresql_where=text("removed_version IS NULL"),
    ),
    Index("files_unused", "tenant_id", "unused_at", postgresql_where=text("unused_at IS NOT NULL")),
)

# Segments of changelog files: the changes of one commit to one file group. They are `row_count` rows of the file from
# `first_row` on. A file that a table service merged has several segments, and a row for each.
changelog_files: Final = Table(
    "changelog_files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("path"),
    text_column("file_group"),
    integer_column("version"),
    integer_column("first_offset"),
    integer_column("row_count"),
    integer_column("size_bytes"),
    Column("checksum", Text, nullable=False),
    Column("schema_id", Integer, nullable=False),
    # The least and greatest offset of the changes that its rows take back; null if unknown or none.
    integer_column("corrects_min", nullable=True),
    integer_column("corrects_max", nullable=True),
    integer_column("first_row", default=0),
    # Rows and segments of a merged file; null for a file as its commit wrote it.
    integer_column("file_rows", nullable=True),
    integer_column("file_segments", nullable=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "first_offset"),
    CheckConstraint("row_count > 0", name="rows"),
    _of_commit("version"),
    Index("changelog_files_path", "tenant_id", "dataset_id", "path"),
    # Files that may be merged, by their first segment.
    Index(
        "changelog_files_small",
        "tenant_id",
        "dataset_id",
        "first_offset",
        postgresql_where=text("first_row = 0 AND size_bytes < 8388608"),
    ),
    Index(
        "changelog_files_corrects",
        "tenant_id",
        "dataset_id",
        "corrects_max",
        postgresql_where=text("corrects_max IS NOT NULL"),
    ),
)

# In this form also in the index above, which Postgres uses only for a condition without parameters.
IS_SMALL_CHANGELOG: Final = text("first_row = 0 AND size_bytes < 8388608")
# The share of a segment in the bytes of its file.
SEGMENT_BYTES: Final = case(
    (changelog_files.c.file_rows.is_(None), changelog_files.c.size_bytes),
    else_=changelog_files.c.size_bytes * changelog_files.c.row_count / changelog_files.c.file_rows,
)

# Changelog files that a table service has replaced by a merged one. Readers may still have their paths.
replaced_changelog_files: Final = Table(
    "replaced_changelog_files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("path"),
    integer_column("size_bytes"),
    timestamp_column("replaced_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    of_dataset(),
)

# Bad records that a write quarantined: one file per attempt and per part of the input.
quarantine_files: Final = Table(
    "quarantine_files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    Column("seq", BigInteger, Identity(always=True), nullable=False),
    text_column("path"),
    id_column("job_id"),
    # The row of the write at which the positions in the file start.
    integer_column("first_row", default=0),
    integer_column("row_count"),
    integer_column("size_bytes"),
    Column("checksum", Text, nullable=False),
    timestamp_column("written_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    CheckConstraint("row_count > 0", name="rows"),
    of_dataset(),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
    Index("quarantine_files_seq", "tenant_id", "dataset_id", "seq"),
    Index("quarantine_files_job", "tenant_id", "job_id"),
)

# Redriven records of quarantine files, and the job of each.
quarantine_redrives: Final = Table(
    "quarantine_redrives",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("path"),
    # The record's row in its file.
    integer_column("record"),
    id_column("job_id"),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path", "record"),
    ForeignKeyConstraint(
        ["tenant_id", "dataset_id", "path"],
        ["quarantine_files.tenant_id", "quarantine_files.dataset_id", "quarantine_files.path"],
        ondelete="CASCADE",
    ),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
    Index("quarantine_redrives_job", "tenant_id", "job_id"),
)


# Savepoints and tags: versions whose files are kept as long as these are.
named_versions: Final = Table(
    "named_versions",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("name"),
    Column("kind", Text, nullable=False),
    integer_column("version"),
    Column("automatic", Boolean, nullable=False, server_default=text("false")),
    timestamp_column("created_at", default=True),
    timestamp_column("expires_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "name"),
    CheckConstraint("kind IN ('savepoint', 'tag')", name="kind"),
    CheckConstraint("version >= 0", name="version"),
    of_dataset(),
    Index("named_versions_version", "tenant_id", "dataset_id", "version"),
)

# Read leases: the files of a version stay until its leases have ended, even if the version expires. Those with a reader
# that ends with ` feed` keep the changes after the version instead.
read_leases: Final = Table(
    "read_leases",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    # The name of the reader: a job with its epoch. It may read several versions.
    text_column("reader"),
    integer_column("version"),
    timestamp_column("lease_until"),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "reader", "version"),
    of_dataset(),
)

# Files of archived instants, in the order of their ids.
timeline_archives: Final = Table(
    "timeline_archives",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("path"),
    text_column("first_instant"),
    text_column("last_instant"),
    integer_column("row_count"),
    integer_column("size_bytes"),
    Column("checksum", Text, nullable=False),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    CheckConstraint("first_instant <= last_instant", name="order"),
    of_dataset(),
    Index("timeline_archives_last", "tenant_id", "dataset_id", "last_instant", unique=True),
)
