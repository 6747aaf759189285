"""What reads tables for recipients."""

from __future__ import annotations

from dataclasses import dataclass

from app.features.sharing.service.shared_tables import SharedTables
from app.features.sharing.service.table_changes import TableChanges
from app.features.sharing.service.table_queries import TableQueries


@dataclass(frozen=True, kw_only=True, slots=True)
class TableReads:
    """What a recipient reads: tables, their files and their changes."""

    tables: SharedTables
    queries: TableQueries
    changes: TableChanges
