"""The versions of a dataset that the catalogue shows, and what their metadata are rendered from, in Postgres."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import func, or_, select

from app.core.catalog.tables import heads
from app.core.timeline.tables import commits, files
from app.features.iceberg.values import KeptVersion
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.kernel.format.file_group import FileKind
from app.kernel.format.instant import Action

_COLUMNS: Final = tuple(commits.c[name] for name in KeptVersion.__struct_fields__)


class TableVersionStore:
    """Versions of datasets in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(
        self, tenant_id: str, dataset_id: str, span: range, others: Collection[int]
    ) -> Sequence[KeptVersion]:
        """The versions of the span, and others by their numbers, in order."""
        in_span = commits.c.version.between(span.start, span.stop - 1)
        query = (
            select(*_COLUMNS)
            .where(commits.c.dataset_id == dataset_id, or_(in_span, any_of(commits.c.version, others)))
            .order_by(commits.c.version)
        )
        with self._database.tenant(tenant_id) as connection:
            return [_version(row) for row in connection.execute(query)]

    def has_files_since(self, tenant_id: str, dataset_id: str, first: int) -> bool:
        """Whether all files are known that a version from `first` on had: those that are not kept expired lately."""
        earliest = select(heads.c.earliest_version).where(heads.c.dataset_id == dataset_id).scalar_subquery()
        removed = select(func.coalesce(func.sum(commits.c.files_removed), 0)).where(
            commits.c.dataset_id == dataset_id, commits.c.version > first, commits.c.version <= earliest
        )
        rows = select(func.count()).where(
            files.c.dataset_id == dataset_id,
            files.c.removed_version > first,
            files.c.removed_version <= earliest,
        )
        query = select(removed.scalar_subquery() == rows.scalar_subquery())
        with self._database.tenant(tenant_id) as connection:
            return bool(connection.execute(query).scalar_one())

    def has_files_of(self, tenant_id: str, dataset_id: str, schema_ids: Collection[int]) -> bool:
        """Whether the head has a file of rows that was written under one of these schemas."""
        query = (
            select(files.c.path)
            .where(
                files.c.dataset_id == dataset_id,
                files.c.removed_version.is_(None),
                files.c.kind == FileKind.BASE.value,
                files.c.row_count > 0,
                any_of(files.c.schema_id, schema_ids),
            )
            .limit(1)
        )
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).first() is not None


def _version(row: Any) -> KeptVersion:
    return KeptVersion(**row._asdict() | {"action": Action(row.action)})
