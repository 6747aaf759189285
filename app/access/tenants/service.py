"""What a process knows of tenants and keys: keeps it current, and records when and how much keys were used."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from app.access.tenants.ports import ActorStore
from app.access.tenants.quotas import NO_QUOTAS, Quotas
from app.access.tenants.repository.usage import UsageStore
from app.access.tenants.usage import KeyUsage
from app.access.tenants.values import ActorKind
from app.kernel.format.errors import HeadwaterError

_log = logging.getLogger(__name__)

# Between two questions whether the connection lives; a stop waits this long.
_POLL_SECONDS: Final = 0.25
FOLLOW_SECONDS: Final = 1.0
"""The pause before a lost connection is opened again."""
USAGE_SECONDS: Final = 5.0
"""How often the usage of keys is recorded."""
QUOTA_SECONDS: Final = 5.0
"""How often the quotas of tenants are read by a worker."""


class CredentialCache(Protocol):
    """Principals by credential, as a process has cached them."""

    def confirm(self, moment: float) -> None:
        """All changes until this moment (of the monotonic clock) have been reported to `drop`."""
        ...

    def drop(self, tenant_id: str) -> None:
        """The keys, the state or names of datasets of a tenant have changed."""
        ...

    def drop_all(self) -> None:
        """Changes may have been missed."""
        ...

    def take_used(self) -> Mapping[ActorKind, Mapping[str, set[str]]]:
        """The ids of the actors that were active since the last call, by kind and tenant."""
        ...


class Notifications(Protocol):
    """An open connection that receives notifications."""

    def received(self, seconds: float) -> list[str]:
        """The payloads of all notifications before the answer of the server. Raises if the connection is lost."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowCredentials:
    """Reports changes of keys, tenants and names of datasets to the cache.

    `listening` opens a connection. `on_answer` is called with each answer of the server.
    """

    cache: CredentialCache
    listening: Callable[[], AbstractContextManager[Notifications]]
    stop: threading.Event
    on_answer: Callable[[], None]

    def run(self) -> None:
        """Listens until `stop` is set, or until the connection is lost. Then the cache confirms nothing.

        Raises Unavailable.
        """
        try:
            with self.listening() as notifications:
                self._follow(notifications)
        finally:
            self.cache.drop_all()

    def _follow(self, notifications: Notifications) -> None:
        # What was cached before this connection listened may have changed unheard.
        self.cache.drop_all()
        while not self.stop.is_set():
            moment = time.monotonic()
            for tenant_id in notifications.received(0):
                self.cache.drop(tenant_id)
            self.cache.confirm(moment)
            self.on_answer()
            for tenant_id in notifications.received(_POLL_SECONDS):
                self.cache.drop(tenant_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordUses:
    """Records once a minute which credentials were used."""

    cache: CredentialCache
    actors: Mapping[ActorKind, ActorStore]

    def record(self) -> None:
        """Records the uses since the last call. Those that cannot be recorded are lost."""
        for kind, ids_by_tenant in self.cache.take_used().items():
            for tenant_id, ids in ids_by_tenant.items():
                try:
                    self.actors[kind].note_use(tenant_id, sorted(ids))
                except HeadwaterError as error:
                    _log.warning("the last use of credentials is not recorded: %s", error)
                    return


class CountedUsage(Protocol):
    """The usage of keys, as a process has counted it."""

    def take(self) -> Sequence[KeyUsage]:
        """What was counted since the last call."""
        ...

    def put_back(self, usages: Sequence[KeyUsage]) -> None:
        """What could not be recorded."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordUsage:
    """Records what keys have used."""

    counter: CountedUsage
    store: UsageStore

    def record(self) -> None:
        """Records what was counted since the last call. What cannot be recorded is tried again later."""
        by_tenant: dict[str, list[KeyUsage]] = defaultdict(list)
        for each in self.counter.take():
            by_tenant[each.tenant_id].append(each)
        for tenant_id, usages in by_tenant.items():
            try:
                self.store.add(tenant_id, usages)
            except HeadwaterError as error:
                _log.warning("the usage of keys is recorded later: %s", error)
                self.counter.put_back(usages)


class KnownQuotas:
    """The quotas that workers apply, as they were read last. Safe to use from any thread; never waits."""

    def __init__(self, read: Callable[[], Mapping[str, Quotas]]) -> None:
        """`read` returns the quotas of the tenants that have some of these, by id."""
        self._read = read
        self._known: Mapping[str, Quotas] = {}

    def refresh(self) -> None:
        """Reads them again. Raises Unavailable; then those that were read before apply."""
        self._known = self._read()

    def weight(self, tenant_id: str) -> float:
        """The share of the tenant in scheduling, relative to others."""
        weight = self._of(tenant_id).weight
        return float(weight) if isinstance(weight, int | float) else 1.0

    def job_seconds(self, tenant_id: str) -> float | None:
        """The time limit of a job of the tenant; None for that of the installation."""
        seconds = self._of(tenant_id).job_seconds
        return float(seconds) if isinstance(seconds, int | float) else None

    def _of(self, tenant_id: str) -> Quotas:
        return self._known.get(tenant_id, NO_QUOTAS)
