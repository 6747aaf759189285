"""Authentication and authorization: bearer keys and scopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.types import ASGIApp, Guard

from app.format.errors import Forbidden, NotFound, Unauthorized, scope_missing
from app.http.credentials import Credentials
from app.http.threads import Threads
from app.tenants.values import KeyScope, Principal, TenantSuspended

PUBLIC: Final = "public"
"""Handler option: no credential is required."""
_SCOPE: Final = "scope"
_WHOLE_TENANT: Final = "whole_tenant"


def needs(scope: KeyScope | None, *, whole_tenant: bool = False) -> dict[str, Any]:
    """The handler option that states the scope that a request needs. Every handler that is not public has it.

    None: any valid key will do. `whole_tenant`: a key with grants is refused: the operation is not about datasets.
    """
    return {_SCOPE: scope, _WHOLE_TENANT: whole_tenant}


def scope_of(handler: BaseRouteHandler) -> KeyScope | None:
    """The scope that the handler needs; None if any valid key will do."""
    scope: KeyScope | None = handler.opt[_SCOPE]
    return scope


class Authentication(AbstractAuthenticationMiddleware):
    """Every request names its principal, but those to handlers that are marked public."""

    def __init__(self, app: ASGIApp, credentials: Credentials, **options: Any) -> None:
        super().__init__(app, **options)
        self._credentials = credentials

    async def authenticate_request(self, connection: ASGIConnection) -> AuthenticationResult:
        """Raises Unauthorized."""
        scheme, _, api_key = connection.headers.get("authorization", "").partition(" ")
        if not scheme:
            raise Unauthorized("send the header `Authorization: Bearer hw_…`")
        principal = None
        if scheme.lower() == "bearer":
            principal = await self._credentials.principal(api_key.strip())
        if principal is None:
            raise Unauthorized("the credential is not a valid API key")
        return AuthenticationResult(user=principal, auth=None)


async def require_scope(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Raises Forbidden if the credential lacks the handler's scope, TenantSuspended for a write of such a tenant."""
    # Asynchronous, though it waits for nothing: the framework would have a thread call it, for every request.
    if handler.opt.get(PUBLIC):
        return
    principal: Principal = connection.user
    scope = scope_of(handler)
    if scope is None:
        return
    if scope not in principal.scopes:
        raise scope_missing(scope.value)
    if handler.opt[_WHOLE_TENANT] and principal.grants is not None:
        raise Forbidden("this needs a key without grants", required_scope=scope.value)
    refuse_suspended(principal, scope)


DatasetsOf: TypeAlias = Callable[[str, str], Sequence[str]]
"""The names of the datasets that something belongs to, by its tenant and its id or name. Raises NotFound."""


def require_grant(datasets_of: Mapping[str, DatasetsOf], threads: Threads) -> Guard:
    """The guard that hides what belongs to datasets which are not granted to the key.

    `datasets_of`: by the name of the first parameter of a path. What is missing and what is hidden get one answer.
    """

    async def check(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        """Raises NotFound, or Forbidden if the grants of a dataset lack the scope of the handler."""
        if handler.opt.get(PUBLIC) or connection.user.grants is None or not connection.path_params:
            return
        principal: Principal = connection.user
        kind, reference = next(iter(connection.path_params.items()))
        try:
            names = await threads.run(datasets_of[kind], principal.tenant_id, reference)
        except NotFound:
            names = ()
        if not names or not all(map(principal.reaches, names)):
            raise NotFound(f"there is no {kind} {reference!r}")
        scope = scope_of(handler)
        if scope is not None and not all(scope in principal.scopes_on(name) for name in names):
            raise scope_missing(scope.value)

    return check


def refuse_suspended(principal: Principal, scope: KeyScope) -> None:
    """Raises TenantSuspended if the scope is one of those that change the tenant's data and the tenant is suspended."""
    if principal.suspended is not None and scope in (KeyScope.WRITE, KeyScope.MANAGE):
        raise TenantSuspended(
            f"the operator has suspended this tenant: {principal.suspended or 'no reason was given'}. "
            "Data can be read, not changed",
            reason=principal.suspended,
        )
