"""The description and the labels of datasets.

Revision ID: 0030
Revises: 0029
"""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"

STATEMENTS = (
    "ALTER TABLE datasets ADD COLUMN description text",
    "GRANT UPDATE (description) ON datasets TO headwater_app",
    f"""
    CREATE TABLE dataset_labels (
        tenant_id uuid NOT NULL DEFAULT {_TENANT},
        dataset_id uuid NOT NULL,
        key text COLLATE "C" NOT NULL,
        value text COLLATE "C" NOT NULL,
        CONSTRAINT dataset_labels_pkey PRIMARY KEY (tenant_id, dataset_id, key),
        CONSTRAINT dataset_labels_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX dataset_labels_value ON dataset_labels (tenant_id, key, value, dataset_id)",
    "ALTER TABLE dataset_labels ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE dataset_labels FORCE ROW LEVEL SECURITY",
    "CREATE POLICY tenant ON dataset_labels TO headwater_app "
    f"USING (tenant_id = {_TENANT}) WITH CHECK (tenant_id = {_TENANT})",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON dataset_labels TO headwater_app",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
