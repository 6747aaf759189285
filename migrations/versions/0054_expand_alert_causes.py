"""Webhooks of alerts begin with the alerts that are active; since when a webhook is paused; which disk is full.

The monitor reads what consumers, webhooks and quotas admit. Alerts of a whole tenant are of no dataset.

Revision ID: 0054
Revises: 0053
"""

from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None

STATEMENTS = (
    # Webhooks of before send all events from their positions on.
    "ALTER TABLE alert_followers ADD COLUMN first_event bigint NOT NULL DEFAULT 0, "
    "ADD COLUMN active_events bigint[] NOT NULL DEFAULT '{}'",
    "ALTER TABLE alert_events ALTER COLUMN dataset_id DROP NOT NULL",
    "ALTER TABLE webhooks ADD COLUMN paused_at timestamptz",
    "ALTER TABLE workers ADD COLUMN disk_folder text",
    "GRANT UPDATE (disk_folder) ON workers TO headwater_relay",
    "GRANT SELECT (max_lag_rows, max_lag_seconds) ON consumers TO headwater_monitor",
    "GRANT SELECT (quotas) ON tenants TO headwater_monitor",
    "GRANT SELECT (rows_written, bytes_written) ON usage_days TO headwater_monitor",
    "CREATE POLICY monitor ON webhook_deliveries FOR SELECT TO headwater_monitor USING (true)",
    "GRANT SELECT (tenant_id, webhook_id, state, attempts) ON webhook_deliveries TO headwater_monitor",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
