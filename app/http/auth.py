"""Authentication and authorization: bearer credentials and scopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.types import ASGIApp

from app.access.errors import Forbidden, NotFound, Unauthorized, scope_missing
from app.access.tenants.errors import TenantSuspended
from app.access.tenants.values import ActorKind, Credential, KeyScope, Principal, seen_in_part
from app.http.credential_cache import Credentials
from app.http.limits.threads import PARTY, Threads
from app.http.protocols import INNER, SCHEME, client_address
from app.http.waiting.request_credential import Permit, RequestCredential
from app.kernel.format.identifiers import is_uuid
from app.kernel.sql.conditions.row_access import RowAccess

PUBLIC: Final = "public"
"""Handler option: no credential is required."""
_SCOPE: Final = "scope"
_ALTERNATIVE: Final = "alternative_scope"
_WHOLE_TENANT: Final = "whole_tenant"
_IN_PART: Final = "in_part"
_ENDS: Final = "only_ends"
_IN_OUTAGES: Final = "in_outages"
_CREATES: Final = "creates"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods of requests that change nothing."""


def needs(
    scope: KeyScope | None,
    *,
    whole_tenant: bool = False,
    in_part: bool = False,
    alternative: KeyScope | None = None,
    only_ends: bool = False,
    creates: bool = False,
    in_outages: bool = False,
) -> dict[str, Any]:
    """The handler option that states the scope that a request needs. Every handler that is not public has it.

    None: any valid key will do. `whole_tenant`: a key with grants is refused: the operation is not about datasets.
    `in_part`: the operation shows a principal no more of a dataset than `Principal.access`. Without it, principals that
    see a part of the dataset only are refused. `alternative`: a scope that will do instead, for reading only.
    `only_ends`: the operation ends work or takes away a permission, and a suspended tenant may do it. `creates`: the
    operation may register the dataset of its path, and checks itself whether the key may use the name. `in_outages`:
    operators get an answer while the database is away, see `Credentials.principal`; it may have nothing of tenants.
    """
    return {
        _SCOPE: scope,
        _WHOLE_TENANT: whole_tenant,
        _IN_PART: in_part,
        _ALTERNATIVE: alternative,
        _ENDS: only_ends,
        _CREATES: creates,
        _IN_OUTAGES: in_outages,
    }


def scope_of(handler: BaseRouteHandler) -> KeyScope | None:
    """The scope that the handler needs; None if any valid key will do."""
    scope: KeyScope | None = handler.opt[_SCOPE]
    return scope


def scopes_of(handler: BaseRouteHandler) -> tuple[KeyScope, ...]:
    """The scopes of which the handler needs one; none if any valid key will do."""
    return tuple(scope for scope in (scope_of(handler), handler.opt[_ALTERNATIVE]) if scope is not None)


class Scheme(Protocol):
    """Credentials of another kind than bearer ones, which were derived from such a one."""

    async def authenticate(self, connection: ASGIConnection[Any, Any, Any, Any]) -> tuple[Credential, object]:
        """What names the principal, and what the handler gets as `request.auth`. Whether the principal may still do
        anything is checked by the caller. Raises errors of the scheme, Unavailable.
        """
        ...


class Authentication(AbstractAuthenticationMiddleware):
    """Every request names its principal, but those to handlers that are marked public.

    `permits`: the guards that an open request must pass again if its principal changes. `schemes`: by the name that
    the option `SCHEME` of a handler states.
    """

    def __init__(
        self,
        app: ASGIApp,
        credentials: Credentials,
        permits: Sequence[Permit],
        schemes: Mapping[str, Scheme],
        **options: Any,
    ) -> None:
        super().__init__(app, **options)
        self._credentials = credentials
        self._permits = permits
        self._schemes = schemes

    async def authenticate_request(self, connection: ASGIConnection) -> AuthenticationResult:
        """Raises Unauthorized, TenantSuspended, and Unavailable and RateLimited if the credential cannot be checked."""
        scheme_name = connection.route_handler.opt.get(SCHEME)
        if scheme_name is not None:
            return await self._derived(self._schemes[scheme_name], connection)
        scope: Any = connection.scope
        inner: Credential | None = scope.get(INNER)
        if inner is not None:
            principal = await self._principal(inner, connection)
            if principal is None:
                raise Unauthorized("the session has ended: sign in again")
            return self._result(connection, inner, principal)
        return await self._bearer(connection)

    async def _derived(self, scheme: Scheme, connection: ASGIConnection) -> AuthenticationResult:
        credential, details = await scheme.authenticate(connection)
        principal = await self._principal(credential, connection)
        if principal is None:
            raise Unauthorized("the credential from which this one was derived is not valid any more")
        if principal.kind is ActorKind.RECIPIENT and principal.suspension is not None:
            raise TenantSuspended(
                "the owner of the share is suspended: its recipients read nothing meanwhile"
            )
        PARTY.set(principal.tenant_id)
        return AuthenticationResult(user=principal, auth=details)

    async def _bearer(self, connection: ASGIConnection) -> AuthenticationResult:
        scheme = connection.headers.get("authorization", "").partition(" ")[0]
        if not scheme:
            raise Unauthorized("send the header `Authorization: Bearer hw_…`")
        principal, credential = None, api_key_of(connection)
        if scheme.lower() == "bearer":
            principal = await self._principal(credential, connection)
        if principal is None:
            raise Unauthorized("the credential is not a valid API key; send `Authorization: Bearer hw_…`")
        return self._result(connection, credential, principal)

    async def _principal(self, credential: Credential, connection: ASGIConnection) -> Principal | None:
        in_outages = bool(connection.route_handler.opt.get(_IN_OUTAGES))
        return await self._credentials.principal(
            credential, client_address(connection.scope), in_outages=in_outages
        )

    def _result(
        self, connection: ASGIConnection, credential: Credential, principal: Principal
    ) -> AuthenticationResult:
        PARTY.set(principal.tenant_id)
        request_credential = RequestCredential(
            self._credentials, credential, principal, connection, self._permits
        )
        return AuthenticationResult(user=principal, auth=request_credential)


def api_key_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The API key in the header Authorization, as it was sent."""
    return connection.headers.get("authorization", "").partition(" ")[2].strip()


def in_sequence(guards: Sequence[Permit]) -> Permit:
    """The guards as one. The framework copies the handler for each guard of each request."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        for each in guards:
            await each(connection, handler)

    return guard


async def require_scope(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Raises Forbidden if the credential lacks the handler's scope, TenantSuspended for a change by such a tenant."""
    # Asynchronous, though it waits for nothing: the framework would have a thread call it, for every request.
    if handler.opt.get(PUBLIC):
        return
    principal: Principal = connection.user
    scope = scope_of(handler)
    if scope is None:
        return
    if principal.scopes.isdisjoint(scopes_of(handler)):
        raise scope_missing(scope.value)
    if handler.opt[_WHOLE_TENANT] and principal.grants is not None:
        raise Forbidden("this needs a key without grants")
    request: Any = connection.scope
    if request["method"] not in SAFE_METHODS and not handler.opt[_ENDS]:
        refuse_suspended(principal, scope)


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """What the first parameter of a path names: a dataset, or something that belongs to datasets."""

    datasets: Callable[[str, str], Sequence[str]]
    """The names of its datasets, by its tenant and its id or name. Raises NotFound."""
    access: Callable[[str, str], RowAccess | None] | None = None
    """The access with which it was made, by its tenant and its id; None if it may show anything of its datasets.

    A resource without this function shows each key what the key may see.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class RequireGrant:
    """The guard that hides what belongs to datasets which are not granted to the key.

    What is missing and what is hidden get one answer.
    """

    resources: Mapping[str, Resource]
    """By the name of the first parameter of a path."""
    threads: Threads

    async def __call__(
        self, connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
    ) -> None:
        """Raises NotFound, Forbidden if the grants of a dataset lack the scope of the handler, RestrictedGrant."""
        if handler.opt.get(PUBLIC) or connection.user.grants is None or not connection.path_params:
            return
        if SCHEME in handler.opt:
            return
        principal: Principal = connection.user
        kind, reference = next(iter(connection.path_params.items()))
        names = await self._names(principal, handler, kind, reference)
        # Not there where it is checked again, for an open request.
        credential: RequestCredential | None = connection.scope.get("auth")
        if credential is not None:
            credential.began_with(names)
        scope = scope_of(handler)
        if scope is not None and not all(scope in principal.scopes_on(name) for name in names):
            raise scope_missing(scope.value)
        if restrictions := [access for access in map(principal.access, names) if access.restricted]:
            await self._check_access(principal, restrictions, kind, reference)
            if not handler.opt[_IN_PART]:
                raise seen_in_part(names[0])

    async def _names(
        self, principal: Principal, handler: BaseRouteHandler, kind: str, reference: str
    ) -> Sequence[str]:
        """The names of the resource's datasets, all granted. Raises NotFound."""
        try:
            names = await self.threads.run(self.resources[kind].datasets, principal.tenant_id, reference)
        except NotFound:
            names = (reference,) if handler.opt[_CREATES] and not is_uuid(reference) else ()
        if not names or not all(map(principal.reaches, names)):
            raise _hidden(kind, reference)
        return names

    async def _check_access(
        self, principal: Principal, restrictions: Sequence[RowAccess], kind: str, reference: str
    ) -> None:
        """Raises NotFound for a resource that was made with access to more than the principal sees."""
        access_of = self.resources[kind].access
        if access_of is not None:
            access = await self.threads.run(access_of, principal.tenant_id, reference)
            if access is None or not all(map(access.within, restrictions)):
                raise _hidden(kind, reference)


def _hidden(kind: str, reference: str) -> NotFound:
    return NotFound(f"there is no {kind} {reference!r}")


def refuse_suspended(principal: Principal, scope: KeyScope) -> None:
    """Raises TenantSuspended if the scope is one of those that change the tenant's data and the tenant is suspended."""
    if principal.suspension is not None and scope in (KeyScope.WRITE, KeyScope.MANAGE):
        raise TenantSuspended(
            f"the operator has suspended this tenant: {principal.suspension or 'no reason was given'}. "
            "Data can be read, not changed",
            reason=principal.suspension,
        )
