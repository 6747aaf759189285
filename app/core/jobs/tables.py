"""The tables.

Every row belongs to a tenant: `tenant_id` leads every key, and its default is the tenant of the transaction,
so that no statement names it; row level security (see the migrations) hides all others. Two keys reach across
tenants because they must: the digest of an API key identifies the tenant of a request, and tenants' own names differ.
"""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from app.core.jobs.kinds.declared import AnyTask
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import Progress
from app.infra.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    of_dataset,
    of_tenant,
    of_transaction,
    tenant_column,
    text_column,
    timestamp_column,
)
from app.infra.db.stored_json import Document
from app.kernel.format.errors import Fault
from app.kernel.format.instant import RowCounts

UNFINISHED: Final = text("state IN ('queued', 'running')")

# Writes to several datasets, all or nothing.
transactions: Final = Table(
    "transactions",
    metadata,
    tenant_column(),
    id_column("id"),
    text_column("idempotency_key", nullable=True),
    Column("request_hash", Text, nullable=False),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "idempotency_key"),
    of_tenant(),
)

jobs: Final = Table(
    "jobs",
    metadata,
    tenant_column(),
    id_column("id"),
    # The order of acceptance, with gaps after transactions that were rolled back.
    Column("seq", BigInteger, Identity(always=True), nullable=False),
    id_column("dataset_id"),
    text_column("instant_id", nullable=True),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    # The request of a job of queue `writes`; `task` has that of a job of queue `tasks`.
    json_column("request", WriteRequest, nullable=True),
    integer_column("epoch", default=0),
    integer_column("attempts", default=0),
    # Attempts that do not count: the storage or the database was away, the time slice was used up, or the process ended
    # for another reason.
    integer_column("outages", default=0),
    # How often the process was killed in which the job ran, by this job or by one beside it.
    integer_column("deaths", default=0),
    # Set while a job waits after such an attempt: when it may be claimed.
    timestamp_column("not_before", nullable=True),
    # Set while a job waits whose last run ended with a fault or with its worker: the next run is made alone.
    Column("abandoned", Boolean, nullable=False, server_default=text("false")),
    # Set while a job runs whose group has lost several races: no other group of its datasets is claimed beside it.
    Column("contended", Boolean, nullable=False, server_default=text("false")),
    Column("owner", Text),
    # The first job of the group that this job was claimed with.
    id_column("group_id", nullable=True),
    timestamp_column("lease_until", nullable=True),
    json_column("progress", Progress),
    integer_column("committed_version", nullable=True),
    integer_column("first_offset", nullable=True),
    integer_column("last_offset", nullable=True),
    json_column("rows", RowCounts, stored=attrgetter("stored")),
    json_column("error", Fault, nullable=True),
    timestamp_column("created_at", default=True),
    timestamp_column("started_at", nullable=True),
    # The start of the attempt that runs, or that ended the job.
    timestamp_column("claimed_at", nullable=True),
    timestamp_column("finished_at", nullable=True),
    # A write that must not share a commit: a claimed group ends before it, and it is a group of its own.
    Column("alone", Boolean, nullable=False, server_default=text("false")),
    # A round of a source whose rows SQL makes.
    Column("transforms", Boolean, nullable=False, server_default=text("false")),
    # A write whose rows SQL makes, and that has used up a time slice.
    Column("slow", Boolean, nullable=False, server_default=text("false")),
    # The transaction that the write is part of: all its writes are claimed, and published, together.
    id_column("transaction_id", nullable=True),
    # Writes of a dataset run one group after another; tasks run beside them, but exclusive tasks one at a time.
    Column("lane", Text, nullable=False, server_default=text("'writes'")),
    json_column("task", AnyTask, nullable=True),
    json_column("result", dict[str, Any], nullable=True),
    # The API key that requested the job; null for the service itself.
    id_column("actor", nullable=True),
    # What its stages took in milliseconds, by name; null until something is known.
    json_column("timings", dict[str, int], nullable=True),
    # How often it was planned again after the commit of another job.
    Column("replans", Integer, nullable=False, server_default=text("0")),
    # The rows of a small write until it ends. Only claims read them.
    Column("staged_rows", LargeBinary, nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name="state"),
    CheckConstraint("lane IN ('writes', 'tasks')", name="lane"),
    CheckConstraint(
        "(request IS NOT NULL) = (lane = 'writes') AND (task IS NOT NULL) = (lane = 'tasks') "
        "AND (instant_id IS NOT NULL OR lane = 'tasks')",
        name="request",
    ),
    CheckConstraint("(state = 'running') = (lease_until IS NOT NULL AND group_id IS NOT NULL)", name="lease"),
    CheckConstraint(
        "(committed_version IS NULL OR state = 'succeeded') "
        "AND (committed_version IS NOT NULL OR state <> 'succeeded' OR lane = 'tasks')",
        name="outcome",
    ),
    CheckConstraint("(finished_at IS NOT NULL) = (state NOT IN ('queued', 'running'))", name="finish"),
    of_dataset(),
    of_transaction(),
    Index("jobs_accepted", "tenant_id", "seq"),
    Index("jobs_of_dataset", "tenant_id", "dataset_id", "seq"),
    # What waits and what runs of each queue, for the polls.
    Index("jobs_queued", "lane", "tenant_id", "dataset_id", postgresql_where=text("state = 'queued'")),
    Index("jobs_running", "lane", "tenant_id", "dataset_id", postgresql_where=text("state = 'running'")),
    Index("jobs_unfinished", "tenant_id", "dataset_id", "seq", postgresql_where=UNFINISHED),
    Index(
        "jobs_transaction", "tenant_id", "transaction_id", postgresql_where=text("transaction_id IS NOT NULL")
    ),
    Index(
        "jobs_finished", "tenant_id", "finished_at", "id", postgresql_where=text("finished_at IS NOT NULL")
    ),
    # Of all tenants, for metrics.
    Index("jobs_failed", "finished_at", postgresql_where=text("state = 'failed'")),
)

idempotency: Final = Table(
    "idempotency",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("key"),
    Column("request_hash", Text, nullable=False),
    id_column("job_id"),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "key"),
    # Checked at COMMIT: the key is reserved before its job is inserted.
    ForeignKeyConstraint(
        ["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"], deferrable=True, initially="DEFERRED"
    ),
    Index("idempotency_job", "tenant_id", "job_id"),
)

instants: Final = Table(
    "instants",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("id"),
    Column("action", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("state", Text, nullable=False),
    id_column("job_id", nullable=True),
    # Null for an instant that completed without changing a file.
    integer_column("version", nullable=True),
    timestamp_column("requested_at", default=True),
    timestamp_column("completed_at", nullable=True),
    json_column("counts", RowCounts, stored=attrgetter("stored")),
    # The API key that requested an instant without a job; of the others it is their job's.
    id_column("actor", nullable=True),
    # Of a write, the metadata of its commit.
    json_column("metadata", dict[str, str], nullable=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "id"),
    UniqueConstraint("tenant_id", "job_id"),
    CheckConstraint("state IN ('requested', 'inflight', 'completed', 'rolled_back')", name="state"),
    CheckConstraint("version IS NULL OR state = 'completed'", name="version"),
    CheckConstraint("actor IS NULL OR job_id IS NULL", name="actor"),
    of_dataset(),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
    # Unfinished instants, however long the timeline is.
    Index(
        "instants_open",
        "tenant_id",
        "dataset_id",
        "id",
        postgresql_where=text("state IN ('requested', 'inflight')"),
    ),
)

# Batches of streams: each is committed once, however often it is sent.
writer_batches: Final = Table(
    "writer_batches",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("writer_id"),
    integer_column("batch_id"),
    id_column("job_id"),
    timestamp_column("created_at", default=True),
    # Null for rows in uploads, and for batches that an earlier release accepted: these are not compared.
    Column("rows_digest", Text, nullable=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "writer_id", "batch_id"),
    of_dataset(),
    # Checked at COMMIT: the batch is reserved before its job is inserted.
    ForeignKeyConstraint(
        ["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"], deferrable=True, initially="DEFERRED"
    ),
    Index("writer_batches_job", "tenant_id", "job_id"),
)

outbox: Final = Table(
    "outbox",
    metadata,
    tenant_column(),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("topic", Text, nullable=False),
    id_column("dataset_id"),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    Index("outbox_order", "id"),
    # The application may insert messages but not read them, not even the ids of its own.
    implicit_returning=False,
)

# The register of processes. They serve every tenant, so this table has none; only the relay's role sees it.
workers: Final = Table(
    "workers",
    metadata,
    text_column("id"),
    timestamp_column("started_at", default=True),
    timestamp_column("polled_at", default=True),
    # Loops of the process that stand still, and since when.
    Column("stalled", Document(dict[str, datetime]), nullable=False, server_default=text("'{}'")),
    # Why processes that belong to it do not start, by their names.
    Column("faults", Document(dict[str, str]), nullable=False, server_default=text("'{}'")),
    # The executors that it has on a cluster; null where Spark runs in the process, or there is none.
    Column("executors", Integer),
    Column("kind", Text, nullable=False, server_default=text("'worker'")),
    Column("host", Text, nullable=False, server_default=text("''")),
    Column("pid", Integer, nullable=False, server_default=text("0")),
    Column("version", Text, nullable=False, server_default=text("''")),
    # Of the fullest of its disks.
    integer_column("disk_free_bytes", nullable=True),
    integer_column("disk_total_bytes", nullable=True),
    # What the folder is for.
    Column("disk_folder", Text),
    # The memory that it occupies.
    integer_column("resident_bytes", nullable=True),
    PrimaryKeyConstraint("id"),
)
