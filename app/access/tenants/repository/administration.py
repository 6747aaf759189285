"""Tenants and API keys as they are administered. The database stores only the digest of a key.

Every change that may take a right away notifies the processes that cache principals.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from app.access.errors import NotFound
from app.access.tenants.errors import (
    TenantDeleted,
    TenantExists,
    TenantProtected,
    TooManyKeys,
    WrongConfirmation,
)
from app.access.tenants.quotas import NO_QUOTAS, Quotas
from app.access.tenants.repository.credential_changes import notify_change
from app.access.tenants.repository.credentials import LIVE
from app.access.tenants.repository.rows import (
    DELETION_COLUMNS,
    KEY_COLUMNS,
    TENANT_COLUMNS,
    deletion_of,
    key_of,
    tenant_of,
)
from app.access.tenants.tables import api_keys, tenant_deletions, tenants
from app.access.tenants.values import (
    API_KEY,
    DEFAULT_TENANT_ID,
    KEYS_MAX,
    ApiKey,
    MadeKey,
    NewKey,
    Principal,
    Tenant,
    TenantChange,
    TenantDeletion,
    TenantState,
    key_digest,
    new_api_key,
)
from app.infra.db.acts import act_concerns
from app.infra.db.session import Database
from app.infra.identifiers import new_id
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page, PageTokens


class AdministrationStore:
    """The tenants of an installation and their keys. `database`: with the administration's login."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_tenant(self, name: str, *, tenant_id: str | None = None) -> str:
        """Creates a tenant and returns its id. Raises TenantExists."""
        with self._database.administration() as connection:
            return _add_tenant(connection, name, tenant_id or new_id())

    def add_tenant_with_key(
        self, name: str, first: NewKey, quotas: Quotas = NO_QUOTAS
    ) -> tuple[Tenant, MadeKey]:
        """Creates a tenant and its first key, both or none. Raises TenantExists."""
        with self._database.administration() as connection:
            tenant_id = _add_tenant(connection, name, new_id(), quotas)
            return _tenant(connection, tenant_id), _add_key(connection, tenant_id, first, new_api_key())

    def tenant(self, reference: str) -> Tenant:
        """The tenant with this id or name. Raises NotFound."""
        with self._database.administration() as connection:
            return _tenant(connection, reference)

    def tenants(self, *, page_size: int, page_token: str | None) -> Page:
        """Tenant items by name. Raises InvalidRequest for a token that is not valid."""
        tokens = PageTokens("tenants")
        query = select(*TENANT_COLUMNS).where(tenants.c.state != TenantState.DELETED.value)
        query = query.order_by(tenants.c.name).limit(page_size + 1)
        if page_token is not None:
            query = query.where(tenants.c.name > tokens.position(page_token))
        with self._database.administration() as connection:
            rows = connection.execute(query).all()
        return tokens.page(rows, page_size, lambda row: row.name, tenant_of)

    def change(self, reference: str, change: TenantChange) -> Tenant:
        """Suspends a tenant, lets it write again, or changes its quotas, at once. Raises NotFound.

        The reason is stored with a suspension.
        """
        with self._database.administration() as connection:
            tenant_id = _lasting(connection, reference).id
            act_concerns(tenant=tenant_id)
            this_tenant = tenants.c.tenant_id == tenant_id
            # Under the lock, so that concurrent changes of different quotas are merged.
            connection.execute(select(tenants.c.tenant_id).where(this_tenant).with_for_update(key_share=True))
            before = _lasting(connection, tenant_id)
            values: dict[str, Any] = {"quotas": before.quotas.with_changes(change.quotas).limits}
            if change.state is not None:
                suspends = change.state is TenantState.SUSPENDED
                values["state"] = change.state.value
                values["suspended_reason"] = change.reason if suspends else None
                values["suspended_at"] = func.clock_timestamp() if suspends else None
            connection.execute(update(tenants).where(this_tenant).values(values))
            notify_change(connection, tenant_id)
            return _tenant(connection, tenant_id)

    def begin_deletion(self, reference: str, *, confirmation: str, actor: Principal) -> Tenant:
        """Revokes all keys of a tenant and has its data deleted; a repetition changes nothing.

        `confirmation`: its name. Raises NotFound, WrongConfirmation, TenantProtected.
        """
        with self._database.administration() as connection:
            tenant = _tenant(connection, reference)
            act_concerns(tenant=tenant.id)
            if tenant.state in (TenantState.DELETING, TenantState.DELETED):
                return tenant
            if confirmation != tenant.name:
                detail = f"expected {tenant.name!r}, the name of the tenant, got {confirmation!r}"
                raise WrongConfirmation.of_member("confirm", detail, "nothing was deleted; confirm")
            if tenant.id in (DEFAULT_TENANT_ID, actor.tenant_id):
                detail = "the first tenant of an installation, and that of the key, cannot be deleted"
                raise TenantProtected(detail)
            this = tenants.c.tenant_id == tenant.id
            connection.execute(update(tenants).where(this).values(state=TenantState.DELETING.value))
            new = {
                "tenant_id": tenant.id,
                "name": tenant.name,
                "requested_by": actor.actor,
                "rows_deleted": {},
            }
            connection.execute(insert(tenant_deletions).values(new).on_conflict_do_nothing())
            live = api_keys.c.tenant_id == tenant.id, api_keys.c.revoked_at.is_(None)
            connection.execute(update(api_keys).where(*live).values(revoked_at=func.clock_timestamp()))
            notify_change(connection, tenant.id)
            return _tenant(connection, tenant.id)

    def deletion(self, tenant_id: str) -> TenantDeletion | None:
        """The deletion of a tenant, if one was requested."""
        query = select(*DELETION_COLUMNS).where(tenant_deletions.c.tenant_id == tenant_id)
        with self._database.administration() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else deletion_of(row)

    def finish_deletions(self) -> int:
        """Removes the keys of tenants whose data are gone, and frees their names; returns how many there were."""
        conditions = tenant_deletions.c.cleared_at.is_not(None), tenant_deletions.c.finished_at.is_(None)
        query = select(tenant_deletions.c.tenant_id).where(*conditions).with_for_update(skip_locked=True)
        with self._database.administration() as connection:
            tenant_ids = connection.execute(query).scalars().all()
            for tenant_id in tenant_ids:
                keys = connection.execute(delete(api_keys).where(api_keys.c.tenant_id == tenant_id)).rowcount
                # A name never has the form of an id, so no request names this one.
                tombstone = {
                    "name": tenant_id,
                    "state": TenantState.DELETED.value,
                    "quotas": {},
                    "suspended_reason": None,
                    "suspended_at": None,
                }
                connection.execute(update(tenants).where(tenants.c.tenant_id == tenant_id).values(tombstone))
                this = tenant_deletions.c.tenant_id == tenant_id
                deletion = connection.execute(select(*DELETION_COLUMNS).where(this)).one()
                report = {
                    "rows_deleted": {**deletion.rows_deleted, api_keys.name: keys},
                    "rows_left": {**(deletion.rows_left or {}), api_keys.name: 0},
                    "finished_at": func.clock_timestamp(),
                }
                connection.execute(update(tenant_deletions).where(this).values(report))
        return len(tenant_ids)

    def add_key(self, tenant_id: str, new: NewKey, *, api_key: str | None = None) -> MadeKey:
        """Creates a key. `api_key`: its text, if the operator specifies it (`hw_` and 43 characters).

        Raises ValueError for a text of another form, NotFound if there is no such tenant, TooManyKeys.
        """
        api_key = api_key or new_api_key()
        if not API_KEY.fullmatch(api_key):
            raise ValueError("expected an API key of 'hw_' and 43 characters of A-Z, a-z, 0-9, '_', '-'")
        with self._database.administration() as connection:
            return _add_key(connection, tenant_id, new, api_key)

    def key(self, tenant_id: str, key_id: str) -> ApiKey:
        """A key of the tenant. Raises NotFound."""
        with self._database.administration() as connection:
            return _key(connection, tenant_id, key_id)

    def keys(self, tenant_id: str, *, page_size: int, page_token: str | None) -> Page:
        """ApiKey items of a tenant, the newest first. Raises InvalidRequest for a token that is not valid."""
        tokens = PageTokens("keys", tenant_id)
        query = select(*KEY_COLUMNS).where(api_keys.c.tenant_id == tenant_id)
        query = query.order_by(api_keys.c.id.desc()).limit(page_size + 1)
        if page_token is not None:
            query = query.where(api_keys.c.id < tokens.id(page_token))
        with self._database.administration() as connection:
            rows = connection.execute(query).all()
        return tokens.page(rows, page_size, lambda row: row.id, key_of)

    def revoke_key(self, tenant_id: str, key_id: str) -> None:
        """Revokes a key, at once and for good. Raises NotFound if the tenant has no such key."""
        with self._database.administration() as connection:
            _key(connection, tenant_id, key_id)
            act_concerns(tenant=tenant_id, key=key_id)
            this_key = api_keys.c.tenant_id == tenant_id, api_keys.c.id == key_id
            connection.execute(
                update(api_keys)
                .where(*this_key, api_keys.c.revoked_at.is_(None))
                .values(revoked_at=func.clock_timestamp())
            )
            notify_change(connection, tenant_id)


def _add_tenant(connection: Connection, name: str, tenant_id: str, quotas: Quotas = NO_QUOTAS) -> str:
    limits = NO_QUOTAS.with_changes(quotas).limits
    new = insert(tenants).values(tenant_id=tenant_id, name=name, quotas=limits).on_conflict_do_nothing()
    if connection.execute(new.returning(tenants.c.tenant_id)).one_or_none() is None:
        raise TenantExists(f"there is already a tenant named {name!r}", name=name)
    act_concerns(tenant=tenant_id)
    return tenant_id


def _add_key(connection: Connection, tenant_id: str, new: NewKey, api_key: str) -> MadeKey:
    # The lock serializes requests that make keys of the tenant, so that they are counted.
    lock = select(tenants.c.tenant_id).where(tenants.c.tenant_id == tenant_id).with_for_update()
    connection.execute(lock)
    _lasting(connection, tenant_id)
    live = select(func.count()).select_from(api_keys).where(api_keys.c.tenant_id == tenant_id, *LIVE)
    if connection.execute(live).scalar_one() >= KEYS_MAX:
        detail = (
            f"the tenant has {KEYS_MAX} keys that are neither revoked nor expired; revoke those not in use"
        )
        raise TooManyKeys(detail, keys_max=KEYS_MAX)
    values = {
        "tenant_id": tenant_id,
        "id": new_id(),
        "digest": key_digest(api_key),
        "scopes": sorted(scope.value for scope in new.scopes),
        "name": new.name,
        "grants": new.grants,
        "expires_at": new.expires_at,
        "created_by": new.created_by,
        "requests_per_second": new.requests_per_second,
    }
    row = connection.execute(insert(api_keys).values(values).returning(*KEY_COLUMNS)).one()
    act_concerns(tenant=tenant_id, key=row.id)
    return MadeKey(key=key_of(row), api_key=api_key)


def _tenant(connection: Connection, reference: str) -> Tenant:
    row: Row[Any] | None = None
    if "\0" not in reference:
        # A name never has the form of an id.
        condition = tenants.c.tenant_id == reference if is_uuid(reference) else tenants.c.name == reference
        row = connection.execute(select(*TENANT_COLUMNS).where(condition)).one_or_none()
    if row is None:
        raise NotFound(f"there is no tenant {reference!r}")
    return tenant_of(row)


def _lasting(connection: Connection, reference: str) -> Tenant:
    """Raises NotFound, TenantDeleted."""
    tenant = _tenant(connection, reference)
    if tenant.state in (TenantState.DELETING, TenantState.DELETED):
        raise TenantDeleted(f"the tenant is {tenant.state.value}", state=tenant.state.value)
    return tenant


def _key(connection: Connection, tenant_id: str, key_id: str) -> ApiKey:
    row: Row[Any] | None = None
    if is_uuid(key_id):
        query = select(*KEY_COLUMNS).where(api_keys.c.tenant_id == tenant_id, api_keys.c.id == key_id)
        row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"there is no API key {key_id}")
    return key_of(row)
