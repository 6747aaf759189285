"""Checks of the credentials of open requests: again after each change that may end them.

TenantCredentials    the credentials that open requests of a tenant have, checked again after changes
CredentialCheck      the latest check of one credential, shared by all its requests
ValidPrincipal       the result: a principal, and until when it is valid

A request has its RequestCredential (`request_credential.py`), which compares the result with what it began with.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Never
from weakref import WeakValueDictionary

import msgspec

from app.access.errors import Unauthorized
from app.access.tenants.values import Credential, Principal
from app.http.limits.threads import PARTY
from app.infra.errors import Unavailable
from app.infra.sharing.next_flight import NextFlight
from app.infra.sharing.single_flight import SingleFlight, landed
from app.kernel.format.errors import HeadwaterError

# A tenant that changes its keys all the time has them checked at most this often, and two of them at a time.
_PAUSE_SECONDS: Final = 0.5
_CHECKS_AT_ONCE: Final = 2
_RETRY_SECONDS: Final = 1.0

_NAMES_MAX: Final = 1_000

_log = logging.getLogger(__name__)


class ValidPrincipal(msgspec.Struct, frozen=True):
    """The principal of a credential, and the time (of the monotonic clock) until which it is valid."""

    principal: Principal
    valid_until: float


class TenantCredentials:
    """The credentials of a tenant's open requests.

    Those of requests that wait are checked after each change of the tenant's credentials and state, and of the names
    of its datasets.

    Belongs to the event loop on which it is made, except for `note`.
    """

    def __init__(
        self,
        tenant_id: str,
        read: Callable[[Credential], Awaitable[ValidPrincipal | None]],
        name_of: Callable[[str], Awaitable[str | None]],
        hears: Callable[[], bool],
    ) -> None:
        """`read`: the principal of a credential; None if it has none. `name_of`: the name of a dataset by its id.

        `hears`: whether all changes until now have been noted.
        """
        self.tenant_id = tenant_id
        self.read = read
        self._name_of = name_of
        self.hears = hears
        self.changes = 0
        self.checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._checks_by_digest: WeakValueDictionary[bytes, CredentialCheck] = WeakValueDictionary()
        # The number of changes before it was read, and the name, by dataset.
        self._names: dict[str, tuple[int, str | None]] = {}
        self._name_reads = SingleFlight[tuple[str, int], asyncio.Task[str | None]]()
        self._loop = asyncio.get_running_loop()
        self._checked_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._checking: asyncio.Task[None] | None = None

    def check_of(self, digest: bytes, credential: Credential) -> CredentialCheck:
        """The check of this credential, the same for all requests that have it. `digest`: of the credential."""
        check = self._checks_by_digest.get(digest)
        # One that was refused is of requests that end. This request was admitted after that.
        if check is None or check.refused is not None:
            check = self._checks_by_digest[digest] = CredentialCheck(self, credential)
        return check

    async def name_of(self, dataset_id: str) -> str | None:
        """The name of a dataset, read once after each change for all that need it. Raises Unavailable."""
        after, name = self._names.get(dataset_id, (None, None))
        if after == self.changes and self.hears():
            return name
        key = (dataset_id, self.changes)
        return await landed(
            self._name_reads.join(
                key, lambda: asyncio.create_task(self._read_name(*key), name="dataset name")
            )
        )

    async def _read_name(self, dataset_id: str, after: int) -> str | None:
        name = await self._name_of(dataset_id)
        if len(self._names) >= _NAMES_MAX:
            self._names.clear()
        self._names[dataset_id] = after, name
        return name

    def note(self) -> None:
        """Something that decides what its credentials may do has changed, or may have. Called on any thread."""
        self.changes += 1
        # A loop that has ended holds no request open.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.check_soon)

    def check_soon(self) -> None:
        """Checks the credentials of requests that wait, unless that was done a moment ago: then after a pause."""
        self._check_after(_PAUSE_SECONDS)

    def _check_after(self, pause: float) -> None:
        if self._timer is None and self._checking is None:
            self._timer = self._loop.call_at(max(self._loop.time(), self._checked_at + pause), self._check)

    def _check(self) -> None:
        self._timer, self._checked_at = None, self._loop.time()
        waited_for = [each for each in self._checks_by_digest.values() if each.waited_for]
        if not waited_for:
            return
        if not self.hears():
            # There is no connection to read with, or another change is missed meanwhile.
            self._check_after(_RETRY_SECONDS)
            return
        self._checking = self._loop.create_task(
            self._check_all(waited_for, self.changes), name="credentials of open requests"
        )

    async def _check_all(self, waited_for: Sequence[CredentialCheck], changes: int) -> None:
        results = await asyncio.gather(*(each.refresh() for each in waited_for), return_exceptions=True)
        self._checking = None
        errors = [result for result in results if isinstance(result, Exception)]
        for error in errors:
            if not isinstance(error, Unavailable):
                _log.error("the credential of an open request could not be checked", exc_info=error)
        if errors or changes != self.changes:
            self._check_after(_RETRY_SECONDS if errors else _PAUSE_SECONDS)


class CredentialCheck:
    """The latest check of one credential. `principal`: None before the first `refresh`. `refused`: why it has ended."""

    def __init__(self, tenant: TenantCredentials, credential: Credential) -> None:
        self.principal: Principal | None = None
        self.refused: HeadwaterError | None = None
        self.valid_until = float("-inf")
        self._tenant = tenant
        # The number of changes before its request was checked, by wait.
        self._waits: dict[asyncio.Timeout, int] = {}
        self._credential = credential
        # The number of changes before it was read.
        self._changes = -1
        # The flight gets this object as its key: a method of it would be a cycle, which keeps it for longer.
        self._reads = NextFlight[CredentialCheck, Never, None](_refresh)

    @property
    def current(self) -> bool:
        """Whether nothing can have changed since it was read."""
        tenant = self._tenant
        return self._changes == tenant.changes and time.monotonic() < self.valid_until and tenant.hears()

    @property
    def changes(self) -> int:
        """The number of changes of the tenant until now."""
        return self._tenant.changes

    async def name_of(self, dataset_id: str) -> str | None:
        """The name of a dataset of the tenant. Raises Unavailable."""
        return await self._tenant.name_of(dataset_id)

    @contextmanager
    def waking(self, wait: asyncio.Timeout, changes: int) -> Iterator[None]:
        """Ends the wait, as its time would, once a change may have ended its request.

        `changes`: their number before the request was checked. Names are read meanwhile, so there may be more now.
        """
        self._waits[wait] = changes
        if changes != self._tenant.changes:
            self._tenant.check_soon()
        try:
            yield
        finally:
            del self._waits[wait]

    @property
    def waited_for(self) -> bool:
        """Whether a request waits, or is about to. Others check by themselves, before they send anything."""
        return bool(self._waits) or self._reads.busy(self)

    async def refresh(self) -> None:
        """Reads the credential unless it is current, once for all that request it at a time. Raises Unavailable."""
        await self._reads.join(self)

    async def read_unless_current(self) -> None:
        """Reads the credential unless it is current. Raises Unavailable."""
        if self.refused is None and not self.current:
            PARTY.set(self._tenant.tenant_id)
            async with self._tenant.checks:
                await self._read()
        elif has_grants(self.principal):
            # It was read again while these requests read the names of before.
            self._wake(before=self._changes)

    async def _read(self) -> None:
        before, changes, valid = self.principal, self._tenant.changes, None
        try:
            valid = await self._tenant.read(self._credential)
        except Unauthorized as error:
            # The frames of its traceback have this object.
            self.refused = error.with_traceback(None)
        if valid is not None:
            self.principal, self.valid_until, self._changes = valid.principal, valid.valid_until, changes
        elif self.refused is None:
            self.refused = Unauthorized("the API key was revoked or has expired")
        # Grants match names, which may be what has changed.
        if (
            self.refused is not None
            or has_grants(self.principal)
            or not may_read_the_same(before, self.principal)
        ):
            self._wake()

    def _wake(self, *, before: float = float("inf")) -> None:
        """Ends the waits whose requests were checked before this number of changes."""
        for wait, changes in self._waits.items():
            if changes < before and not wait.expired():
                wait.reschedule(asyncio.get_running_loop().time())


async def _refresh(check: CredentialCheck, _: Sequence[Never]) -> None:
    await check.read_unless_current()


def has_grants(principal: Principal | None) -> bool:
    """Whether it may only use the datasets whose names its grants match."""
    return principal is not None and principal.grants is not None


def may_read_the_same(one: Principal | None, other: Principal | None) -> bool:
    """Whether both may do the same with the same data. Quotas and a suspension do not end what is open."""
    if one is None or other is None:
        return one is other
    return (one.tenant_id, one.scopes, one.grants) == (other.tenant_id, other.scopes, other.grants)
