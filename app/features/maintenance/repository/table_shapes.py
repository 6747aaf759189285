"""What the file groups of a table consist of, counted by Postgres over its live files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, any_, bindparam, cast, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from app.core.timeline.tables import files
from app.infra.db.any_of import any_of, begins_with_any
from app.infra.db.session import Database
from app.kernel.commit.clustering_plan import UnorderedGroup
from app.kernel.commit.compaction_policy import GroupShape
from app.kernel.format.file_group import FileKind, Slot, append_file_group

_IS_BASE: Final = files.c.kind == FileKind.BASE.value
_IS_PENDING: Final = files.c.kind.in_([kind.value for kind in FileKind if kind.is_pending])
_IS_TOMBSTONE: Final = files.c.kind == FileKind.TOMBSTONE.value
_IS_LIVE: Final = files.c.removed_version.is_(None)


class TableShapeStore:
    """Shapes of file groups."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def touched(
        self,
        tenant_id: str,
        dataset_id: str,
        *,
        keyed: bool,
        since_version: int,
        after: str | None,
        limit: int,
    ) -> Sequence[str]:
        """Names of file groups that commits after the version added files to, in order, after the name `after`.

        Without a key: paths of their partitions.
        """
        name = files.c.file_group if keyed else files.c.partition_path
        # Each of the two with an index of its own.
        added = files.c.added_version > since_version if since_version else _IS_LIVE
        query = select(name).distinct().where(files.c.dataset_id == dataset_id, added)
        if after is not None:
            query = query.where(name > after)
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query.order_by(name).limit(limit)).scalars().all()

    def shapes(
        self, tenant_id: str, dataset_id: str, names: Sequence[str], *, keyed: bool, small_below: int
    ) -> list[GroupShape]:
        """The named groups (without a key: the groups of these partitions) that have something to compact.

        `small_below`: the size in bytes of the least base file that is not small.
        """
        query = _SHAPES_OF_GROUPS if keyed else _shapes(_in_partitions(names), keyed=False)
        given = {
            "dataset": dataset_id,
            "small_below": small_below,
            **({"names": list(names)} if keyed else {}),
        }
        with self._database.tenant(tenant_id) as connection:
            return [GroupShape(**row._asdict()) for row in connection.execute(query, given)]

    def unordered(
        self, tenant_id: str, dataset_id: str, names: Sequence[str], *, keyed: bool, mark: str
    ) -> list[UnorderedGroup]:
        """The named groups (without a key: the groups of these partitions) with files without this mark."""
        query = (
            select(
                files.c.file_group,
                cast(func.sum(files.c.size_bytes), BigInteger).label("size_bytes"),
                func.bool_or(files.c.kind == FileKind.LOG.value).label("logs"),
            )
            .where(
                files.c.dataset_id == dataset_id,
                _IS_LIVE,
                any_of(files.c.file_group, names) if keyed else _in_partitions(names),
                files.c.kind.in_([FileKind.BASE.value, FileKind.LOG.value]),
                files.c.clustered_by.is_distinct_from(mark),
            )
            .group_by(files.c.file_group)
            .order_by(files.c.file_group)
        )
        with self._database.tenant(tenant_id) as connection:
            return [UnorderedGroup(**row._asdict()) for row in connection.execute(query)]


def _groups(slot: Any) -> Select[Any]:
    """The groups of these slots that have something to compact."""
    small_base = func.coalesce(func.max(slot.together).filter(slot.small > 0), 0)
    small = func.greatest(small_base, func.max(slot.tombstone_files))
    measures = ("logs", "log_bytes", "base_bytes", "base_rows", "deleted_rows")
    return (
        select(
            slot.file_group,
            *(cast(func.sum(slot[name]), BigInteger).label(name) for name in measures),
            func.min(slot.oldest_log).label("oldest_log"),
            func.min(slot.oldest_tombstones).label("oldest_tombstones"),
            cast(small, BigInteger).label("small_files"),
        )
        .group_by(slot.file_group)
        .having(
            or_(
                func.sum(slot.logs) > 0,
                func.sum(slot.deleted_rows) > 0,
                func.sum(slot.tombstone_files) > 0,
                small > 1,
            )
        )
    )


def _in_partitions(paths: Sequence[str]) -> ColumnElement[bool]:
    """Rows without a key, found by the names of their groups, which is what live files are indexed by."""
    prefixes = [append_file_group(Slot(partition_path=path, bucket=0), "") for path in paths]
    return begins_with_any(files.c.file_group, prefixes)


def _shapes(named: ColumnElement[bool], *, keyed: bool) -> Select[Any]:
    """The shapes of the groups of `dataset` whose files are named so, by name; `small_below` as in `shapes`."""
    slots = _slots().where(files.c.dataset_id == bindparam("dataset"), _IS_LIVE, named).cte("slots")
    # Rows without a key may be moved to any group of their partition, those with one only within their bucket.
    together = slots.c.small if keyed else func.sum(slots.c.small).over(partition_by=slots.c.partition_path)
    counted = select(slots, together.label("together")).subquery("counted")
    return _groups(counted.c).order_by(counted.c.file_group)


def _slots() -> Select[Any]:
    """Counts and sizes of the files of each bucket of a group."""

    def total(what: ColumnElement[bool], measure: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.coalesce(func.sum(measure).filter(what), 0)

    deleted = cast(func.json_extract_path_text(files.c.deletion_vector, "cardinality"), BigInteger)
    since = func.coalesce(files.c.written_version, files.c.added_version)
    return select(
        files.c.file_group,
        files.c.partition_path,
        func.count().filter(_IS_PENDING).label("logs"),
        total(_IS_PENDING, files.c.size_bytes).label("log_bytes"),
        func.min(since).filter(_IS_PENDING).label("oldest_log"),
        func.count().filter(_IS_TOMBSTONE).label("tombstone_files"),
        func.min(files.c.written_at).filter(_IS_TOMBSTONE).label("oldest_tombstones"),
        total(_IS_BASE, files.c.size_bytes).label("base_bytes"),
        total(_IS_BASE, files.c.row_count).label("base_rows"),
        total(_IS_BASE, deleted).label("deleted_rows"),
        func.count()
        .filter(_IS_BASE, files.c.size_bytes < bindparam("small_below", type_=BigInteger))
        .label("small"),
    ).group_by(files.c.file_group, files.c.partition_path, files.c.bucket)


# It is made once: after commits, constructing it would cost the worker more than running it.
_SHAPES_OF_GROUPS: Final = _shapes(
    files.c.file_group == any_(bindparam("names", type_=ARRAY(files.c.file_group.type))), keyed=True
)
