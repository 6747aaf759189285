"""Credentials as the service's own login reads them: the key of a request, its tenant, and when it was used."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from sqlalchemy import func, or_, select, update

from app.db.any_of import any_of
from app.db.session import Database
from app.tenants.quotas import quotas_of
from app.tenants.repository.rows import KEY_COLUMNS, TENANT_COLUMNS, key_of, tenant_of
from app.tenants.tables import api_keys, tenants
from app.tenants.values import API_KEY, ApiKey, KeyScope, Principal, Tenant, TenantState, key_digest

USED_SECONDS: Final = 60.0
"""How exactly it is known when a key was last used."""
_NOW: Final = func.clock_timestamp()
LIVE: Final = (
    api_keys.c.revoked_at.is_(None),
    or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > _NOW),
)
"""The conditions of a key that is neither revoked nor expired."""
_BY_DIGEST: Final = (
    select(
        api_keys.c.tenant_id,
        api_keys.c.id,
        api_keys.c.scopes,
        api_keys.c.grants,
        func.extract("epoch", api_keys.c.expires_at - _NOW).label("seconds"),
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
            row = connection.execute(_BY_DIGEST.where(api_keys.c.digest == digest)).one_or_none()
        if row is None:
            return None
        return Principal(
            tenant_id=row.tenant_id,
            key_id=row.id,
            scopes=frozenset(map(KeyScope, row.scopes)),
            grants=row.grants,
            suspended=(row.suspended_reason or "") if row.state == TenantState.SUSPENDED.value else None,
            expires_in_seconds=None if row.seconds is None else float(row.seconds),
            quotas=quotas_of(row.quotas),
            requests_per_second=row.requests_per_second,
        )

    def identity(self, principal: Principal) -> tuple[Tenant, ApiKey]:
        """The tenant and the key of a principal."""
        key = select(*KEY_COLUMNS).where(api_keys.c.id == principal.key_id)
        with self._database.tenant(principal.tenant_id) as connection:
            return tenant_of(connection.execute(select(*TENANT_COLUMNS)).one()), key_of(
                connection.execute(key).one()
            )

    def note_use(self, tenant_id: str, key_ids: Collection[str]) -> None:
        """Records that keys of a tenant were used now, unless that is known to be less than a minute ago."""
        long_ago = api_keys.c.last_used_at < _NOW - timedelta(seconds=USED_SECONDS)
        used = (
            update(api_keys)
            .where(any_of(api_keys.c.id, key_ids), or_(api_keys.c.last_used_at.is_(None), long_ago))
            .values(last_used_at=_NOW)
        )
        with self._database.tenant(tenant_id) as connection:
            connection.execute(used)
