"""Errors of tenants, keys and quotas."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError, InvalidRequest


class QuotaExceeded(HeadwaterError):
    """The request goes beyond a quota of the tenant. Facts: `quota`, `limit`, `used`, `retry_after_seconds`.

    The last one is there for quotas of a day, of queued jobs and of streams. What others count ends by no time.
    """

    code = "quota-exceeded"
    title = "The quota of the tenant is exhausted"


class RateLimited(HeadwaterError):
    """Too many requests in a short time. Facts: `quota`, `limit`, `used`, `retry_after_seconds`, `limited`."""

    code = "rate-limited"
    title = "Too many requests"


class TenantExists(HeadwaterError):
    """Another tenant has this name."""

    code = "tenant-exists"
    title = "A tenant of this name already exists"


class TenantProtected(HeadwaterError):
    """The first tenant of an installation, and that of the key, cannot be deleted."""

    code = "tenant-protected"
    title = "This tenant cannot be deleted"


class WrongConfirmation(InvalidRequest):
    """The parameter that confirms a deletion has another name than that of what is to be deleted."""

    code = "wrong-confirmation"
    title = "The confirmation has another name"


class TenantDeleted(HeadwaterError):
    """The tenant is being deleted, or was. Fact: `state`."""

    code = "tenant-deleted"
    title = "The tenant is deleted"


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
