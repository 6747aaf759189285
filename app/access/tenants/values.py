"""Values of tenants, API keys and tokens that the services and their ports use."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime
from enum import Enum
from typing import Annotated, Final, TypeAlias
from uuid import NAMESPACE_URL, uuid5

import msgspec

from app.access.tenants.quotas import NO_QUOTAS, Quotas, RequestRate
from app.kernel.format.errors import RestrictedGrant
from app.kernel.format.schema.schema import FIELD_NAME_CHARACTERS_MAX
from app.kernel.sql.conditions.language import TEXT_CHARACTERS_MAX as CONDITION_CHARACTERS_MAX
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess, combined

DEFAULT_TENANT_ID: Final = "00000000-0000-7000-8000-000000000001"
"""The id of the first tenant, the same in every installation."""
API_KEY: Final = re.compile(r"hw_[A-Za-z0-9_-]{43}")
KEYS_MAX: Final = 1_000
"""Live keys of a tenant."""
GRANTS_MAX: Final = 100
"""Grants of a key."""
_PATTERN_CHARACTERS_MAX: Final = 255
_MASKED_MAX: Final = 100
_ColumnName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=FIELD_NAME_CHARACTERS_MAX)]
_ColumnNames: TypeAlias = Annotated[tuple[_ColumnName, ...], msgspec.Meta(max_length=_MASKED_MAX)]
_Condition: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=CONDITION_CHARACTERS_MAX)]

BoundedText: TypeAlias = Annotated[str, msgspec.Meta(max_length=1_000, pattern=r"^[^\x00]*$")]
"""A text of a request that is stored: Postgres stores no NUL."""


class KeyScope(str, Enum):
    """What a key may do. No scope implies another."""

    READ = "read"
    """Read rows, feeds and definitions; hold positions; jobs that only read; exports that run once."""
    WRITE = "write"
    """Write rows, and register datasets and views."""
    MANAGE = "manage"
    """Change and delete datasets and views, go back in time, table services, webhooks, export schedules, keys."""
    OPERATE = "operate"
    """Make, suspend and resume tenants, and make keys for them."""


FIRST_KEY_SCOPES: Final = frozenset({KeyScope.READ, KeyScope.WRITE, KeyScope.MANAGE})
"""The scopes of the first key of a tenant."""


class TenantState(str, Enum):
    """Whether a tenant may write, or what has become of it."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETING = "deleting"
    """No key of it works any more, and its data are being deleted."""
    DELETED = "deleted"
    """Only its id and the report of its deletion are left."""


class Grant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Datasets that a key reaches, and what it may do with them."""

    datasets: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=_PATTERN_CHARACTERS_MAX,
            pattern=r"^[A-Za-z0-9_.*-]+$",
            examples=["orders_*"],
        ),
    ]
    """A pattern of names: `*` stands for any characters, every other character for itself."""
    scopes: tuple[KeyScope, ...] = ()
    """The scopes of the key that apply to these datasets; all of them by default. With `where` or `mask`, only `read`
    is possible.
    """
    where: _Condition | msgspec.UnsetType | None = msgspec.UNSET
    """A condition, as in `where` of reads: only the rows for which it is true exist for the key."""
    mask: _ColumnNames | msgspec.UnsetType | None = msgspec.UNSET
    """The columns whose values the key does not see: they read as null."""

    def access(self) -> RowAccess:
        """What the grant shows of its datasets."""
        return RowAccess(
            where=(self.where,) if isinstance(self.where, str) else (),
            masked=self.mask if isinstance(self.mask, tuple) else (),
        )

    def matches(self, name: str) -> bool:
        """Whether the pattern fits the whole name. The time is linear in its length, whatever the pattern."""
        first, *rest = self.datasets.split("*")
        if not rest:
            return name == first
        *middle, last = rest
        if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
            return False
        at, end = len(first), len(name) - len(last)
        for part in middle:
            start = name.find(part, at, end)
            if start < 0:
                return False
            at = start + len(part)
        return True


class TokenIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Who a token of an OpenID Connect issuer is: `subject` is unique at the issuer."""

    issuer: str
    subject: str
    expires_at: datetime

    @property
    def actor(self) -> str:
        """The id of the subject, the same in every process."""
        return str(uuid5(uuid5(NAMESPACE_URL, self.issuer), self.subject))


class TokenClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What a verified token gives. `tenant`: by its id or name; it may not exist.

    `valid_seconds`: for how long this holds without another verification.
    """

    tenant: str
    identity: TokenIdentity
    scopes: frozenset[KeyScope]
    grants: tuple[Grant, ...] | None
    valid_seconds: float


class ActorKind(str, Enum):
    """What the id of an actor names."""

    KEY = "key"
    """An API key."""
    TOKEN = "token"  # noqa: S105  (a kind of credentials)
    """The subject of a token of an OpenID Connect issuer."""
    RECIPIENT = "recipient"
    """A recipient of a share."""
    SESSION = "session"
    """A session of the console. Its principal is that of the key or token with which it began."""


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who a credential is of that was derived from another one: an API key, the subject of a token, or a recipient.

    `token_ends`: when the token expires, in seconds since the epoch; None unless `kind` is `TOKEN`.
    """

    tenant_id: str
    id: str
    kind: ActorKind = ActorKind.KEY
    token_ends: int | None = None


class ActorSecret(msgspec.Struct, frozen=True):
    """A credential of an actor, as a client has sent it where credentials of this kind are taken."""

    kind: ActorKind
    text: str

    def __repr__(self) -> str:
        return f"ActorSecret(kind={self.kind!r})"


Credential: TypeAlias = str | Actor | ActorSecret
"""What names a principal: the bearer credential of a request to the API, which is an API key or a token of an issuer;
an actor whose credential was verified; or a credential of another kind. No text is taken for one of the latter two.
"""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The principal of a request: the tenant of the credential, and what the credential permits.

    No other value determines the tenant. `tenant_name`: for the log. `actor`: the id of the API key, that of the
    subject of the `token`, or of the recipient of a share, as `kind` says. `key_name`: the name of the key, or the
    subject.
    `grants`: the datasets that it reaches; None for all of the tenant. `suspension`: why the tenant may not write; None
    if it may. `valid_seconds`: for how long it holds without another check; None if only a change of the key or of
    the tenant ends that. `expires_at`: when the key expires; None for never, and for tokens. `quotas`: those of the
    tenant. `requests_per_second`: what the key itself may send; None for no limit of its own.
    """

    tenant_id: str
    tenant_name: str = ""
    actor: str
    kind: ActorKind = ActorKind.KEY
    token: TokenIdentity | None = None
    scopes: frozenset[KeyScope]
    key_name: str = ""
    grants: tuple[Grant, ...] | None = None
    suspension: str | None = None
    valid_seconds: float | None = None
    expires_at: datetime | None = None
    quotas: Quotas = NO_QUOTAS
    requests_per_second: int | None = None

    def scopes_on(self, dataset: str) -> frozenset[KeyScope]:
        """What it may do with the dataset of this name; nothing if the dataset is not granted."""
        if self.grants is None:
            return self.scopes
        grants = [grant for grant in self.grants if grant.matches(dataset)]
        return frozenset(scope for grant in grants for scope in grant.scopes or self.scopes) & self.scopes

    def reaches(self, dataset: str) -> bool:
        """Whether the dataset of this name exists for it."""
        return self.grants is None or any(grant.matches(dataset) for grant in self.grants)

    @property
    def sees_parts(self) -> bool:
        """Whether it may see only a part of some dataset."""
        return any(grant.access().restricted for grant in self.grants or ())

    def access(self, dataset: str) -> RowAccess:
        """What it sees of the dataset of this name when it reads: everything, unless its grants say otherwise."""
        if self.grants is None:
            return EVERYTHING
        accesses = [
            grant.access()
            for grant in self.grants
            if KeyScope.READ in (grant.scopes or self.scopes) and grant.matches(dataset)
        ]
        return combined(accesses)

    def sees_whole(self, dataset: str) -> bool:
        """Whether it may read every value of the dataset of this name."""
        return KeyScope.READ in self.scopes_on(dataset) and not self.access(dataset).restricted

    def patterns(self, scope: KeyScope) -> tuple[str, ...] | None:
        """The patterns of the datasets with which it may do this; None for all datasets."""
        if self.grants is None:
            return None
        return tuple(grant.datasets for grant in self.grants if scope in (grant.scopes or self.scopes))


class TenantDeletion(msgspec.Struct, frozen=True, kw_only=True):
    """The deletion of a tenant: what was deleted so far, and, once it was found empty, what was left."""

    name: Annotated[str, msgspec.Meta(examples=["acme"])]
    """The name that the tenant had, which is free once it is deleted."""
    requested_at: datetime
    """When it was requested."""
    requested_by: str | None
    """The id of the key that requested it."""
    rows_deleted: dict[str, int]
    """The rows deleted so far, by table."""
    files_deleted: int
    """The files deleted so far."""
    bytes_deleted: int
    """Their size."""
    rows_left: dict[str, int] | None
    """The rows that were left, counted at `cleared_at`, by table: zero each. Null before."""
    files_left: int | None
    """The files that were left, counted at `cleared_at`: zero. Null before."""
    cleared_at: datetime | None
    """When nothing was left of its data; null before."""
    finished_at: datetime | None
    """When its keys were deleted and its name was free; null before."""


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant."""

    id: str
    """Its id."""
    name: Annotated[str, msgspec.Meta(examples=["acme"])]
    """Its name."""
    state: TenantState
    """Whether it may write."""
    quotas: Quotas
    """Its limits."""
    suspended_reason: str | None
    """Why it is suspended; null unless it is."""
    suspended_at: datetime | None
    """When it was suspended; null unless it is."""
    created_at: datetime
    """When it was made."""


class TenantChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a tenant. `state`: None leaves it. `reason`: of a suspension. `quotas`: merged member by member."""

    state: TenantState | None = None
    reason: str | None = None
    quotas: Quotas = NO_QUOTAS


class KeySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a key is made with."""

    name: Annotated[BoundedText, msgspec.Meta(examples=["loader"])]
    """What it is for. Names need not differ."""
    scopes: Annotated[tuple[KeyScope, ...], msgspec.Meta(min_length=1, max_length=len(KeyScope))]
    """What it may do. No scope implies another."""
    grants: Annotated[tuple[Grant, ...], msgspec.Meta(min_length=1, max_length=GRANTS_MAX)] | None = None
    """The datasets that it reaches; absent for all of the tenant. Others do not exist for it."""
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """When it expires, at the latest when the key that makes it does; absent for then, or for never."""
    requests_per_second: RequestRate | None = None
    """How many requests per second it may send, beside the quota of the tenant: at most as many as the key that makes
    it; absent for as many, or for no limit of its own.
    """


class NewKey(KeySettings, frozen=True, kw_only=True):
    """A key to make."""

    created_by: str | None = None
    """The id of the key, or of the subject of the token, that makes it."""


class KeyDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A key, without its text and its tenant."""

    id: str
    """Its id, which jobs and timelines name as the actor."""
    name: Annotated[str, msgspec.Meta(examples=["loader"])]
    """What it is for."""
    scopes: tuple[KeyScope, ...]
    """What it may do."""
    grants: tuple[Grant, ...] | None
    """The datasets that it reaches; null for all of the tenant."""
    created_at: datetime
    """When it was made."""
    created_by: str | None
    """The id of the key, or of the subject of the token, that made it; null for the first of an installation."""
    expires_at: datetime | None
    """When it expires; null for never."""
    requests_per_second: int | None
    """How many requests per second it may send; null for no limit of its own."""
    revoked_at: datetime | None
    """When it was revoked; null if it was not."""
    last_used_at: datetime | None
    """About when it was last used, to a minute; null if it was not."""


class ApiKey(KeyDescription, frozen=True, kw_only=True):
    """A key of a tenant, without its text."""

    tenant_id: str


class MadeKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new API key. `api_key` is its text, which cannot be read again."""

    key: ApiKey
    api_key: str

    @property
    def key_id(self) -> str:
        return self.key.id

    def __repr__(self) -> str:
        return f"MadeKey(key_id={self.key_id!r})"


def seen_in_part(dataset: str) -> RestrictedGrant:
    """The error for an operation that shows or changes more of a dataset than the principal sees."""
    return RestrictedGrant(
        f"this key sees a part of {dataset!r} only: this needs a grant without `where` and `mask`",
        dataset=dataset,
    )


def new_api_key() -> str:
    """256 random bits behind a prefix that scanners for leaked secrets can recognise."""
    return f"hw_{secrets.token_urlsafe(32)}"


def key_digest(api_key: str) -> bytes:
    """The stored form of a key. Its text is random and long, so a plain hash cannot be reversed."""
    return hashlib.sha256(api_key.encode()).digest()
