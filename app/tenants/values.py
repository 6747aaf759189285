"""Values of tenants and API keys that the services and their ports use."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime
from enum import Enum
from typing import Annotated, Final

import msgspec

from app.format.errors import HeadwaterError
from app.tenants.quotas import NO_QUOTAS, Quotas

API_KEY: Final = re.compile(r"hw_[A-Za-z0-9_-]{43}")
KEYS_MAX: Final = 1_000
"""Live keys of a tenant."""
GRANTS_MAX: Final = 100
"""Grants of a key."""
_PATTERN_CHARACTERS_MAX: Final = 255


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
    """Whether a tenant may write."""

    ACTIVE = "active"
    SUSPENDED = "suspended"


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
    """The scopes of the key that apply to these datasets; all of them by default."""

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
            found = name.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The principal of a request: the tenant of the credential, and what the credential permits.

    No other value determines the tenant. `grants`: the datasets that it reaches; None for all of the tenant.
    `suspended`: why the tenant may not write; None if it may. `expires_in_seconds`: None for a key without an end.
    `quotas`: those of the tenant. `requests_per_second`: what the key itself may send; None for no limit of its own.
    """

    tenant_id: str
    key_id: str
    scopes: frozenset[KeyScope]
    grants: tuple[Grant, ...] | None = None
    suspended: str | None = None
    expires_in_seconds: float | None = None
    quotas: Quotas = NO_QUOTAS
    requests_per_second: int | None = None

    def scopes_on(self, dataset: str) -> frozenset[KeyScope]:
        """What it may do with the dataset of this name; nothing if the dataset is not granted."""
        if self.grants is None:
            return self.scopes
        granted = [grant for grant in self.grants if grant.matches(dataset)]
        return frozenset(scope for grant in granted for scope in grant.scopes or self.scopes) & self.scopes

    def reaches(self, dataset: str) -> bool:
        """Whether the dataset of this name exists for it."""
        return self.grants is None or any(grant.matches(dataset) for grant in self.grants)

    def patterns(self, scope: KeyScope) -> tuple[str, ...] | None:
        """The patterns of the datasets with which it may do this; None for all datasets."""
        if self.grants is None:
            return None
        return tuple(grant.datasets for grant in self.grants if scope in (grant.scopes or self.scopes))


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant. `suspended_reason` and `suspended_at` are None unless it is suspended."""

    id: str
    name: str
    state: TenantState
    quotas: Quotas
    suspended_reason: str | None
    suspended_at: datetime | None
    created_at: datetime


class TenantChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a tenant. `state`: None leaves it. `reason`: of a suspension. `quotas`: merged member by member."""

    state: TenantState | None = None
    reason: str | None = None
    quotas: Quotas = NO_QUOTAS


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key to make. `created_by`: the id of the key that makes it."""

    name: str
    scopes: frozenset[KeyScope]
    grants: tuple[Grant, ...] | None = None
    expires_at: datetime | None = None
    requests_per_second: int | None = None
    created_by: str | None = None


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key, without its text. `last_used_at`: the minute of its last request."""

    id: str
    tenant_id: str
    name: str
    scopes: tuple[KeyScope, ...]
    grants: tuple[Grant, ...] | None
    created_at: datetime
    created_by: str | None
    expires_at: datetime | None
    requests_per_second: int | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class MadeKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new API key. `api_key` is its text, which cannot be read again."""

    key: ApiKey
    api_key: str

    @property
    def key_id(self) -> str:
        return self.key.id

    def __repr__(self) -> str:
        return f"MadeKey(key_id={self.key_id!r})"


class TenantExists(HeadwaterError):
    """Another tenant has this name."""

    code = "tenant-exists"
    title = "A tenant of this name already exists"


class TenantSuspended(HeadwaterError):
    """The tenant may not write. Fact: `reason`."""

    code = "tenant-suspended"
    title = "The tenant is suspended"


class TooManyKeys(HeadwaterError):
    """The tenant has as many live keys as it may have. Fact: `keys_max`."""

    code = "too-many-keys"
    title = "The tenant has too many API keys"


class AdministrationUnavailable(HeadwaterError):
    """This deployment does not administer tenants and keys over HTTP. Fact: `setting`, which is missing."""

    code = "administration-unavailable"
    title = "Tenants and keys are not administered here"


def new_api_key() -> str:
    """256 random bits behind a prefix that scanners for leaked secrets can recognise."""
    return f"hw_{secrets.token_urlsafe(32)}"


def key_digest(api_key: str) -> bytes:
    """The stored form of a key. Its text is random and long, so a plain hash cannot be reversed."""
    return hashlib.sha256(api_key.encode()).digest()
