"""Which versions of a dataset can be read still: those of its history, those with a name, and those that are held.

One that cannot never can again: whoever makes a name or a hold looks under a lock that cleans take, too.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Select, func, or_, select, union_all

from app.catalog.repository.live_datasets import share_datasets
from app.catalog.tables import heads
from app.format.errors import NotFound, VersionExpired
from app.timeline.tables import named_versions, read_leases

# The first half of an advisory lock's key; the second is of the dataset.
_HISTORY_LOCK: Final = 0xC1EA

# A name that has run out is none, whether or not it is still there.
NAME_LIVES: Final = or_(
    named_versions.c.expires_at.is_(None), named_versions.c.expires_at > func.clock_timestamp()
)
LEASE_LIVES: Final = read_leases.c.lease_until > func.clock_timestamp()


def share_history(connection: Connection, dataset_id: str) -> None:
    """Until the transaction ends no version is removed, and the dataset is there. Raises NotFound.

    It is no lock of the head's row, so commits and holds never wait for each other; a clean that waits for it is not
    overtaken.
    """
    _share(connection, dataset_id)
    if not share_datasets(connection, [dataset_id]):
        raise _not_found(dataset_id)


def share_history_at_head(connection: Connection, dataset_id: str) -> int:
    """`share_history`, and the head's version, which stays as it is, too, like the beginning of the feed."""
    _share(connection, dataset_id)
    # Before the dataset's, as whoever deletes it does.
    version: int | None = connection.execute(
        select(heads.c.version).where(heads.c.dataset_id == dataset_id).with_for_update()
    ).scalar_one_or_none()
    if version is None or not share_datasets(connection, [dataset_id]):
        raise _not_found(dataset_id)
    return version


def _share(connection: Connection, dataset_id: str) -> None:
    connection.execute(select(func.pg_advisory_xact_lock_shared(_HISTORY_LOCK, func.hashtext(dataset_id))))


def lock_history(connection: Connection, dataset_id: str) -> None:
    """Until the transaction ends no version comes to be kept. Taken before any lock of the head's row."""
    connection.execute(select(func.pg_advisory_xact_lock(_HISTORY_LOCK, func.hashtext(dataset_id))))


def check_kept(connection: Connection, dataset_id: str, version: int) -> None:
    """Raises VersionExpired if the version's files may be gone, NotFound.

    What the same transaction has read of the files before is all that the version has. Whoever goes on to keep the
    version has called `share_history` first.
    """
    pinned = pinned_versions(dataset_id).subquery()
    kept = select(pinned.c.version).where(pinned.c.version == version).exists()
    found = connection.execute(
        select(heads.c.earliest_version, or_(heads.c.earliest_version <= version, kept).label("kept")).where(
            heads.c.dataset_id == dataset_id
        )
    ).one_or_none()
    if found is None:
        raise _not_found(dataset_id)
    if not found.kept:
        raise VersionExpired(
            f"version {version} is not kept any more: the history begins at version {found.earliest_version}; of those "
            "before it there are the ones with a name",
            version=version,
            earliest=found.earliest_version,
        )


def first_kept(connection: Connection, dataset_id: str, since: int) -> int:
    """The least version from `since` on that is kept; it need not have been reached. Raises NotFound."""
    pinned = pinned_versions(dataset_id).subquery()
    least = select(func.min(pinned.c.version)).where(pinned.c.version >= since).scalar_subquery()
    found: int | None = connection.execute(
        select(func.least(func.greatest(heads.c.earliest_version, since), least)).where(
            heads.c.dataset_id == dataset_id
        )
    ).scalar_one_or_none()
    if found is None:
        raise _not_found(dataset_id)
    return found


def pinned_versions(dataset_id: str) -> Select[tuple[int]]:
    """The versions that names and holds keep, some more than once."""
    named = select(named_versions.c.version).where(named_versions.c.dataset_id == dataset_id, NAME_LIVES)
    held = select(read_leases.c.version).where(read_leases.c.dataset_id == dataset_id, LEASE_LIVES)
    every = union_all(named, held).subquery()
    return select(every.c.version)


def _not_found(dataset_id: str) -> NotFound:
    return NotFound(f"There is no dataset {dataset_id!r}")
