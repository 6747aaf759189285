"""Tenants and API keys: make, list, suspend, resume, revoke."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec import structs

from app.access.audit.service import ReadAudit
from app.access.audit.values import AuditFilter
from app.access.errors import Forbidden, scope_missing
from app.access.tenants.errors import AdministrationUnavailable
from app.access.tenants.quotas import Quotas
from app.access.tenants.repository.administration import AdministrationStore
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.repository.tenant_use import TenantUseStore
from app.access.tenants.repository.usage import UsageStore
from app.access.tenants.usage import TenantUse, Usage, UsageFilter, UsageOf
from app.access.tenants.values import (
    FIRST_KEY_SCOPES,
    ApiKey,
    KeyScope,
    MadeKey,
    NewKey,
    Principal,
    Tenant,
    TenantChange,
    TenantDeletion,
)
from app.core.catalog.values import DatasetName
from app.kernel.format.errors import FieldError, InvalidFilter, InvalidRequest
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page
from app.kernel.sql.conditions.parse import check_syntax

_SETTING = "HEADWATER_ADMIN_DATABASE_URL"


@dataclass(frozen=True, kw_only=True, slots=True)
class Identities:
    """Who a credential is."""

    keys: CredentialStore

    def get(self, principal: Principal) -> tuple[Tenant, ApiKey | None]:
        """The tenant and the key of a principal; no key if it has a token."""
        return self.keys.identity(principal)


class QuotaUse(msgspec.Struct, frozen=True, kw_only=True):
    """A quota by its name. `limit`: None for no limit. `used`: None for one that limits nothing that is counted."""

    quota: str
    limit: int | float | None
    used: int | None


class NamedUsage(NamedTuple):
    """The usage of a day. `dataset`: whose it is, if it is of a dataset of which there is a row."""

    usage: Usage
    dataset: DatasetName | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadUsage:
    """What tenants use.

    `meter` and `counts`: what a tenant has of what is metered and of what exists, by the names of the quotas.
    `dataset_names`: the names of datasets of a tenant by their ids, as far as rows have them.
    """

    usage: UsageStore
    tenant_use: TenantUseStore
    dataset_names: Callable[[str, Collection[str]], Mapping[str, DatasetName]]
    meter: Callable[[str], Mapping[str, int]]
    counts: Mapping[str, Callable[[str], int]]

    def page(
        self, tenant_id: str, usage_filter: UsageFilter, *, page_size: int, page_token: str | None
    ) -> Page:
        """NamedUsage items by day. Raises InvalidRequest."""
        first, last = usage_filter.first_day, usage_filter.last_day
        if first is not None and last is not None and first > last:
            detail = "expected a day that is not before `from`"
            raise InvalidRequest(f"/to: {detail}", [FieldError(pointer="/to", detail=detail)])
        page = self.usage.page(tenant_id, usage_filter, page_size=page_size, page_token=page_token)
        if usage_filter.of is not UsageOf.DATASET:
            return page.mapped(NamedUsage)
        names = self.dataset_names(tenant_id, {item.id for item in page.items})
        return page.mapped(lambda item: NamedUsage(item, names.get(item.id)))

    def of_tenants(self, tenants: Collection[Tenant]) -> Mapping[str, TenantUse]:
        """What these tenants store and use, by id. Raises TooSlow, Unavailable."""
        return self.tenant_use.read([each.id for each in tenants])

    def quotas(self, tenant: Tenant) -> list[QuotaUse]:
        """All quotas, with what the tenant uses now."""
        uses = dict(self.meter(tenant.id))
        uses |= {name: count(tenant.id) for name, count in self.counts.items()}
        return [
            QuotaUse(quota=name, limit=tenant.quotas.limit(name), used=uses.get(name))
            for name in Quotas.__struct_fields__
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Administration:
    """The tenants of the installation and their keys. Everything raises AdministrationUnavailable without a store.

    `on_change` is called with the id of a tenant whose state, quotas or keys have changed, before the request is
    answered: what this process has cached of them is not used from then on. Other processes are notified by Postgres.
    """

    store: AdministrationStore | None
    on_change: Callable[[str], None]

    def create_tenant(self, principal: Principal, name: str, quotas: Quotas) -> tuple[Tenant, MadeKey]:
        """A tenant and its first key, with FIRST_KEY_SCOPES. Raises InvalidRequest, TenantExists."""
        if is_uuid(name):
            detail = "expected a name that does not have the form of an id"
            raise InvalidRequest(f"/name: {detail}", [FieldError(pointer="/name", detail=detail)])
        first = NewKey(name="first", scopes=tuple(FIRST_KEY_SCOPES), created_by=principal.actor)
        return self._store().add_tenant_with_key(name, first, quotas)

    def tenant(self, reference: str) -> Tenant:
        """`reference` is an id or a name. Raises NotFound."""
        return self._store().tenant(reference)

    def tenants(self, *, page_size: int, page_token: str | None) -> Page:
        """Tenant items by name."""
        return self._store().tenants(page_size=page_size, page_token=page_token)

    def change_tenant(self, reference: str, change: TenantChange) -> Tenant:
        """Suspends a tenant, lets it write again, or changes its quotas, at once. Raises NotFound, TenantDeleted."""
        tenant = self._store().change(reference, change)
        self.on_change(tenant.id)
        return tenant

    def deletion(self, tenant: Tenant) -> TenantDeletion | None:
        """The deletion of a tenant, if one was requested."""
        return self._store().deletion(tenant.id)

    def delete_tenant(self, principal: Principal, reference: str, confirmation: str) -> Tenant:
        """Begins the deletion of a tenant, which cannot be undone. `confirmation`: its name.

        Raises NotFound, WrongConfirmation, TenantProtected.
        """
        tenant = self._store().begin_deletion(reference, confirmation=confirmation, actor=principal)
        self.on_change(tenant.id)
        return tenant

    def create_key(self, principal: Principal, tenant: str | None, new: NewKey) -> MadeKey:
        """A key of a tenant; None: of the principal's own, which gives no scope that it does not have itself.

        A key also gives no later end and no higher rate than its own, which the new one has by default.

        Raises InvalidRequest, Forbidden, NotFound, TooManyKeys.
        """
        store = self._store()
        _check(new)
        if tenant is None and (
            missing := sorted(scope.value for scope in set(new.scopes) - principal.scopes)
        ):
            raise Forbidden(
                f"a key cannot give a scope that it does not have: {', '.join(missing)}",
                required_scope=missing[0],
            )
        if tenant is None and principal.token is None:
            new = _within(new, store.key(principal.tenant_id, principal.actor))
        return store.add_key(self._id(principal, tenant), new)

    def key(self, principal: Principal, tenant: str | None, key_id: str) -> ApiKey:
        """A key of a tenant; None: of the principal's own. Raises NotFound."""
        return self._store().key(self._id(principal, tenant), key_id)

    def keys(
        self, principal: Principal, tenant: str | None, *, page_size: int, page_token: str | None
    ) -> Page:
        """ApiKey items of a tenant, the newest first; None: of the principal's own. Raises NotFound."""
        return self._store().keys(self._id(principal, tenant), page_size=page_size, page_token=page_token)

    def revoke_key(self, principal: Principal, tenant: str | None, key_id: str) -> None:
        """Revokes a key at once; one that is revoked already stays so. Raises NotFound."""
        tenant_id = self._id(principal, tenant)
        self._store().revoke_key(tenant_id, key_id)
        self.on_change(tenant_id)

    def _id(self, principal: Principal, tenant: str | None) -> str:
        return principal.tenant_id if tenant is None else self.tenant(tenant).id

    def _store(self) -> AdministrationStore:
        if self.store is None:
            raise administration_unavailable()
        return self.store


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditReader:
    """The audit of one tenant, or, for operators, of all."""

    audit: ReadAudit
    administration: Administration

    def read(
        self,
        principal: Principal,
        audit_filter: AuditFilter,
        *,
        tenant: str | None,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """AuditEntry items, the newest first. `tenant`: an id or a name, for operators only.

        Raises Forbidden, NotFound, InvalidRequest, AdministrationUnavailable.
        """
        if audit_filter.key_id is not None and not is_uuid(audit_filter.key_id):
            raise InvalidRequest(
                "key: expected the id of a key",
                [FieldError(pointer="/key", detail="expected the id of a key")],
            )
        if KeyScope.OPERATE in principal.scopes:
            if tenant is not None:
                audit_filter = structs.replace(audit_filter, tenant_id=self.administration.tenant(tenant).id)
            if not self.audit.sees_all:
                raise administration_unavailable()
            return self.audit.of_all(audit_filter, page_size=page_size, page_token=page_token)
        if tenant is not None:
            raise scope_missing(KeyScope.OPERATE.value)
        return self.audit.of_tenant(
            principal.tenant_id, audit_filter, page_size=page_size, page_token=page_token
        )


def administration_unavailable() -> AdministrationUnavailable:
    """The error of a deployment without the administration's login."""
    return AdministrationUnavailable(
        f"this deployment does not administer tenants and keys over HTTP: its operator has to set {_SETTING}",
        setting=_SETTING,
    )


def _within(new: NewKey, maker: ApiKey) -> NewKey:
    """The key with the limits of the key that makes it, where it has none. Raises Forbidden if it has higher ones."""
    detail = "a key cannot give more than it has itself: expected at most"
    expires_at, rate = maker.expires_at, maker.requests_per_second
    if expires_at is not None and new.expires_at is not None and new.expires_at > expires_at:
        raise Forbidden(f"expires_at: {detail} {expires_at.isoformat()}")
    if rate is not None and new.requests_per_second is not None and new.requests_per_second > rate:
        raise Forbidden(f"requests_per_second: {detail} {rate}")
    return structs.replace(
        new, expires_at=new.expires_at or expires_at, requests_per_second=new.requests_per_second or rate
    )


def _fault_of_end(expires_at: datetime) -> str:
    """What is wrong with the end of a new key; empty for nothing."""
    try:
        in_utc = expires_at.astimezone(UTC)
    except OverflowError:
        return "expected a time of the years 1 to 9999 in UTC"
    return "" if in_utc > datetime.now(UTC) else "expected a time in the future"


def _check(new: NewKey) -> None:
    """Raises InvalidRequest."""
    errors = []
    for number, grant in enumerate(new.grants or ()):
        if grant.datasets.endswith("\n"):
            # The pattern of the member admits it, and stays so for keys that have such a grant, which fits no name.
            detail = "expected letters, digits, `.`, `_`, `-` and `*`"
            errors.append(FieldError(pointer=f"/grants/{number}/datasets", detail=detail))
        if beyond := sorted(scope.value for scope in set(grant.scopes) - set(new.scopes)):
            detail = f"expected scopes of the key, got {', '.join(beyond)}"
            errors.append(FieldError(pointer=f"/grants/{number}/scopes", detail=detail))
        if grant.access().restricted and set(grant.scopes or new.scopes) != {KeyScope.READ}:
            detail = 'expected ["read"]: a grant with `where` or `mask` only reads'
            errors.append(FieldError(pointer=f"/grants/{number}/scopes", detail=detail))
        for where in grant.access().where:
            try:
                check_syntax(where)
            except InvalidFilter as error:
                errors.append(FieldError(pointer=f"/grants/{number}/where", detail=error.detail))
    if new.grants is not None and KeyScope.OPERATE in new.scopes:
        detail = "expected no grants: the scope operate is not about datasets"
        errors.append(FieldError(pointer="/grants", detail=detail))
    if new.expires_at is not None and (detail := _fault_of_end(new.expires_at)):
        errors.append(FieldError(pointer="/expires_at", detail=detail))
    if errors:
        raise InvalidRequest("; ".join(f"{error.pointer}: {error.detail}" for error in errors), errors)
