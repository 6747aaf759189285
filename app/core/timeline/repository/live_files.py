"""The data files of a version: all, those of some file groups, or group by group in the order of their names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Select,
    and_,
    any_,
    bindparam,
    cast,
    func,
    or_,
    select,
    true,
    union,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from app.core.timeline.repository.data_file_rows import FILE_COLUMNS, data_file
from app.core.timeline.repository.pruning import PrunedFiles, pruned_files
from app.core.timeline.tables import files
from app.core.timeline.values import GroupFiles
from app.infra.db.any_of import end_of_prefix
from app.kernel.format.file_group import PARTITION_END, DataFile, FileKind, bucket_prefix
from app.kernel.sql.conditions.prune import RowFilter

_DATASET: Final = bindparam("dataset", type_=files.c.dataset_id.type)
_VERSION: Final = bindparam("version", type_=files.c.added_version.type)
_LIMIT: Final = bindparam("limit", type_=BigInteger)
_GROUP: Final = files.c.file_group
# Each half has its own index: files that are still live, and files that were removed after the version. Both are always
# read by one statement: a file that is removed between two of them would be in both halves.
_HALVES: Final = (files.c.removed_version.is_(None), files.c.removed_version > _VERSION)
_PARTITIONS_CACHED: Final = 16


def halves(
    columns: Sequence[ColumnElement[Any]], *conditions: ColumnElement[bool], source: FromClause = files
) -> list[Select[Any]]:
    """The rows that are valid at a version, in two queries that different indexes answer: of live and removed files."""
    at_version = files.c.dataset_id == _DATASET, files.c.added_version <= _VERSION
    return [select(*columns).select_from(source).where(*at_version, half, *conditions) for half in _HALVES]


# Statements are made once: each plan and each page needs some.
_LIVE: Final = union_all(*halves(FILE_COLUMNS))
_OF_KINDS: Final = files.c.kind == any_(bindparam("kinds", type_=ARRAY(files.c.kind.type)))
_FROM: Final = bindparam("first", type_=_GROUP.type) <= _GROUP
_BEFORE: Final = bindparam("end", type_=_GROUP.type) > _GROUP


def _first_files(pruned: PrunedFiles) -> CompoundSelect[Any]:
    """The files of the first groups of a range, as far as they are not pruned."""
    conditions = _OF_KINDS, _FROM, _BEFORE, pruned.condition
    parts = halves(FILE_COLUMNS, *conditions, source=pruned.source)
    firsts = union_all(*(part.order_by(_GROUP).limit(_LIMIT) for part in parts))
    return firsts.order_by(_GROUP.name).limit(_LIMIT)


_FIRST_FILES: Final = _first_files(PrunedFiles(source=files, condition=true()))
_ALL_GROUPS: Final = union_all(*halves([_GROUP], _OF_KINDS)).subquery()
_GROUP_AT: Final = (
    select(_ALL_GROUPS.c.file_group)
    .distinct()
    .order_by(_ALL_GROUPS.c.file_group)
    .offset(bindparam("number", type_=BigInteger))
    .limit(1)
)
_DELETED: Final = cast(cast(files.c.deletion_vector, JSONB)["cardinality"].astext, BigInteger)
_LIVE_ROWS: Final = (files.c.row_count - func.coalesce(_DELETED, 0)).label("live_rows")
_HOLD_ROWS: Final = files.c.kind != FileKind.TOMBSTONE.value
_ROWS: Final = union_all(*halves([_LIVE_ROWS], _OF_KINDS, _HOLD_ROWS, _FROM)).subquery()
_ROWS_FROM: Final = select(func.coalesce(func.sum(_ROWS.c.live_rows), 0))


def _partition_paths() -> CompoundSelect[Any]:
    paths = (
        select(files.c.partition_path)
        .where(files.c.dataset_id == _DATASET, files.c.partition_path != "")
        .limit(1)
    )
    first = paths.where(_HALVES[0]).order_by(_GROUP).subquery()
    live_paths = select(first.c.partition_path).cte("live_paths", recursive=True)
    following = (
        paths.where(_HALVES[0], func.concat(live_paths.c.partition_path, PARTITION_END) <= _GROUP)
        .order_by(_GROUP)
        .lateral()
    )
    live_paths = live_paths.union_all(
        select(following.c.partition_path).select_from(live_paths).join(following, true())
    )
    removed_paths = select(files.c.partition_path).where(
        files.c.dataset_id == _DATASET, files.c.partition_path != "", _HALVES[1]
    )
    return union(select(live_paths.c.partition_path), removed_paths)


_WITHOUT_SORTS: Final = select(func.set_config("enable_sort", "off", true()))
_PARTITION_PATHS: Final = _partition_paths()


@lru_cache(maxsize=_PARTITIONS_CACHED)
def _live_of_groups(partitions: int) -> CompoundSelect[Any]:
    """Of named file groups, and of all those of this number of partitions."""
    by_name = any_(bindparam("groups", type_=ARRAY(_GROUP.type))) == _GROUP
    within = [
        and_(
            bindparam(f"from_{at}", type_=_GROUP.type) <= _GROUP,
            bindparam(f"to_{at}", type_=_GROUP.type) > _GROUP,
        )
        for at in range(partitions)
    ]
    return union_all(*halves(FILE_COLUMNS, or_(by_name, *within)))


def live_files(
    connection: Connection,
    dataset_id: str,
    version: int,
    file_groups: Sequence[str] | None,
    partitions: Sequence[str],
) -> list[DataFile]:
    """The files, ordered by path; of the named groups and of these partitions only, unless `file_groups` is None."""
    values: dict[str, Any] = {"dataset": dataset_id, "version": version}
    query = _LIVE
    if file_groups is not None:
        query = _live_of_groups(len(partitions))
        values["groups"] = list(file_groups)
        for at, partition in enumerate(partitions):
            prefix = bucket_prefix(partition)
            values |= {f"from_{at}": prefix, f"to_{at}": end_of_prefix(prefix)}
    rows = connection.execute(query, values).all()
    return sorted((data_file(row) for row in rows), key=lambda file: file.path)


def _read_in_order(connection: Connection) -> None:
    """Until the transaction ends, rows are read from the index that has their order, where there is one.

    Without current statistics of a table Postgres expects few rows, and would sort all files of the dataset each time.
    """
    connection.execute(_WITHOUT_SORTS)


def files_of_groups(
    connection: Connection,
    dataset_id: str,
    version: int,
    kinds: Collection[FileKind],
    first: str,
    end: str,
    limit: int,
    where: RowFilter | None,
) -> GroupFiles:
    """The files of some groups from the name `first` on, and before `end`, ordered by group and path.

    There are at most `limit`, and more where a single group has more: all of the group are among them. With `where`,
    base files are left out that have no selected row by their statistics.
    """
    values = {**_values(dataset_id, version, kinds), "first": first, "end": end, "limit": limit}
    _read_in_order(connection)
    query = _FIRST_FILES if where is None else _first_files(pruned_files(where))
    group_files = [data_file(row) for row in connection.execute(query, values)]
    more = len(group_files) == limit
    if more:
        # The group of the last file may have more.
        last = group_files[-1].file_group
        whole = [file for file in group_files if file.file_group < last]
        group_files = whole or [
            file for file in live_files(connection, dataset_id, version, [last], ()) if file.kind in kinds
        ]
    group_files.sort(key=lambda file: (file.file_group, file.path))
    return GroupFiles(files=group_files, more=more)


def partition_paths(connection: Connection, dataset_id: str, version: int) -> list[str]:
    """The paths of partitions that may have files at the version, each once, in any order.

    File groups have names that begin with the path of their partition, so each further path takes one search in the
    index, however many files there are. An empty path, of groups that belong to no partition, is left out.
    """
    values = {"dataset": dataset_id, "version": version}
    _read_in_order(connection)
    return list(connection.execute(_PARTITION_PATHS, values).scalars())


def group_at(
    connection: Connection, dataset_id: str, version: int, kinds: Collection[FileKind], number: int
) -> str | None:
    """The name of the group that this number of others precede; None if there are fewer."""
    values = {**_values(dataset_id, version, kinds), "number": number}
    return connection.execute(_GROUP_AT, values).scalar_one_or_none()


def rows_from(
    connection: Connection, dataset_id: str, version: int, kinds: Collection[FileKind], first: str
) -> int:
    """The number of live rows in the files of the groups from the name `first` on."""
    values = {**_values(dataset_id, version, kinds), "first": first}
    return int(connection.execute(_ROWS_FROM, values).scalar_one())


def _values(dataset_id: str, version: int, kinds: Collection[FileKind]) -> dict[str, Any]:
    return {"dataset": dataset_id, "version": version, "kinds": [kind.value for kind in kinds]}
