"""The monitor reads which datasets the sources, webhooks and files in quarantine are of, for the texts of alerts.

Revision ID: 0053
Revises: 0052
"""

from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None

STATEMENTS = (
    "GRANT SELECT (dataset_id, name) ON sources TO headwater_monitor",
    "GRANT SELECT (dataset_id, error) ON webhooks TO headwater_monitor",
    "GRANT SELECT (written_at) ON quarantine_files TO headwater_monitor",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
