"""What follows a feed: consumers, webhooks, exports and views; and jobs that run beside a dataset's writes.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
DEFAULT = f"DEFAULT {TENANT}"

STATEMENTS = (
    """
    ALTER TABLE jobs
        ALTER COLUMN request DROP NOT NULL,
        ALTER COLUMN instant_id DROP NOT NULL,
        ADD COLUMN lane text DEFAULT 'writes' NOT NULL,
        ADD COLUMN task json,
        ADD COLUMN result json,
        DROP CONSTRAINT jobs_outcome_check,
        ADD CONSTRAINT jobs_lane_check CHECK (lane IN ('writes', 'tasks')),
        ADD CONSTRAINT jobs_request_check CHECK (
            (request IS NOT NULL) = (lane = 'writes') AND (task IS NOT NULL) = (lane = 'tasks')
            AND (instant_id IS NOT NULL) = (lane = 'writes')
        ),
        ADD CONSTRAINT jobs_outcome_check CHECK (
            (state = 'succeeded' AND lane = 'writes') = (committed_version IS NOT NULL)
        )
    """,
    "GRANT SELECT (lane) ON jobs TO headwater_relay",
    "CREATE INDEX commits_next_offset ON commits (tenant_id, dataset_id, next_offset)",
    # The least and greatest offset that a changelog file's rows take back.
    "ALTER TABLE changelog_files ADD COLUMN corrects_min bigint, ADD COLUMN corrects_max bigint",
    # What files of earlier releases take back is not known without reading them, but it is nothing of a later offset.
    # Row level security would hide them from their owner, too.
    "ALTER TABLE changelog_files NO FORCE ROW LEVEL SECURITY",
    "UPDATE changelog_files SET corrects_min = 0, corrects_max = first_offset + row_count - 1",
    "ALTER TABLE changelog_files FORCE ROW LEVEL SECURITY",
    """
    CREATE INDEX changelog_files_corrects ON changelog_files (tenant_id, dataset_id, corrects_max)
        WHERE corrects_max IS NOT NULL
    """,
    "GRANT DELETE ON changelog_files TO headwater_app",
    # What the refresh of a view does is known once it runs.
    "GRANT UPDATE (operation) ON instants TO headwater_app",
    f"""
    CREATE TABLE consumers (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        name text COLLATE "C" NOT NULL,
        kind text NOT NULL,
        position bigint NOT NULL,
        revision bigint DEFAULT 1 NOT NULL,
        max_lag_rows bigint,
        max_lag_seconds bigint,
        member text,
        lease_epoch bigint DEFAULT 0 NOT NULL,
        lease_until timestamptz,
        wake_at timestamptz,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        moved_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT consumers_pkey PRIMARY KEY (tenant_id, dataset_id, name),
        CONSTRAINT consumers_kind_check CHECK (kind IN ('reader', 'webhook', 'export', 'view')),
        CONSTRAINT consumers_position_check CHECK (position >= 0),
        CONSTRAINT consumers_lease_check CHECK ((member IS NULL) = (lease_until IS NULL)),
        CONSTRAINT consumers_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX consumers_followers ON consumers (tenant_id, dataset_id) WHERE kind <> 'reader'",
    f"""
    CREATE TABLE webhooks (
        tenant_id uuid NOT NULL {DEFAULT},
        id uuid NOT NULL,
        dataset_id uuid NOT NULL,
        definition json NOT NULL,
        secret text NOT NULL,
        old_secret text,
        old_secret_until timestamptz,
        state text NOT NULL,
        error json,
        failures bigint DEFAULT 0 NOT NULL,
        revision bigint DEFAULT 1 NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT webhooks_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT webhooks_state_check CHECK (state IN ('active', 'paused')),
        CONSTRAINT webhooks_old_secret_check CHECK ((old_secret IS NULL) = (old_secret_until IS NULL)),
        CONSTRAINT webhooks_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX webhooks_dataset ON webhooks (tenant_id, dataset_id)",
    f"""
    CREATE TABLE webhook_deliveries (
        tenant_id uuid NOT NULL {DEFAULT},
        id uuid NOT NULL,
        webhook_id uuid NOT NULL,
        since bigint NOT NULL,
        next_since bigint NOT NULL,
        telling json NOT NULL,
        state text NOT NULL,
        attempts bigint DEFAULT 0 NOT NULL,
        next_attempt_at timestamptz,
        status bigint,
        error text,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        ended_at timestamptz,
        CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT webhook_deliveries_range_check CHECK (since < next_since),
        CONSTRAINT webhook_deliveries_state_check CHECK (state IN ('pending', 'delivered', 'dead')),
        CONSTRAINT webhook_deliveries_webhooks_fkey FOREIGN KEY (tenant_id, webhook_id)
            REFERENCES webhooks (tenant_id, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (tenant_id, webhook_id, id)",
    """
    CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (tenant_id, webhook_id, next_attempt_at)
        WHERE state = 'pending'
    """,
    f"""
    CREATE TABLE exports (
        tenant_id uuid NOT NULL {DEFAULT},
        id uuid NOT NULL,
        dataset_id uuid NOT NULL,
        definition json NOT NULL,
        state text NOT NULL,
        stopped_at bigint,
        revision bigint DEFAULT 1 NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT exports_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT exports_state_check CHECK (state IN ('active', 'paused', 'ended')),
        CONSTRAINT exports_stopped_check CHECK ((state = 'ended') = (stopped_at IS NOT NULL)),
        CONSTRAINT exports_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX exports_dataset ON exports (tenant_id, dataset_id, id)",
    f"""
    CREATE TABLE export_runs (
        tenant_id uuid NOT NULL {DEFAULT},
        export_id uuid NOT NULL,
        number bigint NOT NULL,
        since bigint NOT NULL,
        until bigint NOT NULL,
        job_id uuid NOT NULL,
        manifest json,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT export_runs_pkey PRIMARY KEY (tenant_id, export_id, number),
        CONSTRAINT export_runs_tenant_id_export_id_since_until_key UNIQUE (tenant_id, export_id, since, until),
        CONSTRAINT export_runs_exports_fkey FOREIGN KEY (tenant_id, export_id)
            REFERENCES exports (tenant_id, id) ON DELETE CASCADE,
        CONSTRAINT export_runs_jobs_fkey FOREIGN KEY (tenant_id, job_id) REFERENCES jobs (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE export_files (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        path text COLLATE "C" NOT NULL,
        export_id uuid NOT NULL,
        number bigint NOT NULL,
        name text NOT NULL,
        size_bytes bigint NOT NULL,
        row_count bigint NOT NULL,
        checksum text NOT NULL,
        CONSTRAINT export_files_pkey PRIMARY KEY (tenant_id, dataset_id, path),
        CONSTRAINT export_files_tenant_id_export_id_number_name_key
            UNIQUE (tenant_id, export_id, number, name),
        CONSTRAINT export_files_export_runs_fkey FOREIGN KEY (tenant_id, export_id, number)
            REFERENCES export_runs (tenant_id, export_id, number) ON DELETE CASCADE
    )
    """,
    f"""
    CREATE TABLE views (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        definition json NOT NULL,
        paused boolean DEFAULT false NOT NULL,
        revision bigint DEFAULT 1 NOT NULL,
        error json,
        failures bigint DEFAULT 0 NOT NULL,
        attempted_at timestamptz,
        refreshed_at timestamptz,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT views_pkey PRIMARY KEY (tenant_id, dataset_id),
        CONSTRAINT views_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE view_inputs (
        tenant_id uuid NOT NULL {DEFAULT},
        view_id uuid NOT NULL,
        dataset_id uuid NOT NULL,
        relation text COLLATE "C" NOT NULL,
        CONSTRAINT view_inputs_pkey PRIMARY KEY (tenant_id, view_id, dataset_id),
        CONSTRAINT view_inputs_views_fkey FOREIGN KEY (tenant_id, view_id)
            REFERENCES views (tenant_id, dataset_id) ON DELETE CASCADE,
        CONSTRAINT view_inputs_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX view_inputs_dataset ON view_inputs (tenant_id, dataset_id)",
    *(
        statement.format(table=table)
        for table in (
            "consumers",
            "webhooks",
            "webhook_deliveries",
            "exports",
            "export_runs",
            "export_files",
            "views",
            "view_inputs",
        )
        for statement in (
            "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            "CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO headwater_app",
        )
    ),
    # The relay sees who has fallen behind, not what it is.
    "GRANT SELECT (tenant_id, dataset_id, name, kind, position, lease_until, wake_at) "
    "ON consumers TO headwater_relay",
    "CREATE POLICY relay ON consumers FOR SELECT TO headwater_relay USING (kind <> 'reader')",
    "GRANT SELECT (tenant_id, dataset_id, next_offset) ON heads TO headwater_relay",
    "CREATE POLICY relay ON heads FOR SELECT TO headwater_relay USING (true)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
