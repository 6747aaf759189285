"""Gives claimed jobs back after a fault of the environment or of the database."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.values import Claim
from app.infra.errors import Unavailable
from app.infra.outages import awaited
from app.kernel.format.errors import HeadwaterError

_log = logging.getLogger(__name__)
# While the database is out of reach, the claims are kept and given back once it answers.
_TEXTS: Final = {
    "space": "disk space",
    "storage": "storage",
    "database": "the database",
    "sources": "a thread that reads from sources",
}
_PAUSES_SECONDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)


def give_back(
    jobs: JobStore,
    tenant_id: str,
    claims: Sequence[Claim],
    error: Exception,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Puts the jobs of one group back into their queue, if the error is one of the environment or of the database.

    False, and nothing is changed, for any other error. If the database stays away, the leases run out.
    """
    waiting_for = awaited(error)
    if waiting_for is None and not isinstance(error, Unavailable):
        return False
    _log.warning(
        "job %s is waiting for %s: %s",
        claims[0].job_id if claims else "",
        _TEXTS[waiting_for or "database"],
        error,
    )
    for pause in (*_PAUSES_SECONDS, None):
        try:
            if waiting_for is None:
                jobs.release(tenant_id, claims)
            else:
                jobs.postpone(tenant_id, claims, waiting_for)
        except Unavailable:
            if pause is not None:
                sleep(pause)
        else:
            return True
    _log.warning("the database stays away; the leases of %d job(s) will run out", len(claims))
    return True


def fault_of_imports(error: BaseException) -> HeadwaterError | None:
    """The error of a job whose process cannot import a module, by the exception or by one that has caused it.

    None for any other exception. Another attempt would end in the same way.
    """
    cause: BaseException | None = None if isinstance(error, HeadwaterError) else error
    while cause is not None:
        if isinstance(cause, ImportError):
            return missing_module(str(cause))
        cause = cause.__cause__
    return None


def missing_module(reason: str) -> HeadwaterError:
    """The error of a job whose process cannot import a module. `reason`: what Python says about it."""
    return HeadwaterError(
        f"A process of a worker cannot import a module: {reason}. "
        "The operator installs the packages of this release in the environment of the worker."
    )
