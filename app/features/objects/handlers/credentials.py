"""The credentials of requests: signatures, made with keys for tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hmac import compare_digest
from typing import Any

from litestar.connection import ASGIConnection

from app.access.tenants.values import Actor
from app.features.objects.errors import KeyRefusal, TableKeyRefused
from app.features.objects.service.keys import TableKey, secret_of, session_token_of, table_key
from app.features.objects.service.secrets import KnownSecrets
from app.features.objects.service.signatures import (
    Signature,
    SignedRequest,
    check_signature,
    stated_signature,
)
from app.http.limits.threads import Threads
from app.http.protocols import AS_SENT, RequestAsSent


@dataclass(frozen=True, kw_only=True, slots=True)
class TableKeyScheme:
    """Checks signatures. `hosts`: the names under which clients reach the service, if a proxy changes them."""

    secrets: KnownSecrets
    threads: Threads
    hosts: Sequence[str] = ()

    async def authenticate(self, connection: ASGIConnection[Any, Any, Any, Any]) -> tuple[Actor, TableKey]:
        """See `Scheme`. Raises TableKeyRefused, Unavailable."""
        request = signed_request(connection.scope)
        signature = stated_signature(request)
        now = datetime.now(UTC)
        signature.check_time(now)
        key = table_key(signature.access_key_id)
        secret = await self._secret(key)
        if secret is None:
            raise TableKeyRefused(
                KeyRefusal.UNKNOWN_KEY, "the key was made before the secrets were changed: get another one"
            )
        check_signature(request, signature, secret_of(signature.access_key_id, secret), self.hosts)
        _check_token(signature)
        if key.expires_at <= now.timestamp():
            raise TableKeyRefused(KeyRefusal.EXPIRED, "the key has expired: get another one")
        return key.actor, key

    async def _secret(self, key: TableKey) -> bytes | None:
        """The secret of the deployment with which the key was made; None if there is no such secret any more."""
        secret = self.secrets.known(key.generation)
        if secret is None and self.secrets.may_read():
            await self.threads.run(self.secrets.refresh)
            secret = self.secrets.known(key.generation)
        return secret


def path_as_sent(scope: Any) -> bytes:
    """The path as the client has sent it, encoded, without the query."""
    path: bytes = scope["raw_path"].partition(b"?")[0]
    return path


def signed_request(scope: Any) -> SignedRequest:
    """The request as the client has sent it."""
    request: RequestAsSent = scope["state"][AS_SENT]
    return SignedRequest(
        method=request.method,
        path=path_as_sent(scope),
        query=scope["query_string"].decode("latin-1"),
        headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers],
    )


def _check_token(signature: Signature) -> None:
    token = signature.session_token
    if token is not None and not compare_digest(
        token.encode(), session_token_of(signature.access_key_id).encode()
    ):
        raise TableKeyRefused(KeyRefusal.WRONG_TOKEN, "the session token is not that of the key")
