"""What the keeper that reports to a Hive metastore remembers of a dataset."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import select

from app.db.session import Database
from app.maintenance.tables import table_maintenance
from app.metastore.values import MetastoreState

METASTORE_RECONCILER: Final = "metastore"


class MetastoreStateStore:
    """States of reports in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def state(self, tenant_id: str, dataset_id: str) -> MetastoreState | None:
        """None before the first report."""
        query = select(table_maintenance.c.memory).where(table_maintenance.c.dataset_id == dataset_id)
        with self._database.tenant(tenant_id) as connection:
            memory = connection.execute(query).scalar_one_or_none()
        if not memory or METASTORE_RECONCILER not in memory or not memory[METASTORE_RECONCILER].memory:
            return None
        return msgspec.convert(memory[METASTORE_RECONCILER].memory, MetastoreState)
