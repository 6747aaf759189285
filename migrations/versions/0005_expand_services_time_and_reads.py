"""Table services beside writes, named versions, read leases, and archived instants.

Revision ID: 0005
Revises: 0004
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
DEFAULT = f"DEFAULT {TENANT}"

STATEMENTS = (
    # Table services are tasks that have an instant, and may make a version.
    """
    ALTER TABLE jobs
        ADD COLUMN actor uuid,
        DROP CONSTRAINT jobs_request_check,
        DROP CONSTRAINT jobs_outcome_check,
        ADD CONSTRAINT jobs_request_check CHECK (
            (request IS NOT NULL) = (lane = 'writes') AND (task IS NOT NULL) = (lane = 'tasks')
            AND (instant_id IS NOT NULL OR lane = 'tasks')
        ),
        ADD CONSTRAINT jobs_outcome_check CHECK (
            (committed_version IS NULL OR state = 'succeeded')
            AND (committed_version IS NOT NULL OR state <> 'succeeded' OR lane = 'tasks')
        )
    """,
    """
    ALTER TABLE heads
        ADD COLUMN earliest_version bigint DEFAULT 0 NOT NULL,
        ADD COLUMN turn_until timestamptz,
        ADD COLUMN unkept_since timestamptz DEFAULT clock_timestamp(),
        ADD CONSTRAINT heads_versions_check CHECK (0 <= earliest_version AND earliest_version <= version)
    """,
    # Compactions that wait in the queue of writes when the release changes become tasks. Row level security would hide
    # them from their owner, too.
    "ALTER TABLE jobs NO FORCE ROW LEVEL SECURITY",
    """
    UPDATE jobs SET lane = 'tasks', request = NULL, task = '{"task": "compaction"}'
    WHERE kind = 'compaction'
    """,
    "ALTER TABLE jobs FORCE ROW LEVEL SECURITY",
    # The actor of an instant with a job is the actor of the job.
    """
    ALTER TABLE instants
        ADD COLUMN actor uuid,
        ADD CONSTRAINT instants_actor_check CHECK (actor IS NULL OR job_id IS NULL)
    """,
    # Commits have the bytes of data files that they added and removed; files listed again were counted as new before.
    "ALTER TABLE commits ADD COLUMN bytes_removed bigint DEFAULT 0 NOT NULL",
    *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY" for table in ("commits", "files")),
    """
    UPDATE commits SET
        bytes_added = (
            SELECT coalesce(sum(size_bytes), 0) FROM files
            WHERE files.tenant_id = commits.tenant_id AND files.dataset_id = commits.dataset_id
                AND added_version = commits.version AND coalesce(written_version, added_version) = commits.version
        ),
        bytes_removed = (
            SELECT coalesce(sum(size_bytes), 0) FROM files AS gone
            WHERE gone.tenant_id = commits.tenant_id AND gone.dataset_id = commits.dataset_id
                AND removed_version = commits.version AND NOT EXISTS (
                    SELECT FROM files AS again
                    WHERE again.tenant_id = gone.tenant_id AND again.dataset_id = gone.dataset_id
                        AND again.path = gone.path AND again.added_version = commits.version
                )
        )
    """,
    *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY" for table in ("commits", "files")),
    # The order of the rows of a clustered file.
    "ALTER TABLE files ADD COLUMN clustered_by text",
    # Expired versions are removed, and old instants are archived.
    """
    CREATE INDEX instants_open ON instants (tenant_id, dataset_id, id)
        WHERE state IN ('requested', 'inflight')
    """,
    "GRANT DELETE ON files, instants TO headwater_app",
    "GRANT UPDATE (earliest_version, turn_until, unkept_since) ON heads TO headwater_app",
    "CREATE INDEX heads_unkept ON heads (unkept_since) WHERE unkept_since IS NOT NULL",
    f"""
    CREATE TABLE named_versions (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        name text COLLATE "C" NOT NULL,
        kind text NOT NULL,
        version bigint NOT NULL,
        automatic boolean DEFAULT false NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        expires_at timestamptz,
        CONSTRAINT named_versions_pkey PRIMARY KEY (tenant_id, dataset_id, name),
        CONSTRAINT named_versions_kind_check CHECK (kind IN ('savepoint', 'tag')),
        CONSTRAINT named_versions_version_check CHECK (version >= 0),
        CONSTRAINT named_versions_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX named_versions_version ON named_versions (tenant_id, dataset_id, version)",
    f"""
    CREATE TABLE read_leases (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        reader text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        lease_until timestamptz NOT NULL,
        CONSTRAINT read_leases_pkey PRIMARY KEY (tenant_id, dataset_id, reader, version),
        CONSTRAINT read_leases_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE timeline_archives (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        path text COLLATE "C" NOT NULL,
        first_instant text COLLATE "C" NOT NULL,
        last_instant text COLLATE "C" NOT NULL,
        row_count bigint NOT NULL,
        size_bytes bigint NOT NULL,
        checksum text NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT timeline_archives_pkey PRIMARY KEY (tenant_id, dataset_id, path),
        CONSTRAINT timeline_archives_order_check CHECK (first_instant <= last_instant),
        CONSTRAINT timeline_archives_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE UNIQUE INDEX timeline_archives_last ON timeline_archives (tenant_id, dataset_id, last_instant)",
    f"""
    CREATE TABLE read_files (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        path text COLLATE "C" NOT NULL,
        job_id uuid NOT NULL,
        number bigint NOT NULL,
        name text COLLATE "C" NOT NULL,
        row_count bigint NOT NULL,
        size_bytes bigint NOT NULL,
        checksum text NOT NULL,
        CONSTRAINT read_files_pkey PRIMARY KEY (tenant_id, dataset_id, path),
        CONSTRAINT read_files_jobs_fkey FOREIGN KEY (tenant_id, job_id) REFERENCES jobs (tenant_id, id)
    )
    """,
    "CREATE UNIQUE INDEX read_files_job ON read_files (tenant_id, job_id, number)",
    f"""
    CREATE TABLE table_keeping (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        wake_at timestamptz,
        owner text,
        epoch bigint DEFAULT 0 NOT NULL,
        lease_until timestamptz,
        memory json NOT NULL,
        CONSTRAINT table_keeping_pkey PRIMARY KEY (tenant_id, dataset_id),
        CONSTRAINT table_keeping_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE partition_feeds (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        version bigint DEFAULT 0 NOT NULL,
        next_event bigint DEFAULT 0 NOT NULL,
        CONSTRAINT partition_feeds_pkey PRIMARY KEY (tenant_id, dataset_id),
        CONSTRAINT partition_feeds_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE partition_marks (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        path text COLLATE "C" NOT NULL,
        changed_version bigint NOT NULL,
        changed_at timestamptz NOT NULL,
        done_version bigint,
        done_at timestamptz,
        marker_version bigint,
        CONSTRAINT partition_marks_pkey PRIMARY KEY (tenant_id, dataset_id, path),
        CONSTRAINT partition_marks_done_check CHECK ((done_version IS NULL) = (done_at IS NULL)),
        CONSTRAINT partition_marks_order_check CHECK (done_version >= changed_version),
        CONSTRAINT partition_marks_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    # Webhooks can deliver events of partitions.
    """
    ALTER TABLE consumers
        DROP CONSTRAINT consumers_kind_check,
        ADD CONSTRAINT consumers_kind_check
            CHECK (kind IN ('reader', 'webhook', 'partition_webhook', 'export', 'view'))
    """,
    """
    CREATE INDEX partition_marks_open ON partition_marks (tenant_id, dataset_id, changed_at) WHERE done_at IS NULL
    """,
    f"""
    CREATE TABLE partition_events (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        number bigint NOT NULL,
        kind text NOT NULL,
        partition text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        reason text,
        at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT partition_events_pkey PRIMARY KEY (tenant_id, dataset_id, number),
        CONSTRAINT partition_events_kind_check CHECK (kind IN ('done', 'reopened')),
        CONSTRAINT partition_events_reason_check CHECK ((reason IS NOT NULL) = (kind = 'done')),
        CONSTRAINT partition_events_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX table_keeping_wake ON table_keeping (wake_at) WHERE wake_at IS NOT NULL",
    *(
        statement.format(table=table)
        for table in (
            "named_versions", "read_leases", "timeline_archives", "read_files", "table_keeping",
            "partition_feeds", "partition_marks", "partition_events",
        )  # fmt: skip
        for statement in (
            "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            "CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO headwater_app",
        )
    ),
    # The relay finds the datasets with versions that are not reconciled.
    "GRANT SELECT (tenant_id, dataset_id, wake_at, lease_until) ON table_keeping TO headwater_relay",
    "CREATE POLICY relay ON table_keeping FOR SELECT TO headwater_relay USING (true)",
    "GRANT SELECT (unkept_since) ON heads TO headwater_relay",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
