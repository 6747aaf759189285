"""The bytes that rendered objects take, and the removal of what is no longer needed, in Postgres."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import and_, delete, func, or_, select, tuple_, update

from app.core.catalog.tables import heads
from app.core.timeline.tables import commits, files
from app.features.rendered_files.tables import rendered_files
from app.features.rendered_files.values import UsedObject
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

_HAS_SOURCE: Final = (
    select(1)
    .where(
        files.c.dataset_id == rendered_files.c.dataset_id,
        files.c.path == rendered_files.c.data_path,
        files.c.added_version == rendered_files.c.origin_version,
    )
    .exists()
)
_HAS_CHANGES: Final = (
    select(1)
    .where(
        commits.c.dataset_id == rendered_files.c.dataset_id,
        commits.c.version == rendered_files.c.origin_version,
        heads.c.dataset_id == rendered_files.c.dataset_id,
        commits.c.first_offset >= heads.c.earliest_offset,
    )
    .exists()
)
_IS_KEPT: Final = or_(
    and_(rendered_files.c.data_path.is_not(None), _HAS_SOURCE),
    and_(rendered_files.c.data_path.is_(None), _HAS_CHANGES),
)
_KEY: Final = tuple_(rendered_files.c.dataset_id, rendered_files.c.key)


class EvictionStore:
    """Rendered objects of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stored_bytes(self) -> Mapping[str, int]:
        """The bytes of the objects of each tenant that has renderings. Raises Unavailable."""
        size_bytes = func.sum(rendered_files.c.size_bytes).filter(rendered_files.c.path.is_not(None))
        query = select(rendered_files.c.tenant_id, func.coalesce(size_bytes, 0)).group_by(
            rendered_files.c.tenant_id
        )
        with self._database.relay() as connection:
            return {tenant_id: int(total) for tenant_id, total in connection.execute(query)}

    def remove_unused(self, tenant_id: str, *, idle_seconds: float, limit: int) -> Sequence[str | None]:
        """Removes renderings whose data file, or whose changes, the dataset no longer has, and those that were used
        longer ago; at most `limit`. Returns the paths of their objects, None for those without. Raises Unavailable.
        """
        is_idle = rendered_files.c.used_at < seconds_ago(idle_seconds)
        unused = (
            select(rendered_files.c.dataset_id, rendered_files.c.key)
            .where(or_(is_idle, ~_IS_KEPT))
            .limit(limit)
        )
        statement = delete(rendered_files).where(_KEY.in_(unused)).returning(rendered_files.c.path)
        with self._database.tenant(tenant_id) as connection:
            return list(connection.execute(statement).scalars())

    def oldest(self, tenant_id: str, limit: int) -> Sequence[UsedObject]:
        """The objects that were used longest ago, in the order of their uses. Raises Unavailable."""
        columns = (rendered_files.c[name] for name in UsedObject.__struct_fields__)
        query = (
            select(*columns)
            .where(rendered_files.c.path.is_not(None))
            .order_by(rendered_files.c.used_at)
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            return [UsedObject(**row._asdict()) for row in connection.execute(query)]

    def release(self, tenant_id: str, objects: Sequence[UsedObject]) -> None:
        """Records that these objects are deleted. What they were rendered as is kept. Raises Unavailable."""
        by_dataset: defaultdict[str, list[UsedObject]] = defaultdict(list)
        for each in objects:
            by_dataset[each.dataset_id].append(each)
        with self._database.tenant(tenant_id) as connection:
            for dataset_id, group in sorted(by_dataset.items()):
                connection.execute(
                    update(rendered_files)
                    .where(
                        rendered_files.c.dataset_id == dataset_id,
                        any_of(rendered_files.c.key, [each.key for each in group]),
                        any_of(rendered_files.c.path, [each.path for each in group]),
                    )
                    .values(path=None)
                )
