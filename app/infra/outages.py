"""Faults of the environment: the storage, its disk or the database is away, or a worker is busy with other sources.

No job is their cause, and they pass.
"""

from __future__ import annotations

import errno
from typing import Final

from app.infra.errors import StorageFull, StorageUnavailable, Unavailable
from app.kernel.format.errors import HeadwaterError

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_AWAY: Final = {
    errno.EIO,
    errno.EROFS,
    errno.ENODEV,
    errno.ENXIO,
    errno.ESTALE,
    errno.ENOTCONN,
    errno.EHOSTDOWN,
    errno.EREMOTEIO,
}
# Arrow reports faults of S3 without a number.
_OF_S3: Final = "AWS Error"


def fault_of_disk(error: BaseException, path: str = "") -> HeadwaterError | None:
    """StorageFull or StorageUnavailable for an OSError that says so; None for any other exception."""
    if not isinstance(error, OSError):
        return None
    if error.errno in _FULL:
        return StorageFull(f"The storage has no space left: {error.strerror}", path=path)
    if error.errno in _AWAY or (error.errno is None and _OF_S3 in str(error)):
        return StorageUnavailable(f"The storage does not work: {error.strerror or error}", path=path)
    return None


def awaited(error: BaseException) -> str | None:
    """What must come back before it makes sense to try again: `storage`, `space`, `database` or `sources`.

    None if the fault may be of the job's own: a statement that takes too long may do so every time.
    """
    match fault_of_disk(error) or error:
        case StorageFull():
            return "space"
        case Unavailable() as fault:
            return fault.awaits
        case _:
            return None
