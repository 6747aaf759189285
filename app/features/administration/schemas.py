"""The JSON of tenants, keys and identities, and the options of their lists."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar.params import PathParameter

from app.access.audit.values import AccessOutcome, AccessVia, AuditEntry, AuditFilter
from app.access.tenants.quotas import NO_QUOTAS, Quotas
from app.access.tenants.usage import QuotaShare, TenantUse, UsageFilter, UsageOf
from app.access.tenants.values import (
    ApiKey,
    BoundedText,
    Grant,
    KeyDescription,
    KeyScope,
    KeySettings,
    MadeKey,
    NewKey,
    Principal,
    Tenant,
    TenantChange,
    TenantDeletion,
    TenantState,
)
from app.features.administration.service import NamedUsage, QuotaUse
from app.http.parameters.page_options import PageOptions
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.identifiers import PATTERN_END
from app.kernel.format.member_errors import EXPECTED
from app.kernel.paging import Page

TenantReference: TypeAlias = Annotated[str, PathParameter(description="The id or the name of a tenant.")]
KeyId: TypeAlias = Annotated[str, PathParameter(description="The id of an API key.")]

_Name: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        max_length=128,
        pattern=rf"^[A-Za-z0-9][A-Za-z0-9_.-]*{PATTERN_END}",
        extra_json_schema={
            EXPECTED: "1 to 128 letters, digits, `.`, `_` and `-`, of which the first is a letter or digit"
        },
    ),
]


class ListTenantsOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_tenants`."""


class ListKeysOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_keys`."""


class ReadAuditOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `read_audit`."""

    tenant: BoundedText | None = None
    """For operators: entries about the tenant of this id or name."""
    key: BoundedText | None = None
    """Entries of the key with this id."""
    operation: BoundedText | None = None
    """Entries of this operation, for example `create_key`."""
    outcome: AccessOutcome | None = None
    """Entries with this outcome."""
    via: AccessVia | None = None
    """Entries of requests of the console (`console`), or of all others (`api`)."""
    since_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """Entries from this time on."""
    until_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """Entries before this time."""

    def wanted(self) -> AuditFilter:
        """The selected entries, of any tenant."""
        return AuditFilter(
            key_id=self.key,
            operation=self.operation,
            outcome=self.outcome,
            via=self.via,
            since=self.since_time,
            until=self.until_time,
        )


class CreateTenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant to make."""

    name: Annotated[_Name, msgspec.Meta(examples=["acme"])]
    """Its name, which no other tenant has: letters, digits, `.`, `_` and `-`."""
    quotas: Quotas = NO_QUOTAS
    """Its limits. By default it has none."""


class UpdateTenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a tenant."""

    state: TenantState | msgspec.UnsetType = msgspec.UNSET
    """`suspended`: it can read, but not write. `active`: it can write again."""
    reason: BoundedText | None = None
    """Why it is suspended: its requests that write are refused with this text."""
    quotas: Quotas | msgspec.UnsetType = msgspec.UNSET
    """The limits to change. Those that are absent keep their value; null removes one."""


class TenantResponse(Tenant, frozen=True, kw_only=True):
    """A tenant."""


class DeletionResponse(TenantDeletion, frozen=True, kw_only=True):
    """The deletion of a tenant: what was deleted, and what was left."""


class TenantWithDeletion(TenantResponse, frozen=True, kw_only=True):
    """A tenant with its deletion."""

    deletion: DeletionResponse | None
    """Its deletion; null unless one was requested."""


class DeleteTenantOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `delete_tenant`."""

    confirm: str
    """The name of the tenant, so that no other one is deleted by mistake."""


class CreatedTenant(TenantResponse, frozen=True, kw_only=True):
    """A new tenant with its first key."""

    api_key: Annotated[str, msgspec.Meta(examples=["hw_…"])]
    """Its first key, with the scopes `read`, `write` and `manage`. It is only in this response."""


class TenantWithUse(TenantResponse, frozen=True, kw_only=True):
    """A tenant with what it uses, as of the last samples."""

    stored_bytes: Annotated[int, msgspec.Meta(examples=[5368709120])]
    """The bytes of all files of its datasets."""
    rows_today: Annotated[int, msgspec.Meta(examples=[120000])]
    """The rows that it has written on this day, in UTC."""
    quota_shares: list[QuotaShare]
    """The shares of its quotas `storage_bytes`, `rows_per_day` and `bytes_per_day` that are used, the largest first.
    Quotas that are not set are absent, and so are all of a tenant that is not active.
    """


class TenantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Tenants by name."""

    items: list[TenantWithUse]
    """The tenants of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class QuotaUseResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A quota of a tenant."""

    quota: Annotated[str, msgspec.Meta(examples=["datasets"])]
    """Its name."""
    limit: int | float | None
    """The limit; null for none."""
    used: int | None
    """What is used now; null for a quota of which nothing is counted."""


class QuotaUses(msgspec.Struct, frozen=True, kw_only=True):
    """The quotas of a tenant, with what it uses now."""

    items: list[QuotaUseResponse]
    """All quotas, those without a limit included."""


class UsageOptions(PageOptions, frozen=True, kw_only=True):
    """The options of lists of usage."""

    first_day: date | None = msgspec.field(default=None, name="from")
    """The first day."""
    last_day: date | None = msgspec.field(default=None, name="to")
    """The last day, included."""
    by: UsageOf = UsageOf.TENANT
    """What each item is about: a day of the tenant, of a dataset or of a key."""

    def wanted(self) -> UsageFilter:
        """The usage that the options select."""
        return UsageFilter(of=self.by, first_day=self.first_day, last_day=self.last_day)


class UsageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What was used on a day, in UTC. A dataset has no requests, and a key has nothing but them: null."""

    day: Annotated[date, msgspec.Meta(examples=["2026-11-21"])]
    """The day."""
    dataset_id: str | None
    """The id of the dataset, where usage is listed by dataset."""
    dataset: str | None
    """Its name. Null for a dataset that was deleted so long ago that only its usage is kept."""
    dataset_deleted_at: datetime | None
    """When the dataset was deleted; null for one that exists."""
    key_id: str | None
    """The key, where usage is listed by key."""
    rows_written: int | None
    """The rows that writes inserted, updated or deleted."""
    bytes_written: int | None
    """The bytes of the files that writes added."""
    changes: int | None
    """The changes in feeds."""
    job_seconds: float | None
    """How long jobs ran, from the start to the end. Jobs that share a commit count once."""
    stored_bytes: int | None
    """The most bytes that files had in a sample of the day."""
    requests: int | None
    """The requests."""
    egress_bytes: int | None
    """The bytes of the bodies of responses."""


class UsagePage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage by day."""

    items: list[UsageResponse]
    """The days of this page on which anything was used."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class CreateKey(KeySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An API key to make."""


class KeyResponse(KeyDescription, frozen=True, kw_only=True):
    """An API key, without its text."""


class CreatedKey(KeyResponse, frozen=True, kw_only=True):
    """A new API key with its text."""

    api_key: Annotated[str, msgspec.Meta(examples=["hw_…"])]
    """The key. It is only in this response."""


class KeyPage(msgspec.Struct, frozen=True, kw_only=True):
    """API keys, the newest first."""

    items: list[KeyResponse]
    """The keys of this page, those that are revoked or expired included."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class NamedResource(msgspec.Struct, frozen=True, kw_only=True):
    """Something by its id and its name."""

    id: str
    """The id."""
    name: str
    """The name."""


class IdentityResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The credential of a request: an API key, or a token of an OpenID Connect issuer."""

    tenant: NamedResource
    """Its tenant."""
    key: NamedResource | None
    """The key; null for a token."""
    subject: str | None
    """The subject of the token, which timelines show as the name of the actor; null for a key."""
    issuer: str | None
    """The issuer of the token; null for a key."""
    scopes: list[KeyScope]
    """What it may do."""
    grants: list[Grant] | None
    """The datasets that it reaches; null for all of the tenant."""
    expires_at: datetime | None
    """When it expires; null for never."""


class AuditEntryResponse(AuditEntry, frozen=True, kw_only=True):
    """A request, or several equal ones."""


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of the audit, the newest first."""

    items: list[AuditEntryResponse]
    """The entries of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


def audit_entry(entry: AuditEntry) -> AuditEntryResponse:
    """The response for an entry of the audit."""
    return AuditEntryResponse(**msgspec.structs.asdict(entry))


def tenant_response(tenant: Tenant) -> TenantResponse:
    """The response for a tenant."""
    return TenantResponse(**msgspec.structs.asdict(tenant))


def tenant_with_use(tenant: Tenant, use: TenantUse) -> TenantWithUse:
    """The response for a tenant with what it uses."""
    return TenantWithUse(
        **msgspec.structs.asdict(tenant),
        stored_bytes=use.stored_bytes,
        rows_today=use.rows_today,
        quota_shares=list(use.quotas),
    )


def tenant_with_deletion(tenant: Tenant, deletion: TenantDeletion | None) -> TenantWithDeletion:
    """The response for a tenant with its deletion."""
    report = None if deletion is None else DeletionResponse(**msgspec.structs.asdict(deletion))
    return TenantWithDeletion(**msgspec.structs.asdict(tenant), deletion=report)


def quota_uses(uses: list[QuotaUse]) -> QuotaUses:
    """The response for the quotas of a tenant."""
    return QuotaUses(items=[QuotaUseResponse(**msgspec.structs.asdict(each)) for each in uses])


def usage_page(page: Page, of: UsageOf) -> UsagePage:
    """The response for a page of usage."""
    return UsagePage(items=[_usage(each, of) for each in page.items], next_page_token=page.next_token)


def _usage(named: NamedUsage, of: UsageOf) -> UsageResponse:
    usage, dataset = named
    has_writes, has_requests = of is not UsageOf.KEY, of is not UsageOf.DATASET
    return UsageResponse(
        day=usage.day,
        dataset_id=usage.id if of is UsageOf.DATASET else None,
        dataset=None if dataset is None else dataset.name,
        dataset_deleted_at=None if dataset is None else dataset.deleted_at,
        key_id=usage.id if of is UsageOf.KEY else None,
        rows_written=usage.rows_written if has_writes else None,
        bytes_written=usage.bytes_written if has_writes else None,
        changes=usage.changes if has_writes else None,
        job_seconds=usage.job_milliseconds / 1000 if has_writes else None,
        stored_bytes=usage.stored_bytes if has_writes else None,
        requests=usage.requests if has_requests else None,
        egress_bytes=usage.egress_bytes if has_requests else None,
    )


def tenant_change(data: UpdateTenant) -> TenantChange:
    """The change that a request describes. Raises InvalidRequest."""
    if data.state in (TenantState.DELETING, TenantState.DELETED):
        detail = "expected `active` or `suspended`; DELETE deletes a tenant"
        raise InvalidRequest(f"state: {detail}", [FieldError(pointer="/state", detail=detail)])
    return TenantChange(
        state=None if isinstance(data.state, msgspec.UnsetType) else data.state,
        reason=data.reason,
        quotas=NO_QUOTAS if isinstance(data.quotas, msgspec.UnsetType) else data.quotas,
    )


def created_tenant(tenant: Tenant, credential: MadeKey) -> CreatedTenant:
    """The response for a new tenant."""
    return CreatedTenant(**msgspec.structs.asdict(tenant), api_key=credential.api_key)


def key_response(key: ApiKey) -> KeyResponse:
    """The response for a key."""
    return KeyResponse(**_members(key))


def created_key(credential: MadeKey) -> CreatedKey:
    """The response for a new key."""
    return CreatedKey(**_members(credential.key), api_key=credential.api_key)


def identity_response(principal: Principal, tenant: Tenant, key: ApiKey | None) -> IdentityResponse:
    """The response for the credential of a request. `key`: None for a token."""
    token = principal.token
    expires_at = None if key is None else key.expires_at
    return IdentityResponse(
        tenant=NamedResource(id=tenant.id, name=tenant.name),
        key=None if key is None else NamedResource(id=key.id, name=key.name),
        subject=None if token is None else token.subject,
        issuer=None if token is None else token.issuer,
        scopes=sorted(principal.scopes, key=lambda scope: scope.value),
        grants=None if principal.grants is None else list(principal.grants),
        expires_at=expires_at if token is None else token.expires_at,
    )


def new_key(data: CreateKey, principal: Principal) -> NewKey:
    """The key that a request describes."""
    return NewKey(**msgspec.structs.asdict(data), created_by=principal.actor)


def _members(key: ApiKey) -> dict[str, Any]:
    members = msgspec.structs.asdict(key)
    del members["tenant_id"]
    return members
