"""Alerts of tenants as events for webhooks, and why processes of a worker do not start.

Revision ID: 0051
Revises: 0050
"""

from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
TABLES = {
    "alert_feeds": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        next_event bigint NOT NULL DEFAULT 0,
        states json NOT NULL DEFAULT '{{}}',
        CONSTRAINT alert_feeds_pkey PRIMARY KEY (tenant_id),
        CONSTRAINT alert_feeds_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
    """,
    "alert_events": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        number bigint NOT NULL,
        dataset_id uuid NOT NULL,
        event json NOT NULL,
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT alert_events_pkey PRIMARY KEY (tenant_id, number),
        CONSTRAINT alert_events_datasets_fkey FOREIGN KEY (tenant_id, dataset_id) REFERENCES datasets (tenant_id, id)
    """,
    "alert_followers": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        webhook_id uuid NOT NULL,
        position bigint NOT NULL,
        member text,
        lease_epoch bigint NOT NULL DEFAULT 0,
        lease_until timestamptz,
        wake_at timestamptz,
        moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT alert_followers_pkey PRIMARY KEY (tenant_id, webhook_id),
        CONSTRAINT alert_followers_webhooks_fkey FOREIGN KEY (tenant_id, webhook_id)
            REFERENCES webhooks (tenant_id, id) ON DELETE CASCADE,
        CONSTRAINT alert_followers_lease_check CHECK ((member IS NULL) = (lease_until IS NULL))
    """,
}
STATEMENTS = (
    # A webhook of the alerts of a whole tenant is of no dataset.
    "ALTER TABLE webhooks ALTER COLUMN dataset_id DROP NOT NULL",
    "CREATE POLICY relay ON alert_followers FOR SELECT TO headwater_relay USING (true)",
    "GRANT SELECT (tenant_id, webhook_id, member, lease_until, wake_at, moved_at) ON alert_followers "
    "TO headwater_relay",
    "ALTER TABLE workers ADD COLUMN faults json NOT NULL DEFAULT '{}'",
    "GRANT UPDATE (faults) ON workers TO headwater_relay",
)


def upgrade() -> None:
    for table, columns in TABLES.items():
        op.execute(f"CREATE TABLE {table} ({columns.format(tenant=TENANT)})")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})"
        )
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO headwater_app")
    for statement in STATEMENTS:
        op.execute(statement)
