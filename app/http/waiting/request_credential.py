"""The credential of a request that stays open: a stream, or a request that waits. It ends when its credential does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from app.access.errors import Forbidden, NotFound
from app.access.tenants.values import Credential, KeyScope, Principal
from app.http.credential_cache import Credentials
from app.http.waiting.credential_checks import CredentialCheck, has_grants, may_read_the_same
from app.infra.errors import Unavailable
from app.kernel.format.errors import HeadwaterError
from app.kernel.sql.conditions.row_access import RowAccess

_RETRY_SECONDS: Final = 1.0
_RETRIES_MAX: Final = 30

Permit: TypeAlias = Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], Awaitable[None]]
"""A guard that decides by the principal of the connection. Raises HeadwaterError for one that it does not permit."""

Reach: TypeAlias = tuple[frozenset[KeyScope], RowAccess]
"""What a principal may do with a dataset, and what it sees of it."""


def reach_of(principal: Principal, name: str) -> Reach:
    """The reach that the grants of the principal give for the dataset of this name."""
    return principal.scopes_on(name), principal.access(name)


class CredentialEnded(Exception):
    """The credential of an open request permits it no longer. `error`: what the same request gets if it is sent now.

    `path`: that of the request.
    """

    def __init__(self, error: HeadwaterError, path: str) -> None:
        super().__init__(error.detail)
        self.error = error
        self.path = path


class RequestCredential:
    """The credential with which a request began. Used on the event loop only.

    Nothing is read for it before the request waits or streams. From then on it is read again after each change of the
    tenant's credentials, once for all requests that hold it.
    """

    __slots__ = (
        "_approved",
        "_changes",
        "_check",
        "_credential",
        "_credentials",
        "_datasets",
        "_permits",
        "_reaches",
        "_scope",
    )

    def __init__(
        self,
        credentials: Credentials,
        credential: Credential,
        principal: Principal,
        connection: ASGIConnection[Any, Any, Any, Any],
        permits: Sequence[Permit],
    ) -> None:
        """`principal`: with which the request began. `permits`: the guards that it has to pass."""
        self._credentials = credentials
        self._credential = credential
        self._approved = principal
        # A copy: the original gets a reference to this object, and a cycle would keep it after the request.
        self._scope: Any = {**connection.scope}
        self._permits = permits
        # The number of changes before it was checked.
        self._changes = -1
        self._check: CredentialCheck | None = None
        self._datasets: tuple[str, ...] = ()
        self._reaches: list[Reach] | None = None

    def began_with(self, names: Iterable[str]) -> None:
        """The names that the datasets of the request had when it was permitted."""
        self._reaches = [reach_of(self._approved, name) for name in names]

    def shows(self, dataset_id: str) -> None:
        """The request shows something of this dataset. Renamed to what is granted otherwise, it ends the request."""
        if dataset_id not in self._datasets:
            self._datasets = (*self._datasets, dataset_id)

    async def check(self) -> None:
        """Raises CredentialEnded if the request may not go on, Unavailable if that cannot be known."""
        check = self._credential_check()
        if not check.current:
            await check.refresh()
        if check.refused is not None:
            raise self._ended(check.refused)
        principal = check.principal
        if principal is not None and principal is not self._approved:
            if not may_read_the_same(principal, self._approved):
                raise self._ended(await self._refusal(principal))
            self._approved = principal
        changes = check.changes
        if has_grants(self._approved):
            await self._check_names(check)
        self._changes = changes

    async def check_if_possible(self) -> bool:
        """As `check`; false if the answer cannot be known at the moment."""
        try:
            await self.check()
        except Unavailable:
            return False
        return True

    async def check_before_data(self) -> None:
        """As `check`. While the answer cannot be known, it is requested again, for half a minute at most.

        Raises CredentialEnded, then also for an answer that is not known.
        """
        for _ in range(_RETRIES_MAX):
            if await self.check_if_possible():
                return
            await asyncio.sleep(_RETRY_SECONDS)
        raise self._ended(Unavailable("the credential cannot be checked at the moment"))

    async def seconds_to_wait(self) -> float:
        """For how long the request may wait before it calls this again, unless it is woken. Raises CredentialEnded."""
        if await self.check_if_possible():
            return self._credential_check().valid_until - time.monotonic()
        return _RETRY_SECONDS

    @contextmanager
    def waking(self, wait: asyncio.Timeout) -> Iterator[None]:
        """Ends the wait, as its time would, once the credential may have ended."""
        with self._credential_check().waking(wait, self._changes):
            yield

    async def _check_names(self, check: CredentialCheck) -> None:
        """Raises CredentialEnded if the grants give another reach for a dataset than when the request began."""
        names = [await check.name_of(dataset_id) for dataset_id in self._datasets]
        reaches = [reach_of(self._approved, name or "") for name in names]
        if self._reaches is None:
            # The path names none: the datasets of the body were checked when it was accepted.
            self._reaches = reaches
        elif any(reach not in self._reaches for reach in reaches):
            out_of_reach = not all(self._approved.reaches(name or "") for name in names)
            raise self._ended(await self._refusal(self._approved, out_of_reach=out_of_reach))

    def _credential_check(self) -> CredentialCheck:
        if self._check is None:
            self._check = self._credentials.check_of(self._credential, self._approved.tenant_id)
        return self._check

    async def _refusal(self, principal: Principal, *, out_of_reach: bool = False) -> HeadwaterError:
        """The error of a new request with the principal. One that is permitted may see something else than this one.

        `out_of_reach`: a dataset of this request does not exist for the principal, though another may have its name.
        """
        scope: Any = {**self._scope, "user": principal}
        connection: Any = ASGIConnection(scope)
        try:
            for permit in self._permits:
                await permit(connection, connection.route_handler)
        except HeadwaterError as error:
            return error
        if out_of_reach:
            return NotFound("the dataset has another name")
        return Forbidden("what the credential may do has changed since the request began: send it again")

    def _ended(self, error: HeadwaterError) -> CredentialEnded:
        return CredentialEnded(error, ASGIConnection(self._scope).url.path)
