"""Which versions of a dataset can be read: those of its history, named ones, and those with a read lease.

A version that has expired never becomes readable again: names and read leases are made under a lock that cleans
take, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    null,
    or_,
    select,
    union_all,
)

from app.access.errors import NotFound
from app.core.catalog.repository.live_datasets import share_datasets
from app.core.catalog.tables import heads
from app.core.jobs.tables import jobs
from app.core.jobs.values import JobState
from app.core.timeline.errors import VersionExpired
from app.core.timeline.tables import commits, files, named_versions, read_leases
from app.infra.db.session import Database

# The first half of the key of an advisory lock; the second half is a hash of the dataset's id.
_HISTORY_LOCK: Final = 0xC1EA

# An expired name keeps nothing, even if its row is not deleted yet.
NAME_LIVES: Final = or_(
    named_versions.c.expires_at.is_(None), named_versions.c.expires_at > func.clock_timestamp()
)
# The prefix of the reader of a lease that a job has from its acceptance to its end; the id of the job follows.
OF_JOB: Final = "job "
# The suffix of the reader of a lease that keeps the feed after the version, and not the files of the version.
OF_FEED: Final = " feed"
_ID_LENGTH: Final = 36
# Other readers are no ids: the case is evaluated before the cast.
_JOB: Final = case(
    (
        read_leases.c.reader.startswith(OF_JOB, autoescape=True),
        cast(func.substr(read_leases.c.reader, len(OF_JOB) + 1, _ID_LENGTH), jobs.c.id.type),
    ),
    else_=null(),
)
_ENDED: Final = (
    select(jobs.c.id)
    .where(jobs.c.id == _JOB, jobs.c.state.in_([state.value for state in JobState if state.final]))
    .correlate(read_leases)
    .exists()
)
LEASE_LIVES: Final = and_(read_leases.c.lease_until > func.clock_timestamp(), ~_ENDED)
KEEPS_FEED: Final = read_leases.c.reader.endswith(OF_FEED, autoescape=True)
"""Whether a lease is one of the feed after its version."""


def share_history(connection: Connection, dataset_id: str) -> None:
    """Until the transaction ends, no version is removed and the dataset exists. Raises NotFound.

    It does not lock the head row, so commits and read leases never wait for each other. A clean that waits for this
    lock gets it before later requests.
    """
    share_versions(connection, dataset_id)
    if not share_datasets(connection, [dataset_id]):
        raise _not_found(dataset_id)


def share_history_at_head(connection: Connection, dataset_id: str) -> int:
    """`share_history`; also returns the head's version, which does not change meanwhile, nor does the feed's start."""
    share_versions(connection, dataset_id)
    # The head is locked before the dataset, in the same order as in a deletion.
    version: int | None = connection.execute(
        select(heads.c.version).where(heads.c.dataset_id == dataset_id).with_for_update()
    ).scalar_one_or_none()
    if version is None or not share_datasets(connection, [dataset_id]):
        raise _not_found(dataset_id)
    return version


def share_versions(connection: Connection, dataset_id: str) -> None:
    """Until the transaction ends, no version is removed. For callers that lock the head, or rows, afterwards."""
    connection.execute(select(func.pg_advisory_xact_lock_shared(_HISTORY_LOCK, func.hashtext(dataset_id))))


def lock_history(connection: Connection, dataset_id: str) -> None:
    """Until the transaction ends, no version gets a name or a read lease. Taken before any lock of the head row."""
    connection.execute(select(func.pg_advisory_xact_lock(_HISTORY_LOCK, func.hashtext(dataset_id))))


def check_kept(connection: Connection, dataset_id: str, version: int) -> None:
    """Raises VersionExpired if the version's files may be gone, NotFound.

    Files that the same transaction has read before are then complete. A caller that goes on to keep the version has
    called `share_history` before.
    """
    row = connection.execute(_KEPT, {"dataset": dataset_id, "version": version}).one_or_none()
    if row is None:
        raise _not_found(dataset_id)
    if not row.kept:
        raise VersionExpired(
            f"version {version} is not kept any more: the history begins at version {row.earliest_version}; of those "
            "before it there are the ones with a name",
            version=version,
            earliest=row.earliest_version,
        )


@contextmanager
def reading_version(
    database: Database, tenant_id: str, dataset_id: str, version: int
) -> Iterator[Connection]:
    """A transaction that reads a version. At its end it raises VersionExpired if the version is not kept any more,
    NotFound (dataset gone).
    """
    with database.tenant(tenant_id) as connection:
        yield connection
        check_kept(connection, dataset_id, version)


@contextmanager
def reading_files_of(
    database: Database, tenant_id: str, dataset_id: str, version: int
) -> Iterator[Connection]:
    """A transaction that reads files of a version, kept or expired lately. At its end it raises VersionExpired if rows
    of the version's files have been removed, NotFound (dataset gone).
    """
    with database.tenant(tenant_id) as connection:
        yield connection
        check_files_known(connection, dataset_id, version)


def check_files_known(connection: Connection, dataset_id: str, version: int) -> None:
    """Raises VersionExpired if the version has expired and rows of its files have been removed since, NotFound.

    They stay for `unused_file_seconds` after the clean that finds the files unused. Each commit states how many it adds
    and removes, so their number is known. Rows of files that the same transaction has read before are then complete.
    """
    try:
        check_kept(connection, dataset_id, version)
    except VersionExpired:
        values = {"dataset": dataset_id, "version": version}
        if not connection.execute(_COMPLETE, values).scalar_one():
            raise


def first_kept(connection: Connection, dataset_id: str, since: int) -> int:
    """The first version from `since` on that is kept; it may be in the future. Raises NotFound."""
    pins = pinned_versions(dataset_id).subquery()
    least = select(func.min(pins.c.version)).where(pins.c.version >= since).scalar_subquery()
    version: int | None = connection.execute(
        select(func.least(func.greatest(heads.c.earliest_version, since), least)).where(
            heads.c.dataset_id == dataset_id
        )
    ).scalar_one_or_none()
    if version is None:
        raise _not_found(dataset_id)
    return version


def pinned_versions(dataset_id: str | BindParameter[Any]) -> Select[int]:
    """The versions that names and read leases keep, some more than once."""
    by_name = select(named_versions.c.version).where(named_versions.c.dataset_id == dataset_id, NAME_LIVES)
    by_lease = select(read_leases.c.version).where(
        read_leases.c.dataset_id == dataset_id, ~KEEPS_FEED, LEASE_LIVES
    )
    every = union_all(by_name, by_lease).subquery()
    return select(every.c.version)


_DATASET: Final = bindparam("dataset", type_=heads.c.dataset_id.type)
_VERSION: Final = bindparam("version", type_=heads.c.version.type)
_PINNED: Final = pinned_versions(_DATASET).subquery()
# Made once: it is a part of each plan.
_KEPT: Final = select(
    heads.c.earliest_version,
    or_(
        heads.c.earliest_version <= _VERSION,
        select(_PINNED.c.version).where(_PINNED.c.version == _VERSION).exists(),
    ).label("kept"),
).where(heads.c.dataset_id == _DATASET)
_ADDED: Final = (
    select(func.coalesce(func.sum(commits.c.files_added - commits.c.files_removed), 0))
    .where(commits.c.dataset_id == _DATASET, commits.c.version <= _VERSION)
    .scalar_subquery()
)
_PRESENT: Final = (
    select(func.count())
    .where(
        files.c.dataset_id == _DATASET,
        files.c.added_version <= _VERSION,
        or_(files.c.removed_version.is_(None), files.c.removed_version > _VERSION),
    )
    .scalar_subquery()
)
_COMPLETE: Final = select(_ADDED == _PRESENT)


def _not_found(dataset_id: str) -> NotFound:
    return NotFound(f"there is no dataset {dataset_id!r}")
