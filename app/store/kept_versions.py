"""Which versions of a dataset can be read still: those of its history, those with a name, and those that are held."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, and_, exists, func, or_, select

from app.lake.errors import NotFound, VersionExpired
from app.store.catalog import share_datasets
from app.store.models import heads
from app.store.version_models import named_versions, read_leases

# A name that has run out is none, whether or not it is still there.
NAME_LIVES: Final = or_(
    named_versions.c.expires_at.is_(None), named_versions.c.expires_at > func.clock_timestamp()
)
LEASE_LIVES: Final = read_leases.c.lease_until > func.clock_timestamp()


def lock_history(connection: Connection, dataset_id: str) -> int:
    """The head's version; until the transaction ends no version is forgotten, no change cut, and the dataset is there.

    Raises NotFound.
    """
    version = connection.execute(
        select(heads.c.version).where(heads.c.dataset_id == dataset_id).with_for_update()
    ).scalar_one_or_none()
    if version is None or not share_datasets(connection, [dataset_id]):
        raise NotFound(f"There is no dataset {dataset_id!r}")
    return int(version)


def check_kept(connection: Connection, dataset_id: str, version: int) -> None:
    """Raises VersionExpired if the version's files may be gone, NotFound.

    Whoever goes on to keep the version holds the lock of `lock_history`: cleaning takes it, too.
    """
    named = exists().where(
        and_(
            named_versions.c.dataset_id == dataset_id,
            named_versions.c.version == version,
            NAME_LIVES,
        )
    )
    held = exists().where(
        and_(read_leases.c.dataset_id == dataset_id, read_leases.c.version == version, LEASE_LIVES)
    )
    found = connection.execute(
        select(heads.c.earliest_version, or_(named, held).label("kept")).where(
            heads.c.dataset_id == dataset_id
        )
    ).one_or_none()
    if found is None:
        raise NotFound(f"There is no dataset {dataset_id!r}")
    if version < found.earliest_version and not found.kept:
        raise VersionExpired(
            f"version {version} is not kept any more: the history begins at version {found.earliest_version}; of those "
            "before it there are the ones with a name",
            version=version,
            earliest=found.earliest_version,
        )
