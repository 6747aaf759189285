"""Sessions of the console in Postgres. What a session may do is read from its key, or from the claims of its token."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import structs
from sqlalchemy import Connection, Table, delete, func, insert, select

from app.access.tenants.repository.credential_changes import notify_change
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.values import Actor, Principal, TokenClaims, TokenIdentity
from app.features.console.sealed_keys import SEALED_SECONDS, SealedKeys, is_sealed
from app.features.console.tables import console_links, console_sessions
from app.features.console.values import (
    LINK_SECONDS,
    SESSION_SECONDS,
    SESSIONS_MAX,
    NewLink,
    NewSession,
    SessionClaims,
    has_form_of_secret,
    new_secret,
    secret_digest,
)
from app.infra.db.session import Database

_NOW: Final = func.clock_timestamp()
_SESSIONS: Final = select(
    console_sessions.c.tenant_id,
    console_sessions.c.key_id,
    console_sessions.c.claims,
    func.extract("epoch", console_sessions.c.ends_at - _NOW).label("seconds"),
).where(console_sessions.c.ends_at > _NOW)


class SessionStore:
    """Sessions as credentials (see `ActorStore`), their beginnings and ends."""

    def __init__(
        self,
        database: Database,
        credentials: CredentialStore,
        sealed_keys: SealedKeys,
        issuers: Collection[str] = (),
    ) -> None:
        """`issuers`: those whose tokens are accepted. A session of the token of another one is not valid."""
        self._database = database
        self._credentials = credentials
        self._sealed_keys = sealed_keys
        self._issuers = issuers

    def authenticate(self, secret: str, /) -> Principal | None:
        """The principal of a session: that of its key or token, for no longer than the session lasts. None for any
        other text. Raises Unavailable.
        """
        if is_sealed(secret):
            return self._of_sealed_key(secret)
        if not has_form_of_secret(secret):
            return None
        digest = secret_digest(secret)
        with self._database.credential(digest) as connection:
            row = connection.execute(_SESSIONS.where(console_sessions.c.digest == digest)).one_or_none()
        if row is None or (row.claims is not None and row.claims.issuer not in self._issuers):
            return None
        seconds = float(row.seconds)
        principal = (
            self._credentials.admit(_token_claims(row.tenant_id, row.claims, seconds))
            if row.key_id is None
            else self._credentials.standing(Actor(tenant_id=row.tenant_id, id=row.key_id))
        )
        return None if principal is None else _no_longer_than(principal, seconds)

    def _of_sealed_key(self, secret: str) -> Principal | None:
        content = self._sealed_keys.open(secret)
        if content is None:
            return None
        api_key, seconds = content
        principal = self._credentials.authenticate(api_key)
        return None if principal is None else _no_longer_than(principal, seconds)

    def standing(self, _: Actor, /) -> Principal | None:
        """None: no credential is derived from a session."""
        return None

    def note_use(self, tenant_id: str, ids: Collection[str], /) -> None:
        """The use of a session is that of its key, which is recorded by itself."""

    def begin(self, principal: Principal) -> NewSession:
        """A session of the principal. It ends with its key or token, and after half a day."""
        secret, now = new_secret(), datetime.now(UTC)
        ends_at = now + timedelta(seconds=SESSION_SECONDS)
        if principal.token is not None:
            # Its principal is checked again and again before; the session lasts as long as the token.
            ends_at = min(ends_at, principal.token.expires_at)
        elif principal.valid_seconds is not None:
            ends_at = min(ends_at, now + timedelta(seconds=principal.valid_seconds))
        row = {
            "digest": secret_digest(secret),
            "ends_at": ends_at,
            "key_id": principal.actor if principal.token is None else None,
            "claims": _stored_claims(principal),
        }
        with self._database.tenant(principal.tenant_id) as connection:
            _remove_ended(connection, console_sessions)
            connection.execute(insert(console_sessions).values(row))
        return NewSession(secret=secret, ends_at=ends_at)

    def begin_without_row(self, principal: Principal, api_key: str) -> NewSession:
        """A session of the principal of an API key for which nothing is written. It ends with its key, and after a
        quarter of an hour. Raises Unavailable.
        """
        lasts = _no_longer_than(principal, SEALED_SECONDS).valid_seconds or 0
        ends = int(datetime.now(UTC).timestamp() + lasts)
        secret = self._sealed_keys.seal(api_key, ends)
        return NewSession(secret=secret, ends_at=datetime.fromtimestamp(ends, UTC))

    def end(self, tenant_id: str, secret: str) -> None:
        """Ends a session, and what it has open. One without a row ends by itself."""
        if is_sealed(secret):
            return
        statement = delete(console_sessions).where(console_sessions.c.digest == secret_digest(secret))
        with self._database.tenant(tenant_id) as connection:
            connection.execute(statement)
            notify_change(connection, tenant_id)

    def link(self, principal: Principal) -> NewLink:
        """A link that begins a session of the principal, which has an API key."""
        secret = new_secret()
        ends_at = datetime.now(UTC) + timedelta(seconds=LINK_SECONDS)
        row = {"digest": secret_digest(secret), "key_id": principal.actor, "ends_at": ends_at}
        with self._database.tenant(principal.tenant_id) as connection:
            _remove_ended(connection, console_links)
            connection.execute(insert(console_links).values(row))
        return NewLink(secret=secret, ends_at=ends_at)

    def follow_link(self, secret: str) -> Principal | None:
        """The principal of a link, which is used up by this; None for one that was used, has ended or never existed."""
        if not has_form_of_secret(secret):
            return None
        digest = secret_digest(secret)
        with self._database.credential(digest) as connection:
            tenant_id = connection.execute(
                select(console_links.c.tenant_id).where(console_links.c.digest == digest)
            ).scalar_one_or_none()
        if tenant_id is None:
            return None
        used = (
            delete(console_links)
            .where(console_links.c.digest == digest, console_links.c.ends_at > _NOW)
            .returning(console_links.c.key_id)
        )
        with self._database.tenant(tenant_id) as connection:
            key_id = connection.execute(used).scalar_one_or_none()
        return None if key_id is None else self._credentials.standing(Actor(tenant_id=tenant_id, id=key_id))


def _remove_ended(connection: Connection, table: Table) -> None:
    """Removes what has ended, and the oldest of more than a tenant may have."""
    connection.execute(delete(table).where(table.c.ends_at <= _NOW))
    kept = select(table.c.digest).order_by(table.c.ends_at.desc()).limit(SESSIONS_MAX - 1)
    connection.execute(delete(table).where(table.c.digest.not_in(kept)))


def _no_longer_than(principal: Principal, seconds: float) -> Principal:
    own = principal.valid_seconds
    return structs.replace(principal, valid_seconds=seconds if own is None else min(seconds, own))


def _stored_claims(principal: Principal) -> SessionClaims | None:
    if principal.token is None:
        return None
    return SessionClaims(
        issuer=principal.token.issuer,
        subject=principal.token.subject,
        expires_at=principal.token.expires_at,
        scopes=tuple(sorted(principal.scopes)),
        grants=principal.grants,
    )


def _token_claims(tenant_id: str, claims: SessionClaims, seconds: float) -> TokenClaims:
    return TokenClaims(
        tenant=tenant_id,
        identity=TokenIdentity(issuer=claims.issuer, subject=claims.subject, expires_at=claims.expires_at),
        scopes=frozenset(claims.scopes),
        grants=claims.grants,
        valid_seconds=seconds,
    )
