"""The file groups of versions: of those that are kept, or also of those that have expired lately."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from sqlalchemy import Connection

from app.core.timeline.repository.kept_versions import reading_files_of, reading_version
from app.core.timeline.repository.live_files import files_of_groups, group_at, partition_paths, rows_from
from app.core.timeline.values import GroupFiles
from app.infra.db.session import Database
from app.kernel.format.file_group import FileKind
from app.kernel.sql.conditions.prune import RowFilter

_Reading = Callable[[Database, str, str, int], AbstractContextManager[Connection]]


class VersionGroupStore:
    """The file groups of versions in Postgres (`VersionGroups`). `reading`: which versions may be read."""

    def __init__(self, database: Database, reading: _Reading = reading_version) -> None:
        self._database = database
        self._reading = reading

    @classmethod
    def of_known_files(cls, database: Database) -> VersionGroupStore:
        """Those of versions that are kept, and of expired ones as long as their files are known."""
        return cls(database, reading_files_of)

    def files_of_groups(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        kinds: Collection[FileKind],
        first: str,
        end: str,
        limit: int,
        where: RowFilter | None = None,
    ) -> GroupFiles:
        """The files of some groups from the name `first` on, and before `end`, ordered by group and path.

        There are at most `limit`, and more where a single group has more: all of the group are among them. With
        `where`, base files are left out that have no selected row by their statistics. Raises VersionExpired, NotFound
        (dataset gone).
        """
        with self._reading(self._database, tenant_id, dataset_id, version) as connection:
            return files_of_groups(connection, dataset_id, version, kinds, first, end, limit, where)

    def partition_paths(self, tenant_id: str, dataset_id: str, version: int) -> list[str]:
        """The paths of partitions that may have files at the version, each once, in any order.

        Raises VersionExpired, NotFound (dataset gone).
        """
        with self._reading(self._database, tenant_id, dataset_id, version) as connection:
            return partition_paths(connection, dataset_id, version)

    def group_at(
        self, tenant_id: str, dataset_id: str, version: int, kinds: Collection[FileKind], number: int
    ) -> str | None:
        """The name of the group that this number of others precede; None if there are fewer.

        Raises VersionExpired, NotFound (dataset gone).
        """
        with self._reading(self._database, tenant_id, dataset_id, version) as connection:
            return group_at(connection, dataset_id, version, kinds, number)

    def rows_from(
        self, tenant_id: str, dataset_id: str, version: int, kinds: Collection[FileKind], first: str
    ) -> int:
        """The number of live rows in the files of the groups from the name `first` on.

        Raises VersionExpired, NotFound (dataset gone).
        """
        with self._reading(self._database, tenant_id, dataset_id, version) as connection:
            return rows_from(connection, dataset_id, version, kinds, first)
