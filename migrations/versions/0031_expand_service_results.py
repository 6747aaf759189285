"""The last results of table services that make no version.

Revision ID: 0031
Revises: 0030
"""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"

STATEMENTS = (
    f"""
    CREATE TABLE service_results (
        tenant_id uuid NOT NULL DEFAULT {_TENANT},
        dataset_id uuid NOT NULL,
        service text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        result json NOT NULL,
        CONSTRAINT service_results_pkey PRIMARY KEY (tenant_id, dataset_id, service),
        CONSTRAINT service_results_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "ALTER TABLE service_results ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE service_results FORCE ROW LEVEL SECURITY",
    "CREATE POLICY tenant ON service_results TO headwater_app "
    f"USING (tenant_id = {_TENANT}) WITH CHECK (tenant_id = {_TENANT})",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON service_results TO headwater_app",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
