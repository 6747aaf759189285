"""Renderings that failed lately: until it is time to try again, requests get the fault of the last attempt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from app.features.rendered_files.errors import RenderingFailed
from app.infra.outages import awaited, fault_of_disk
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.errors import HeadwaterError

FIRST_PAUSE_SECONDS: Final = 1.0
"""The time after the first failure. It doubles with each further one."""
PAUSE_SECONDS_MAX: Final = 300.0
OUTAGE_PAUSE_SECONDS_MAX: Final = 15.0
"""The longest time after a fault of the storage or the database, which passes."""
_DOUBLINGS_MAX: Final = 16
_BYTES_MAX: Final = 4 * 1024 * 1024
_FAULT_BYTES: Final = 2_048
_Key = tuple[str, str, bytes]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fault:
    """`until`: when the next attempt may begin, by the clock of the process."""

    error: HeadwaterError
    attempts: int
    until: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderingFaults:
    """The faults of a process: at most some thousands, the latest. Safe to use from any thread."""

    clock: Callable[[], float] = monotonic
    _faults: ByteCache[_Key, _Fault] = field(default_factory=lambda: ByteCache(_BYTES_MAX))

    def of(self, key: _Key) -> HeadwaterError | None:
        """The fault of a rendering that is not tried again yet."""
        fault = self._faults.get(key)
        return None if fault is None or self.clock() >= fault.until else _without_frames(fault.error)

    def add(self, key: _Key, error: Exception) -> HeadwaterError:
        """Records a failed attempt. Returns the error for who requests the file: without what it is made of."""
        known = self._faults.get(key)
        attempts = 1 if known is None else known.attempts + 1
        longest = PAUSE_SECONDS_MAX if awaited(error) is None else OUTAGE_PAUSE_SECONDS_MAX
        pause = min(FIRST_PAUSE_SECONDS * 2 ** min(attempts - 1, _DOUBLINGS_MAX), longest)
        public = fault_of_disk(error) or error
        if not isinstance(public, HeadwaterError):
            # Its text may have values that the reader does not see.
            tenant_id, dataset_id, _ = key
            _log.error(
                "a file of the dataset %s of the tenant %s cannot be rendered, at attempt %d",
                dataset_id, tenant_id, attempts, exc_info=error,
            )  # fmt: skip
            public = RenderingFailed(attempts, max(1, round(pause)))
        self._faults.put(
            key, _Fault(error=public, attempts=attempts, until=self.clock() + pause), _FAULT_BYTES
        )
        return _without_frames(public)

    def end(self, key: _Key) -> None:
        """Records that a rendering has succeeded."""
        self._faults.take(key)


def _without_frames(error: HeadwaterError) -> HeadwaterError:
    """The error without what keeps the rows in memory that were read, and grows with each raise."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)
