"""The first schema.

Revision ID: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Row level security compares every row with the tenant of the transaction, which the session sets when it begins.
# A setting that was set once in a session reads as the empty string later on, hence NULLIF.
TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
DEFAULT = f"DEFAULT {TENANT}"

# Roles belong to the whole server, so another database's migration may be making them at this moment.
ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
        CREATE ROLE {role} NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""
ROLES = ("headwater_app", "headwater_relay")

TABLES = (
    f"""
    CREATE TABLE tenants (
        tenant_id uuid NOT NULL {DEFAULT},
        name text COLLATE "C" NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id),
        CONSTRAINT tenants_name_key UNIQUE (name)
    )
    """,
    f"""
    CREATE TABLE api_keys (
        tenant_id uuid NOT NULL {DEFAULT},
        id uuid NOT NULL,
        digest bytea NOT NULL,
        scopes text[] NOT NULL,
        name text NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        revoked_at timestamptz,
        CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT api_keys_digest_key UNIQUE (digest),
        CONSTRAINT api_keys_digest_check CHECK (octet_length(digest) = 32),
        CONSTRAINT api_keys_tenants_fkey FOREIGN KEY (tenant_id)
            REFERENCES tenants (tenant_id)
    )
    """,
    f"""
    CREATE TABLE datasets (
        tenant_id uuid NOT NULL {DEFAULT},
        id uuid NOT NULL,
        name text COLLATE "C" NOT NULL,
        definition json NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        deleted_at timestamptz,
        CONSTRAINT datasets_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT datasets_tenants_fkey FOREIGN KEY (tenant_id)
            REFERENCES tenants (tenant_id)
    )
    """,
    "CREATE UNIQUE INDEX datasets_live_name ON datasets (tenant_id, name) WHERE deleted_at IS NULL",
    f"""
    CREATE TABLE heads (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        version bigint DEFAULT 0 NOT NULL,
        next_offset bigint DEFAULT 0 NOT NULL,
        earliest_offset bigint DEFAULT 0 NOT NULL,
        committed_at timestamptz,
        CONSTRAINT heads_pkey PRIMARY KEY (tenant_id, dataset_id),
        CONSTRAINT heads_offsets_check CHECK (0 <= earliest_offset AND earliest_offset <= next_offset),
        CONSTRAINT heads_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE schema_versions (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        schema_id integer NOT NULL,
        schema json NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT schema_versions_pkey PRIMARY KEY (tenant_id, dataset_id, schema_id),
        CONSTRAINT schema_versions_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE uploads (
        tenant_id uuid NOT NULL {DEFAULT},
        id uuid NOT NULL,
        dataset_id uuid NOT NULL,
        path text NOT NULL,
        size_bytes bigint NOT NULL,
        checksum text NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT uploads_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT uploads_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE jobs (
        tenant_id uuid NOT NULL {DEFAULT},
        id uuid NOT NULL,
        seq bigint GENERATED ALWAYS AS IDENTITY,
        dataset_id uuid NOT NULL,
        instant_id text COLLATE "C" NOT NULL,
        kind text NOT NULL,
        state text NOT NULL,
        request json NOT NULL,
        epoch bigint DEFAULT 0 NOT NULL,
        attempts bigint DEFAULT 0 NOT NULL,
        abandoned boolean DEFAULT false NOT NULL,
        owner text,
        group_id uuid,
        lease_until timestamptz,
        progress json NOT NULL,
        committed_version bigint,
        first_offset bigint,
        last_offset bigint,
        rows json NOT NULL,
        error json,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        started_at timestamptz,
        finished_at timestamptz,
        CONSTRAINT jobs_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT jobs_state_check CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
        CONSTRAINT jobs_lease_check CHECK ((state = 'running') = (lease_until IS NOT NULL AND group_id IS NOT NULL)),
        CONSTRAINT jobs_outcome_check CHECK ((state = 'succeeded') = (committed_version IS NOT NULL)),
        CONSTRAINT jobs_finish_check CHECK ((finished_at IS NOT NULL) = (state NOT IN ('queued', 'running'))),
        CONSTRAINT jobs_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX jobs_unfinished ON jobs (tenant_id, dataset_id, seq) WHERE state IN ('queued', 'running')",
    f"""
    CREATE TABLE idempotency (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        key text COLLATE "C" NOT NULL,
        request_hash text NOT NULL,
        job_id uuid NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT idempotency_pkey PRIMARY KEY (tenant_id, dataset_id, key),
        CONSTRAINT idempotency_jobs_fkey FOREIGN KEY (tenant_id, job_id)
            REFERENCES jobs (tenant_id, id) DEFERRABLE INITIALLY DEFERRED
    )
    """,
    f"""
    CREATE TABLE instants (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        id text COLLATE "C" NOT NULL,
        action text NOT NULL,
        operation text NOT NULL,
        state text NOT NULL,
        job_id uuid,
        version bigint,
        requested_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        completed_at timestamptz,
        counts json NOT NULL,
        CONSTRAINT instants_pkey PRIMARY KEY (tenant_id, dataset_id, id),
        CONSTRAINT instants_tenant_id_job_id_key UNIQUE (tenant_id, job_id),
        CONSTRAINT instants_state_check CHECK (state IN ('requested', 'inflight', 'completed', 'rolled_back')),
        CONSTRAINT instants_version_check CHECK (version IS NULL OR state = 'completed'),
        CONSTRAINT instants_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id),
        CONSTRAINT instants_jobs_fkey FOREIGN KEY (tenant_id, job_id)
            REFERENCES jobs (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE commits (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        version bigint NOT NULL,
        action text NOT NULL,
        instant_id text COLLATE "C" NOT NULL,
        committed_at timestamptz NOT NULL,
        first_offset bigint NOT NULL,
        next_offset bigint NOT NULL,
        schema_id integer NOT NULL,
        files_added bigint NOT NULL,
        files_removed bigint NOT NULL,
        bytes_added bigint NOT NULL,
        counts json NOT NULL,
        CONSTRAINT commits_pkey PRIMARY KEY (tenant_id, dataset_id, version),
        CONSTRAINT commits_version_check CHECK (version > 0),
        CONSTRAINT commits_offsets_check CHECK (0 <= first_offset AND first_offset <= next_offset),
        CONSTRAINT commits_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE UNIQUE INDEX commits_committed_at ON commits (tenant_id, dataset_id, committed_at)",
    f"""
    CREATE TABLE files (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        path text COLLATE "C" NOT NULL,
        file_group text COLLATE "C" NOT NULL,
        partition_path text COLLATE "C" NOT NULL,
        bucket integer NOT NULL,
        added_version bigint NOT NULL,
        removed_version bigint,
        size_bytes bigint NOT NULL,
        row_count bigint NOT NULL,
        checksum text NOT NULL,
        schema_id integer NOT NULL,
        statistics json NOT NULL,
        CONSTRAINT files_pkey PRIMARY KEY (tenant_id, dataset_id, path),
        CONSTRAINT files_lifetime_check CHECK (removed_version > added_version),
        CONSTRAINT files_commits_fkey FOREIGN KEY (tenant_id, dataset_id, added_version)
            REFERENCES commits (tenant_id, dataset_id, version)
    )
    """,
    "CREATE INDEX files_added ON files (tenant_id, dataset_id, added_version)",
    "CREATE INDEX files_live ON files (tenant_id, dataset_id, file_group) WHERE removed_version IS NULL",
    "CREATE INDEX files_removed ON files (tenant_id, dataset_id, removed_version) WHERE removed_version IS NOT NULL",
    f"""
    CREATE TABLE changelog_files (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        path text COLLATE "C" NOT NULL,
        file_group text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        first_offset bigint NOT NULL,
        row_count bigint NOT NULL,
        size_bytes bigint NOT NULL,
        checksum text NOT NULL,
        schema_id integer NOT NULL,
        CONSTRAINT changelog_files_pkey PRIMARY KEY (tenant_id, dataset_id, path),
        CONSTRAINT changelog_files_rows_check CHECK (row_count > 0),
        CONSTRAINT changelog_files_commits_fkey FOREIGN KEY (tenant_id, dataset_id, version)
            REFERENCES commits (tenant_id, dataset_id, version)
    )
    """,
    "CREATE UNIQUE INDEX changelog_files_first_offset ON changelog_files (tenant_id, dataset_id, first_offset)",
    f"""
    CREATE TABLE outbox (
        tenant_id uuid NOT NULL {DEFAULT},
        id bigint GENERATED ALWAYS AS IDENTITY,
        topic text NOT NULL,
        dataset_id uuid NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT outbox_pkey PRIMARY KEY (tenant_id, id)
    )
    """,
    "CREATE INDEX outbox_order ON outbox (id)",
)

# What the application may do, table by table: history is only ever added to, and nothing is deleted but messages.
APPLICATION_GRANTS = {
    "tenants": "SELECT, INSERT",
    "api_keys": "SELECT, INSERT, UPDATE (revoked_at)",
    "datasets": "SELECT, INSERT, UPDATE (definition, deleted_at)",
    "heads": "SELECT, INSERT, UPDATE (version, next_offset, earliest_offset, committed_at)",
    "schema_versions": "SELECT, INSERT",
    "uploads": "SELECT, INSERT",
    "jobs": "SELECT, INSERT, UPDATE",
    "idempotency": "SELECT, INSERT, UPDATE (job_id)",
    "instants": "SELECT, INSERT, UPDATE (state, version, completed_at, counts)",
    "commits": "SELECT, INSERT",
    "files": "SELECT, INSERT, UPDATE (removed_version)",
    "changelog_files": "SELECT, INSERT",
    "outbox": "INSERT",
}

# The relay sees who has work, not what it is. Locking a message needs the right to update some column of it:
# `id` is always generated, and the policy lets no updated row pass.
RELAY_GRANTS = {
    "tenants": "SELECT (tenant_id)",
    "jobs": "SELECT (tenant_id, dataset_id, state, kind, lease_until, created_at, seq)",
    "outbox": "SELECT, DELETE, UPDATE (id)",
}

RELAY_POLICIES = (
    "CREATE POLICY relay ON tenants FOR SELECT TO headwater_relay USING (true)",
    "CREATE POLICY relay ON jobs FOR SELECT TO headwater_relay USING (state IN ('queued', 'running'))",
    "CREATE POLICY relay_reads ON outbox FOR SELECT TO headwater_relay USING (true)",
    "CREATE POLICY relay_locks ON outbox FOR UPDATE TO headwater_relay USING (true) WITH CHECK (false)",
    "CREATE POLICY relay_removes ON outbox FOR DELETE TO headwater_relay USING (true)",
)

# The tenant is not known before the key is found: a request with the digest of a key may read that one row.
CREDENTIAL_POLICY = """
CREATE POLICY credential ON api_keys FOR SELECT TO headwater_app
    USING (digest = decode(current_setting('headwater.key_digest', true), 'hex'))
"""


def upgrade() -> None:
    for role in ROLES:
        op.execute(ROLE.format(role=role))
        op.execute(f"GRANT USAGE ON SCHEMA public TO {role}")
    for statement in TABLES:
        op.execute(statement)
    for table, rights in APPLICATION_GRANTS.items():
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})"
        )
        op.execute(f"GRANT {rights} ON {table} TO headwater_app")
    for table, rights in RELAY_GRANTS.items():
        op.execute(f"GRANT {rights} ON {table} TO headwater_relay")
    for statement in (*RELAY_POLICIES, CREDENTIAL_POLICY):
        op.execute(statement)
