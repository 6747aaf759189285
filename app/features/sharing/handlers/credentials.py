"""The credentials of requests below `/delta-sharing`: the tokens of recipients, and no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from litestar.connection import ASGIConnection

from app.access.errors import Unauthorized
from app.access.tenants.values import Actor, ActorKind, ActorSecret
from app.features.sharing.values import SHARE_TOKEN
from app.http.credential_cache import Credentials
from app.http.protocols import client_address

SHARE_TOKENS: Final = "share_tokens"
"""The name of the scheme, which handlers state as their option `SCHEME`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShareTokenScheme:
    """Checks tokens of recipients."""

    credentials: Credentials

    async def authenticate(self, connection: ASGIConnection[Any, Any, Any, Any]) -> tuple[Actor, None]:
        """See `Scheme`. Raises Unauthorized, RateLimited, Unavailable."""
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if not scheme:
            raise Unauthorized(
                "send the header `Authorization: Bearer hwr_…` with the token of the profile file"
            )
        principal = None
        if scheme.lower() == "bearer" and SHARE_TOKEN.fullmatch(token.strip()):
            secret = ActorSecret(ActorKind.RECIPIENT, token.strip())
            principal = await self.credentials.principal(secret, client_address(connection.scope))
        if principal is None:
            raise Unauthorized(
                "the credential is not the token of a recipient, or it has expired or was revoked: request another "
                "profile file. API keys are not valid here"
            )
        return Actor(tenant_id=principal.tenant_id, id=principal.actor, kind=ActorKind.RECIPIENT), None
