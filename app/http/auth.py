"""Authentication and authorization: bearer keys and scopes."""

from __future__ import annotations

from typing import Any, Final

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.types import ASGIApp

from app.format.errors import Forbidden, Unauthorized
from app.http.credentials import Credentials

PUBLIC: Final = "public"
"""Handler option: no credential is required."""
SCOPE: Final = "scope"
"""Handler option: the scope that is needed, where it is not `read` for GET and `write` for all else."""


class Authentication(AbstractAuthenticationMiddleware):
    """Every request names its principal, but those to handlers that are marked public."""

    def __init__(self, app: ASGIApp, credentials: Credentials, **options: Any) -> None:
        super().__init__(app, **options)
        self._credentials = credentials

    async def authenticate_request(self, connection: ASGIConnection) -> AuthenticationResult:
        """Raises Unauthorized."""
        scheme = connection.headers.get("authorization", "").partition(" ")[0]
        if not scheme:
            raise Unauthorized("send the header `Authorization: Bearer hw_…`")
        principal = None
        if scheme.lower() == "bearer":
            principal = await self._credentials.principal(api_key_of(connection))
        if principal is None:
            raise Unauthorized("the credential is not a valid API key")
        return AuthenticationResult(user=principal, auth=None)


def api_key_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The API key in the header Authorization, as it was sent."""
    return connection.headers.get("authorization", "").partition(" ")[2].strip()


async def require_scope(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Raises Forbidden if the credential lacks the handler's scope."""
    # Asynchronous, though it waits for nothing: the framework would have a thread call it, for every request.
    if handler.opt.get(PUBLIC):
        return
    needed = handler.opt.get(SCOPE) or ("read" if connection.scope.get("method") == "GET" else "write")
    if needed not in connection.user.scopes:
        raise Forbidden(f"this needs a key with the scope {needed!r}", required_scope=needed)
