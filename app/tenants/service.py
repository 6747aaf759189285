"""What a process knows of tenants and keys: hears of changes, looks up quotas, and records the use of keys."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from app.format.errors import HeadwaterError
from app.tenants.quotas import Quotas
from app.tenants.repository.credentials import USED_SECONDS, CredentialStore
from app.tenants.repository.usage import UsageStore
from app.tenants.usage import KeyUsage

_log = logging.getLogger(__name__)

# Between two questions whether the connection lives; a stop waits this long.
_POLL_SECONDS: Final = 0.25
_RETRY_SECONDS: Final = 1.0
_USAGE_SECONDS: Final = 5.0
_QUOTA_SECONDS: Final = 5.0
_QUOTAS_MAX: Final = 10_000


class CredentialCache(Protocol):
    """Principals by credential, as a process has cached them."""

    def confirm(self, moment: float) -> None:
        """All changes until this moment (of the monotonic clock) have been reported to `drop`."""
        ...

    def drop(self, tenant_id: str) -> None:
        """The keys or the state of a tenant have changed."""
        ...

    def drop_all(self) -> None:
        """Changes may have been missed."""
        ...

    def take_used(self) -> Mapping[str, set[str]]:
        """The ids of the keys that were used since the last call, by tenant."""
        ...


class Notifications(Protocol):
    """An open connection that receives notifications."""

    def received(self, seconds: float) -> list[str]:
        """The payloads of all notifications before the answer of the server. Raises if the connection is lost."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowCredentials:
    """Reports changes of keys and tenants to the cache. `listening` opens a connection."""

    cache: CredentialCache
    listening: Callable[[], AbstractContextManager[Notifications]]

    def run(self, stop: threading.Event) -> None:
        """Listens until `stop` is set. While no connection is open, the cache confirms nothing."""
        while not stop.is_set():
            try:
                with self.listening() as notifications:
                    self._follow(notifications, stop)
            except HeadwaterError as error:
                _log.warning(
                    "changes of credentials are not received, so each request reads its key: %s", error
                )
            self.cache.drop_all()
            stop.wait(_RETRY_SECONDS)

    def _follow(self, notifications: Notifications, stop: threading.Event) -> None:
        # What was cached before this connection listened may have changed unheard.
        self.cache.drop_all()
        while not stop.is_set():
            moment = time.monotonic()
            for tenant_id in notifications.received(0):
                self.cache.drop(tenant_id)
            self.cache.confirm(moment)
            for tenant_id in notifications.received(_POLL_SECONDS):
                self.cache.drop(tenant_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordUses:
    """Records once a minute which keys were used."""

    cache: CredentialCache
    store: CredentialStore
    interval_seconds: float = USED_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Records until `stop` is set, and then once more."""
        while not stop.wait(self.interval_seconds):
            self.record()
        self.record()

    def record(self) -> None:
        """Records the uses since the last call. Those that cannot be recorded are lost."""
        for tenant_id, key_ids in self.cache.take_used().items():
            try:
                self.store.note_use(tenant_id, sorted(key_ids))
            except HeadwaterError as error:
                _log.warning("the last use of keys is not recorded: %s", error)
                return


class CountedUsage(Protocol):
    """The usage of keys, as a process has counted it."""

    def take(self) -> Sequence[KeyUsage]:
        """What was counted since the last call."""
        ...

    def put_back(self, used: Sequence[KeyUsage]) -> None:
        """What could not be recorded."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordUsage:
    """Records what keys have used, every few seconds and when the process stops."""

    counted: CountedUsage
    store: UsageStore
    interval_seconds: float = _USAGE_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Records until `stop` is set, and then once more."""
        while not stop.wait(self.interval_seconds):
            self.record()
        self.record()

    def record(self) -> None:
        """Records what was counted since the last call. What cannot be recorded is tried again later."""
        by_tenant: dict[str, list[KeyUsage]] = defaultdict(list)
        for each in self.counted.take():
            by_tenant[each.tenant_id].append(each)
        for tenant_id, used in by_tenant.items():
            try:
                self.store.add(tenant_id, used)
            except HeadwaterError as error:
                _log.warning("the usage of keys is recorded later: %s", error)
                self.counted.put_back(used)


class QuotaLookup:
    """Quotas for the parts of a process that need them often: at most 5 s old. Safe to use from any thread."""

    def __init__(self, read: Callable[[str], Quotas]) -> None:
        self._read = read
        self._known: dict[str, tuple[float, Quotas]] = {}

    def weight(self, tenant_id: str) -> float:
        """The share of the tenant in scheduling, relative to others. Raises Unavailable."""
        weight = self._quotas(tenant_id).weight
        return float(weight) if isinstance(weight, int | float) else 1.0

    def job_seconds(self, tenant_id: str) -> float | None:
        """The time that a read or a derivation of the tenant may run; None for no limit. Raises Unavailable."""
        seconds = self._quotas(tenant_id).job_seconds
        return float(seconds) if isinstance(seconds, int | float) else None

    def _quotas(self, tenant_id: str) -> Quotas:
        known = self._known.get(tenant_id)
        now = time.monotonic()
        if known is not None and now - known[0] < _QUOTA_SECONDS:
            return known[1]
        quotas = self._read(tenant_id)
        if len(self._known) >= _QUOTAS_MAX:
            self._known = {}
        self._known[tenant_id] = (now, quotas)
        return quotas
