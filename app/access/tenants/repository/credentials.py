"""Credentials as the service's own login reads them: the key or token of a request, its tenant, and uses of keys."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from app.access.tenants.quotas import quotas_of
from app.access.tenants.repository.rows import KEY_COLUMNS, TENANT_COLUMNS, key_of, tenant_of
from app.access.tenants.tables import api_keys, tenants, token_subjects
from app.access.tenants.values import (
    API_KEY,
    Actor,
    ActorKind,
    ApiKey,
    KeyScope,
    Principal,
    Tenant,
    TenantState,
    TokenClaims,
    TokenIdentity,
    key_digest,
)
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago
from app.kernel.format.identifiers import is_uuid

USED_SECONDS: Final = 60.0
"""How exactly it is known when a key was last used."""
SEEN_SECONDS: Final = 86_400.0
"""How exactly it is known when the subject of a token was last seen."""
_NOW: Final = func.clock_timestamp()
# The keys of such a tenant are revoked; its tokens have no row that could be.
_ENDED: Final = (TenantState.DELETING.value, TenantState.DELETED.value)
LIVE: Final = (
    api_keys.c.revoked_at.is_(None),
    or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > _NOW),
)
"""The conditions of a key that is neither revoked nor expired."""
_KEYS: Final = (
    select(
        api_keys.c.tenant_id,
        api_keys.c.id,
        api_keys.c.name,
        api_keys.c.scopes,
        api_keys.c.grants,
        api_keys.c.expires_at,
        func.extract("epoch", api_keys.c.expires_at - _NOW).label("seconds"),
        tenants.c.name.label("tenant_name"),
        tenants.c.state,
        tenants.c.suspended_reason,
        tenants.c.quotas,
        api_keys.c.requests_per_second,
    )
    .join(tenants, tenants.c.tenant_id == api_keys.c.tenant_id)
    .where(*LIVE)
)


class CredentialStore:
    """The credentials of requests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def authenticate(self, api_key: str) -> Principal | None:
        """The principal of a live key; None for any other text."""
        if not API_KEY.fullmatch(api_key):
            return None
        digest = key_digest(api_key)
        with self._database.credential(digest) as connection:
            row = connection.execute(_KEYS.where(api_keys.c.digest == digest)).one_or_none()
        return None if row is None else _of_key(row)

    def standing(self, actor: Actor) -> Principal | None:
        """The principal of a live key by its id, or of the subject of a token; None if it may do nothing any more, or
        is of another kind.

        What a subject may do is in its token only. So it has the scope `read`, and is granted nothing.
        """
        if actor.kind is ActorKind.TOKEN and actor.token_ends is not None:
            return self._standing_of_subject(actor, actor.token_ends)
        if actor.kind is not ActorKind.KEY:
            return None
        with self._database.tenant(actor.tenant_id) as connection:
            row = connection.execute(_KEYS.where(api_keys.c.id == actor.id)).one_or_none()
        return None if row is None else _of_key(row)

    def _standing_of_subject(self, actor: Actor, token_ends: int) -> Principal | None:
        subject = select(token_subjects.c.issuer, token_subjects.c.subject).where(
            token_subjects.c.id == actor.id
        )
        with self._database.tenant(actor.tenant_id) as connection:
            tenant = connection.execute(select(*TENANT_COLUMNS)).one_or_none()
            row = connection.execute(subject).one_or_none()
        if tenant is None or row is None or tenant.state in _ENDED:
            return None
        ends = datetime.fromtimestamp(token_ends, UTC)
        return Principal(
            tenant_id=actor.tenant_id,
            tenant_name=tenant.name,
            actor=actor.id,
            kind=ActorKind.TOKEN,
            key_name=row.subject,
            token=TokenIdentity(issuer=row.issuer, subject=row.subject, expires_at=ends),
            scopes=frozenset({KeyScope.READ}),
            grants=(),
            suspension=_suspended(tenant),
            valid_seconds=(ends - datetime.now(UTC)).total_seconds(),
            quotas=quotas_of(tenant.quotas),
        )

    def admit(self, claims: TokenClaims) -> Principal | None:
        """The principal of a verified token, whose subject is recorded; None if its tenant does not exist, or does no
        longer.
        """
        tenant_id = claims.tenant if is_uuid(claims.tenant) else self._id_of(claims.tenant)
        if tenant_id is None:
            return None
        with self._database.tenant(tenant_id) as connection:
            row = connection.execute(select(*TENANT_COLUMNS)).one_or_none()
            if row is None or row.state in _ENDED:
                return None
            _record(connection, claims)
        return Principal(
            tenant_id=row.id,
            tenant_name=row.name,
            actor=claims.identity.actor,
            kind=ActorKind.TOKEN,
            key_name=claims.identity.subject,
            token=claims.identity,
            scopes=claims.scopes,
            grants=claims.grants,
            suspension=_suspended(row),
            valid_seconds=claims.valid_seconds,
            quotas=quotas_of(row.quotas),
        )

    def identity(self, principal: Principal) -> tuple[Tenant, ApiKey | None]:
        """The tenant and the key of a principal; no key if it has a token."""
        key = select(*KEY_COLUMNS).where(api_keys.c.id == principal.actor)
        with self._database.tenant(principal.tenant_id) as connection:
            tenant = tenant_of(connection.execute(select(*TENANT_COLUMNS)).one())
            if principal.token is not None:
                return tenant, None
            return tenant, key_of(connection.execute(key).one())

    def note_use(self, tenant_id: str, key_ids: Collection[str]) -> None:
        """Records that keys of a tenant were used now, unless that is known to be less than a minute ago."""
        long_ago = api_keys.c.last_used_at < _NOW - timedelta(seconds=USED_SECONDS)
        statement = (
            update(api_keys)
            .where(any_of(api_keys.c.id, key_ids), or_(api_keys.c.last_used_at.is_(None), long_ago))
            .values(last_used_at=_NOW)
        )
        with self._database.tenant(tenant_id) as connection:
            connection.execute(statement)

    def _id_of(self, name: str) -> str | None:
        with self._database.named(name) as connection:
            return connection.execute(select(tenants.c.tenant_id)).scalar_one_or_none()


def _of_key(row: Any) -> Principal:
    return Principal(
        tenant_id=row.tenant_id,
        tenant_name=row.tenant_name,
        actor=row.id,
        key_name=row.name,
        scopes=frozenset(map(KeyScope, row.scopes)),
        grants=row.grants,
        suspension=_suspended(row),
        valid_seconds=None if row.seconds is None else float(row.seconds),
        expires_at=row.expires_at,
        quotas=quotas_of(row.quotas),
        requests_per_second=row.requests_per_second,
    )


def _suspended(row: Any) -> str | None:
    return (row.suspended_reason or "") if row.state == TenantState.SUSPENDED.value else None


def _record(connection: Connection, claims: TokenClaims) -> None:
    """Records the subject, so that timelines can name it.

    The update comes first: of a row that is expiring at this moment it waits for the end, and then inserts it again.
    """
    identity = claims.identity
    a_day_ago = token_subjects.c.last_seen_at < seconds_ago(SEEN_SECONDS)
    renewal = update(token_subjects).where(token_subjects.c.id == identity.actor, a_day_ago)
    connection.execute(renewal.values(last_seen_at=_NOW))
    new = {"id": identity.actor, "issuer": identity.issuer, "subject": identity.subject}
    connection.execute(insert(token_subjects).values(new).on_conflict_do_nothing())
