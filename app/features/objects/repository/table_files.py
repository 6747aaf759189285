"""Data files of tables in Postgres: those of kept versions and of versions that have expired lately, and which schemas
kept versions have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    String,
    and_,
    bindparam,
    func,
    null,
    or_,
    select,
    type_coerce,
    union_all,
)
from sqlalchemy.dialects.postgresql import distinct_on

from app.core.catalog.tables import heads, schema_versions
from app.core.timeline.repository.kept_versions import KEEPS_FEED, LEASE_LIVES, NAME_LIVES, pinned_versions
from app.core.timeline.tables import commits, files, named_versions, read_leases
from app.infra.db.session import Database
from app.kernel.format.file_group import FileKind

_BYTES: Final = "C"
"""The collation in which texts have the order of their UTF-8 bytes."""


class StoredDataFile(NamedTuple):
    """A data file: its path below the root of the storage, and what decides how it is served."""

    path: str
    size_bytes: int
    checksum: str
    schema_id: int
    layout: int | None


class FileForm(NamedTuple):
    """What decides how a data file is served, beside what versions are kept."""

    schema_id: int
    layout: int | None


class PinnedVersions(NamedTuple):
    """What keeps versions before the history: savepoints and tags by their names, and all versions that they or read
    leases keep.
    """

    names: Mapping[str, int]
    versions: frozenset[int]


_DATASET: Final = bindparam("dataset", type_=files.c.dataset_id.type)
_COLUMNS: Final = tuple(files.c[name] for name in StoredDataFile._fields)


def _kept_schemas() -> CompoundSelect[Any]:
    head = heads.c.dataset_id == _DATASET
    earliest = select(heads.c.earliest_version).where(head).scalar_subquery()
    first = (
        select(commits.c.schema_id)
        .where(commits.c.dataset_id == _DATASET, commits.c.version <= earliest)
        .order_by(commits.c.version.desc())
        .limit(1)
        .scalar_subquery()
    )
    of_history = select(schema_versions.c.schema_id).where(
        schema_versions.c.dataset_id == _DATASET, schema_versions.c.schema_id >= func.coalesce(first, 0)
    )
    pins = pinned_versions(_DATASET).subquery()
    of_pins = (
        select(commits.c.schema_id)
        .join(pins, pins.c.version == commits.c.version)
        .where(commits.c.dataset_id == _DATASET)
    )
    return of_history.union(of_pins)


# Files of versions that have expired have rows as long as scans that were planned before may read them.
_SERVED: Final = (files.c.dataset_id == _DATASET, files.c.kind == FileKind.BASE.value)


def _at_kept_version() -> ColumnElement[bool]:
    pins = pinned_versions(_DATASET).subquery()
    earliest = select(heads.c.earliest_version).where(heads.c.dataset_id == _DATASET).scalar_subquery()
    by_pin = (
        select(pins.c.version)
        .where(pins.c.version >= files.c.added_version, pins.c.version < files.c.removed_version)
        .exists()
    )
    return or_(files.c.removed_version.is_(None), files.c.removed_version > earliest, by_pin)


def _pins() -> CompoundSelect[Any]:
    names = select(named_versions.c.name, named_versions.c.version).where(
        named_versions.c.dataset_id == _DATASET, NAME_LIVES
    )
    leases = select(type_coerce(null(), String), read_leases.c.version).where(
        read_leases.c.dataset_id == _DATASET, ~KEEPS_FEED, LEASE_LIVES
    )
    return union_all(names, leases)


# Made once: each request for a part of a file needs some of them.
_FIND: Final = (
    select(*_COLUMNS).where(*_SERVED, files.c.path == bindparam("path", type_=files.c.path.type)).limit(1)
)
_FIND_WHOLE: Final = _FIND.where(files.c.deletion_vector.is_(None))
_KEPT_SCHEMAS: Final = _kept_schemas()
_PINS: Final = _pins()


class TableFileStore:
    """Data files of datasets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(
        self, tenant_id: str, dataset_id: str, path: str, *, whole: bool = False
    ) -> StoredDataFile | None:
        """The base file with this path, if it is served. Raises Unavailable.

        `whole`: only if it is one without deleted rows in some version.
        """
        query = _FIND_WHOLE if whole else _FIND
        with self._database.tenant(tenant_id) as connection:
            row = connection.execute(query, {"dataset": dataset_id, "path": path}).one_or_none()
        return None if row is None else StoredDataFile(*row)

    def forms(self, tenant_id: str, dataset_id: str) -> Sequence[FileForm]:
        """The forms that the base files have that are served. Raises Unavailable."""
        query = select(files.c.schema_id, files.c.layout).distinct().where(*_SERVED)
        with self._database.tenant(tenant_id) as connection:
            return [FileForm(*row) for row in connection.execute(query, {"dataset": dataset_id})]

    def listing(
        self,
        tenant_id: str,
        dataset_id: str,
        forms: Sequence[FileForm],
        prefix: str,
        after: str,
        limit: int,
    ) -> Sequence[StoredDataFile]:
        """The first base files that are served, in the order of the bytes of their paths, which have one of these
        forms, and whose paths begin with `prefix` and are after `after`.
        """
        of_form = or_(
            *(
                and_(files.c.schema_id == each.schema_id, files.c.layout.is_not_distinct_from(each.layout))
                for each in forms
            )
        )
        path = files.c.path.collate(_BYTES)
        query = (
            select(*_COLUMNS)
            .ext(distinct_on(path))
            .where(*_SERVED, of_form, path.startswith(prefix, autoescape=True), path > after)
            .order_by(path)
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            return [StoredDataFile(*row) for row in connection.execute(query, {"dataset": dataset_id})]

    def kept_schemas(self, tenant_id: str, dataset_id: str) -> frozenset[int]:
        """The ids of the schemas that kept versions have, and of those after them."""
        with self._database.tenant(tenant_id) as connection:
            return frozenset(connection.execute(_KEPT_SCHEMAS, {"dataset": dataset_id}).scalars())

    def pins(self, tenant_id: str, dataset_id: str) -> PinnedVersions:
        """The versions that names and read leases keep. Raises Unavailable."""
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(_PINS, {"dataset": dataset_id}).all()
        by_name = sorted((row.name, row.version) for row in rows if row.name is not None)
        return PinnedVersions(names=dict(by_name), versions=frozenset(row.version for row in rows))

    def schemas_without_layout(self, tenant_id: str, dataset_id: str) -> frozenset[int]:
        """The ids of the schemas of base files of earlier releases which have rows and are of kept versions."""
        query = (
            select(files.c.schema_id)
            .distinct()
            .where(
                *_SERVED,
                _at_kept_version(),
                files.c.layout.is_(None),
                files.c.row_count > 0,
            )
        )
        with self._database.tenant(tenant_id) as connection:
            return frozenset(connection.execute(query, {"dataset": dataset_id}).scalars())
