"""The principal of a credential, cached while the process hears of every change of keys and tenants."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from app.access.tenants.errors import RateLimited
from app.access.tenants.values import (
    API_KEY,
    KEYS_MAX,
    ActorKind,
    ActorSecret,
    Credential,
    KeyScope,
    Principal,
)
from app.http.waiting.credential_checks import CredentialCheck, TenantCredentials, ValidPrincipal
from app.infra.errors import Unavailable
from app.infra.sharing.fair_slots import FairSlots

_CACHE_SIZE_MAX: Final = 10_000
# A tenant may have any number of tokens. They displace one another, not the credentials of other tenants.
_TENANT_SIZE_MAX: Final = KEYS_MAX
# An unknown key is looked up at most this often; keys are random, so none becomes known meanwhile.
_UNKNOWN_SECONDS: Final = 2.0
# How long ago the listening connection may have been confirmed. A lost one is noticed earlier, unless nothing arrives.
CONFIRMED_SECONDS: Final = 2.0
# For how long operators whose credential was valid may see that the database is away, once it is.
OUTAGE_SECONDS: Final = 3_600.0

# Keys that the process has not seen before: those that are looked up at a time, far fewer than there are threads.
LOOKUPS_MAX: Final = 4
# Those that are looked up or wait for it, of one address and of all.
ADDRESS_LOOKUPS_MAX: Final = 50
_ALL_LOOKUPS_MAX: Final = 500
_LOOKUP_WAIT_SECONDS_MAX: Final = 10.0
_RETRY_SECONDS: Final = 1


@asynccontextmanager
async def _lookup(slots: FairSlots, address: str) -> AsyncIterator[None]:
    """A slot in which an address has a key looked up that the process has not seen before.

    A client that sends random keys waits for others that do so, and never occupies the threads of known credentials.
    Raises RateLimited if too many of the address wait, Unavailable if too many of all do.
    """
    if slots.demand(address) >= ADDRESS_LOOKUPS_MAX:
        raise RateLimited(
            "too many requests of this address have credentials that are not known yet",
            quota="unknown_credentials",
            limit=ADDRESS_LOOKUPS_MAX,
            used=ADDRESS_LOOKUPS_MAX,
            limited="address",
            retry_after_seconds=_RETRY_SECONDS,
        )
    if slots.total_demand() >= _ALL_LOOKUPS_MAX:
        raise _busy()
    async with slots.slot(address, _LOOKUP_WAIT_SECONDS_MAX) as has_slot:
        if not has_slot:
            raise _busy()
        yield


def _busy() -> Unavailable:
    return Unavailable("too many requests have credentials that are not known yet. Try again")


class Credentials:
    """Calls `authenticate`, and caches its answers by digest, which saves a query per request.

    Requests call `principal` on the event loop; another thread calls the other methods. Nothing is served from the
    cache unless `confirm` was called within the last seconds.
    """

    def __init__(
        self,
        authenticate: Callable[[Credential], Awaitable[Principal | None]],
        name_of: Callable[[str, str], Awaitable[str | None]],
    ) -> None:
        """`name_of`: the name of a tenant's dataset by its id; None if there is none."""
        self._authenticate = authenticate
        self._name_of = name_of
        self._lock = threading.Lock()
        self._cached: dict[bytes, ValidPrincipal] = {}
        # The digests of each tenant, the first cached first.
        self._of_tenant: dict[str, dict[bytes, None]] = {}
        self._unknown: dict[bytes, float] = {}
        self._changes = 0
        # Of the tenants that have open requests.
        self._open: WeakValueDictionary[str, TenantCredentials] = WeakValueDictionary()
        self._confirmed_at = -CONFIRMED_SECONDS
        # Credentials of operators that were valid when the process last heard of changes; none while it hears of them.
        self._of_outage: dict[bytes, ValidPrincipal] = {}
        self._lookups = FairSlots(LOOKUPS_MAX)
        self._used: dict[ActorKind, dict[str, set[str]]] = {}
        self._used_count = 0

    async def principal(
        self, credential: Credential, address: str = "", *, in_outages: bool = False
    ) -> Principal | None:
        """The principal of a credential; None if it is not a valid one. `address`: that of the client.

        `in_outages`: while nothing is heard and nothing can be read, it is that of an operator whose credential was
        valid before, for an hour: for what shows that the database is away, and nothing of tenants.
        Raises what `authenticate` raises, and RateLimited and Unavailable if too many credentials are not known.
        """
        try:
            entry = await self._find(credential, address)
        except Unavailable:
            entry = self._valid_before(_digest(credential)) if in_outages else None
            if entry is None:
                raise
        if entry is None:
            return None
        self._note_use(entry.principal)
        return entry.principal

    def lookup(self, address: str) -> AbstractAsyncContextManager[None]:
        """A turn in which a secret of this address is looked up that is no credential, such as that of a link.

        It shares the bounds of keys that are not known. Entering it raises RateLimited, Unavailable.
        """
        return _lookup(self._lookups, address)

    def check_of(self, credential: Credential, tenant_id: str) -> CredentialCheck:
        """The check of a credential of this tenant, for a request that stays open. Called on the event loop."""
        with self._lock:
            tenant = self._open.get(tenant_id)
            if tenant is None:
                tenant = self._open[tenant_id] = TenantCredentials(
                    tenant_id, self._find, partial(self._name_of, tenant_id), self._hears
                )
        return tenant.check_of(_digest(credential), credential)

    def confirm(self, moment: float) -> None:
        """All changes until this moment (of the monotonic clock) have been reported to `drop`."""
        with self._lock:
            self._confirmed_at = moment
            self._of_outage.clear()

    def drop(self, tenant_id: str) -> None:
        """The keys, the state or names of datasets of a tenant have changed."""
        with self._lock:
            self._changes += 1
            self._expire(self._of_tenant.get(tenant_id, ()))
            for digest in self._of_tenant.get(tenant_id, ()):
                self._of_outage.pop(digest, None)
            tenant = self._open.get(tenant_id)
        if tenant is not None:
            tenant.note()

    def drop_all(self) -> None:
        """Changes may have been missed."""
        with self._lock:
            self._changes += 1
            if self._confirmed_at > -CONFIRMED_SECONDS:
                self._of_outage = self._operators()
            self._expire(tuple(self._cached))
            self._confirmed_at = -CONFIRMED_SECONDS
            tenants = list(self._open.values())
        for each in tenants:
            each.note()

    def take_used(self) -> dict[ActorKind, dict[str, set[str]]]:
        """The ids of the actors that were active since the last call, by kind and tenant; none of tokens of issuers."""
        with self._lock:
            used, self._used, self._used_count = self._used, {}, 0
        return used

    async def _find(self, credential: Credential, address: str | None = None) -> ValidPrincipal | None:
        """The principal of a credential. `address`: that of the client; None for a request that is open.

        One that expires while it is read was valid, and is read again when it is used next.
        """
        digest = _digest(credential)
        entry = self._known(digest)
        if entry is None and not self._is_unknown(digest):
            # Tokens are verified before anything is read for them.
            if address is None or digest in self._cached or not _may_be_key(credential):
                entry = await self._read(credential, digest)
            else:
                async with _lookup(self._lookups, address):
                    # It may have been looked up meanwhile.
                    entry = self._known(digest)
                    if entry is None and not self._is_unknown(digest):
                        entry = await self._read(credential, digest)
        return entry

    def _hears(self) -> bool:
        """Whether the process hears of changes, so that what was read before holds."""
        return time.monotonic() - self._confirmed_at < CONFIRMED_SECONDS

    def _known(self, digest: bytes) -> ValidPrincipal | None:
        with self._lock:
            if not self._hears():
                return None
            entry = self._cached.get(digest)
        # What has expired is read once more, for the reason of the refusal.
        return None if entry is None or entry.valid_until <= time.monotonic() else entry

    def _operators(self) -> dict[bytes, ValidPrincipal]:
        """The credentials of operators that are valid now, for the time of an outage."""
        now = time.monotonic()
        return {
            digest: ValidPrincipal(entry.principal, min(entry.valid_until, now + OUTAGE_SECONDS))
            for digest, entry in self._cached.items()
            if KeyScope.OPERATE in entry.principal.scopes and entry.valid_until > now
        }

    def _valid_before(self, digest: bytes) -> ValidPrincipal | None:
        with self._lock:
            # A connection that has fallen silent is not lost before it is found to be so.
            is_off = self._confirmed_at <= -CONFIRMED_SECONDS
            entry = (self._of_outage if is_off else self._operators()).get(digest)
        return None if entry is None or entry.valid_until <= time.monotonic() else entry

    def _is_unknown(self, digest: bytes) -> bool:
        return self._unknown.get(digest, 0.0) > time.monotonic()

    async def _read(self, credential: Credential, digest: bytes) -> ValidPrincipal | None:
        changes, now = self._changes, time.monotonic()
        principal = await self._authenticate(credential)
        if principal is None:
            if len(self._unknown) >= _CACHE_SIZE_MAX:
                self._unknown.clear()
            self._unknown[digest] = now + _UNKNOWN_SECONDS
            with self._lock:
                self._of_outage.pop(digest, None)
                self._remove(digest)
            return None
        seconds = principal.valid_seconds
        entry = ValidPrincipal(principal, float("inf") if seconds is None else now + seconds)
        with self._lock:
            # What changed during the query may not be in its answer.
            if changes == self._changes:
                self._store(digest, entry)
        return entry

    def _store(self, digest: bytes, entry: ValidPrincipal) -> None:
        of_tenant = self._of_tenant.get(entry.principal.tenant_id, {})
        if digest not in of_tenant:
            if len(of_tenant) >= _TENANT_SIZE_MAX:
                oldest = next(iter(of_tenant))
                del of_tenant[oldest], self._cached[oldest]
            elif len(self._cached) >= _CACHE_SIZE_MAX:
                self._clear()
        self._cached[digest] = entry
        self._of_tenant.setdefault(entry.principal.tenant_id, {})[digest] = None

    def _expire(self, digests: Iterable[bytes]) -> None:
        """They are read again, as credentials that the process has seen."""
        for digest in digests:
            self._cached[digest] = msgspec.structs.replace(self._cached[digest], valid_until=float("-inf"))

    def _remove(self, digest: bytes) -> None:
        entry = self._cached.pop(digest, None)
        if entry is not None:
            of_tenant = self._of_tenant[entry.principal.tenant_id]
            del of_tenant[digest]
            if not of_tenant:
                del self._of_tenant[entry.principal.tenant_id]

    def _clear(self) -> None:
        self._cached.clear()
        self._of_tenant.clear()

    def _note_use(self, principal: Principal) -> None:
        if principal.kind is ActorKind.TOKEN:
            return
        with self._lock:
            ids = self._used.setdefault(principal.kind, {}).setdefault(principal.tenant_id, set())
            if principal.actor not in ids and self._used_count < _CACHE_SIZE_MAX:
                ids.add(principal.actor)
                self._used_count += 1


def _may_be_key(credential: Credential) -> bool:
    if isinstance(credential, ActorSecret):
        return True
    return isinstance(credential, str) and API_KEY.fullmatch(credential) is not None


def _digest(credential: Credential) -> bytes:
    # The text of a header begins with no NUL, and the id of a tenant is not the name of a kind.
    if isinstance(credential, str):
        text = credential
    elif isinstance(credential, ActorSecret):
        text = f"\0{credential.kind.value}:{credential.text}"
    else:
        text = f"\0{credential.tenant_id}:{credential.kind.value}:{credential.id}:{credential.token_ends}"
    return hashlib.sha256(text.encode()).digest()
