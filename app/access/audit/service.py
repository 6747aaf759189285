"""Records administrative requests, counts all others, and lists both."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from app.access.audit.repository import Act, AuditStore
from app.access.audit.values import UNAUTHENTICATED, Access, AuditFilter, Caller, NewEntry
from app.kernel.format.errors import HeadwaterError
from app.kernel.paging import Page

_log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 5.0
"""How long a first request of its kind is only known to the process."""
_PERIOD_SECONDS: Final = 60.0
# Different accesses of one tenant, and of callers without a key, in a period. Beyond, they are counted less exactly.
_KINDS_MAX: Final = 1_000
# Tenants whose accesses a process remembers at a time.
_TENANTS_MAX: Final = 10_000
_DIGESTS_MAX: Final = 100
_ENTRIES: Final = 500


class _Count:
    """Equal accesses since the last entry about them. Times are of the monotonic clock."""

    __slots__ = ("count", "first", "last", "reported")

    def __init__(self, now: float) -> None:
        self.count = 0
        self.first = now
        self.last = now
        self.reported = False


class _Period:
    """The accesses of a tenant in one minute."""

    __slots__ = ("began", "counts", "digests")

    def __init__(self, now: float) -> None:
        self.began = now
        self.counts: dict[Access, _Count] = {}
        self.digests: set[bytes] = set()


class AccessCounts:
    """Counts accesses by what they have in common, in bounded memory.

    The first of a kind in a minute is stored at the next flush, the others as a number at the end of the minute: at
    most two rows for each kind and minute. A process that is killed loses what it has not stored.
    """

    def __init__(self, store: AuditStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._periods: dict[str, _Period] = {}

    def count(self, access: Access) -> None:
        """Counts an access. Takes no longer than a few look-ups."""
        now = self._clock()
        tenant_id = access.caller.tenant_id or UNAUTHENTICATED
        with self._lock:
            period = self._periods.get(tenant_id)
            if period is None:
                if len(self._periods) >= _TENANTS_MAX:
                    return
                period = self._periods[tenant_id] = _Period(now)
            kind = _bounded(period, access)
            counter = period.counts.get(kind)
            if counter is None:
                counter = period.counts[kind] = _Count(now)
            if counter.count == 0:
                counter.first = now
            counter.count += 1
            counter.last = now

    def flush(self, *, everything: bool = False) -> None:
        """Stores what is new, and what is left of the minutes that have ended. What cannot be stored is kept.

        Waits for a flush of another thread.
        """
        with self._flushing:
            self._flush(everything=everything)

    def _flush(self, *, everything: bool) -> None:
        for tenant_id in list(self._periods):
            entries, period = self._take(tenant_id, everything=everything)
            try:
                for start in range(0, len(entries), _ENTRIES):
                    self._add(tenant_id, entries[start : start + _ENTRIES])
            except HeadwaterError as error:
                _log.warning("accesses could not be recorded yet: %s", error)
                self._put_back(period, entries)
                return
            except Exception:
                # One tenant's entries must not keep those of others from being stored.
                _log.exception("accesses of tenant %s are not recorded", tenant_id)

    def _take(self, tenant_id: str, *, everything: bool) -> tuple[list[tuple[Access, NewEntry]], _Period]:
        now = self._clock()
        with self._lock:
            period = self._periods[tenant_id]
            is_over = everything or now - period.began >= _PERIOD_SECONDS
            entries = []
            for access, counter in period.counts.items():
                if counter.count and (is_over or not counter.reported):
                    entries.append((access, _entry(access, counter, now)))
                    counter.count, counter.reported = 0, True
            if is_over:
                del self._periods[tenant_id]
        return entries, period

    def _put_back(self, period: _Period, entries: list[tuple[Access, NewEntry]]) -> None:
        with self._lock:
            for access, entry in entries:
                tenant_id = access.caller.tenant_id or UNAUTHENTICATED
                open_period = self._periods.setdefault(tenant_id, period)
                counter = open_period.counts.setdefault(access, _Count(period.began))
                counter.count += entry.count
                counter.reported = False

    def _add(self, tenant_id: str, entries: list[tuple[Access, NewEntry]]) -> None:
        if tenant_id != UNAUTHENTICATED:
            self._store.add(tenant_id, [entry for _, entry in entries])
            return
        for access, entry in entries:
            owner = None if access.digest is None else self._store.owner_of(access.digest)
            if owner is None or owner.tenant_id is None:
                self._store.add(UNAUTHENTICATED, [entry])
            else:
                # A key that was revoked or has expired: its tenant sees that somebody has tried it.
                self._store.add(owner.tenant_id, [msgspec.structs.replace(entry, caller=owner)])


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What `app.http.audited` records requests with."""

    store: AuditStore
    counts: AccessCounts

    def begin(self, tenant_id: str, entry: Callable[[Mapping[str, str]], NewEntry]) -> Act:
        """Begins an administrative request, which is not carried out without its entry."""
        act = Act(self.store, tenant_id, entry)
        act.begin()
        return act

    def count(self, access: Access) -> None:
        """Counts any other request, and an administrative one that was refused."""
        self.counts.count(access)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadAudit:
    """Lists entries."""

    store: AuditStore

    def of_tenant(
        self, tenant_id: str, entry_filter: AuditFilter, *, page_size: int, page_token: str | None
    ) -> Page:
        """AuditEntry items of a tenant, the newest first."""
        return self.store.entries(tenant_id, entry_filter, page_size=page_size, page_token=page_token)

    def of_all(self, entry_filter: AuditFilter, *, page_size: int, page_token: str | None) -> Page:
        """AuditEntry items of all tenants. For `sees_all` only."""
        return self.store.entries(None, entry_filter, page_size=page_size, page_token=page_token)

    @property
    def sees_all(self) -> bool:
        """Whether this deployment can list the entries of all tenants."""
        return self.store.sees_all


def _bounded(period: _Period, access: Access) -> Access:
    """The access, or, if there are too many kinds, what it has in common with others."""
    digest = access.digest
    if digest is not None and digest not in period.digests:
        if len(period.digests) >= _DIGESTS_MAX:
            access = msgspec.structs.replace(access, digest=None)
        else:
            period.digests.add(digest)
    if access in period.counts or len(period.counts) < _KINDS_MAX:
        return access
    less = msgspec.structs.replace(access, dataset=None, address=None, digest=None)
    if less in period.counts or len(period.counts) < 2 * _KINDS_MAX:
        return less
    return msgspec.structs.replace(less, caller=Caller(tenant_id=access.caller.tenant_id))


def _entry(access: Access, counter: _Count, now: float) -> NewEntry:
    return NewEntry(
        caller=access.caller,
        operation=access.operation,
        outcome=access.outcome,
        status=access.status,
        code=access.code,
        resources={} if access.dataset is None else {"dataset": access.dataset},
        via=access.via,
        address=access.address,
        count=counter.count,
        first_age_seconds=now - counter.first,
        age_seconds=now - counter.last,
    )
