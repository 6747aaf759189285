"""What a tenant may use, and the errors of what goes beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from math import ceil
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from app.access.tenants.errors import QuotaExceeded, RateLimited

_INTEGER_MAX: Final = 2**53 - 1
# The time that a piece of work counts is divided by it, and must stay finite.
_WEIGHT_MIN: Final = 0.01

_Count: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=0, le=_INTEGER_MAX, examples=[100])] | msgspec.UnsetType | None
)
RequestRate: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_000_000, examples=[50])]
"""Requests per second."""


class Quotas(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The limits of a tenant. One that is absent does not exist. In a change, null removes a limit."""

    datasets: _Count = msgspec.UNSET
    """The datasets that exist, the tables of views included."""
    views: _Count = msgspec.UNSET
    """The views that exist."""
    consumers: _Count = msgspec.UNSET
    """The consumers that exist, without those of webhooks, exports and views."""
    webhooks: _Count = msgspec.UNSET
    """The webhooks that exist."""
    exports: _Count = msgspec.UNSET
    """The exports that have not ended."""
    sources: _Count = msgspec.UNSET
    """The sources that exist."""
    shares: _Count = msgspec.UNSET
    """The shares that exist."""
    recipients: _Count = msgspec.UNSET
    """The recipients of all shares."""
    queued_jobs: _Count = msgspec.UNSET
    """The requested jobs that wait for a worker. Jobs that the service starts itself are neither counted nor refused.
    """
    running_jobs: _Count = msgspec.UNSET
    """The jobs that run at a time; writes that share a commit count once. Further jobs wait."""
    storage_bytes: _Count = msgspec.UNSET
    """The bytes of all files, measured every minute. Once they reach it, only deletions are accepted as writes."""
    rows_per_day: _Count = msgspec.UNSET
    """The rows that writes change in a day, in UTC. Once they reach it, no write is accepted until the next day."""
    bytes_per_day: _Count = msgspec.UNSET
    """The bytes of the files that writes add in a day, in UTC. Once they reach it, no write is accepted until the next
    day.
    """
    streams: _Count = msgspec.UNSET
    """The requests that wait at a time: event streams and long polls."""
    requests_per_second: RequestRate | msgspec.UnsetType | None = msgspec.UNSET
    """The requests per second. As many may come at once after a pause of a second."""
    object_requests_per_second: RequestRate | msgspec.UnsetType | None = msgspec.UNSET
    """The requests per second for files of tables in S3's protocol, which `requests_per_second` does not count."""
    sharing_requests_per_second: RequestRate | msgspec.UnsetType | None = msgspec.UNSET
    """The requests per second of all recipients together for Delta Sharing, which `requests_per_second` does not count.
    """
    weight: (
        Annotated[float, msgspec.Meta(ge=_WEIGHT_MIN, le=1000, examples=[1])] | msgspec.UnsetType | None
    ) = msgspec.UNSET
    """The share of the workers, relative to those of other tenants; 1 by default."""
    job_seconds: (
        Annotated[float, msgspec.Meta(gt=0, le=31536000, examples=[600])] | msgspec.UnsetType | None
    ) = msgspec.UNSET
    """The time that an attempt at a write, a read or the computation of a view may run."""

    def limit(self, name: str) -> int | None:
        """The limit of this name; None if there is none."""
        value = getattr(self, name)
        return None if value is None or value is msgspec.UNSET else value

    def with_changes(self, change: Quotas) -> Quotas:
        """The quotas after a change, member by member; null removes one."""
        return Quotas(
            **{
                name: quota
                for name in self.__struct_fields__
                if (quota := _either(getattr(change, name), getattr(self, name))) is not None
            }
        )

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that there are, by name."""
        return {name: limit for name in self.__struct_fields__ if (limit := self.limit(name)) is not None}


NO_QUOTAS: Final = Quotas()
COUNTED: Final = (
    "datasets",
    "views",
    "consumers",
    "webhooks",
    "exports",
    "sources",
    "shares",
    "recipients",
    "queued_jobs",
    "running_jobs",
)
"""The quotas of what exists. Its creation is counted under a lock."""
METERED: Final = ("storage_bytes", "rows_per_day", "bytes_per_day")
"""The quotas of what is metered."""

_PASSING_SECONDS: Final = {"queued_jobs": 5, "streams": 5}
"""When what counts for these quotas may have ended by itself."""


def quotas_of(document: Mapping[str, Any]) -> Quotas:
    """The quotas in their stored form. Names that this release does not know are left out.

    A weight that was stored while there was no least one counts as that.
    """
    members = {name: document[name] for name in Quotas.__struct_fields__ if name in document}
    if "weight" in members:
        members["weight"] = max(members["weight"], _WEIGHT_MIN)
    return msgspec.convert(members, Quotas)


def quota_exceeded(name: str, limit: int, usage: int, now: datetime | None = None) -> QuotaExceeded:
    """The error of a request beyond the quota. `usage`: without what the request needs."""
    facts: dict[str, Any] = {"quota": name, "limit": limit, "used": usage}
    again = _retry_after_seconds(name, now or datetime.now(UTC))
    if again is not None:
        facts["retry_after_seconds"] = again
    return QuotaExceeded(f"the tenant's quota {name} is {limit}, and {usage} are used", **facts)


def rate_limited(
    party: str, limit: int, wait_seconds: float, *, name: str = "requests_per_second"
) -> RateLimited:
    """The error of a request beyond a rate. `party`: `tenant`, `key` or `recipient`. `name`: of the quota."""
    detail = f"the {party} may send {limit} requests per second"
    return RateLimited(
        detail,
        quota=name,
        limit=limit,
        used=limit,
        limited=party,
        retry_after_seconds=max(1, ceil(wait_seconds)),
    )


def _retry_after_seconds(name: str, now: datetime) -> int | None:
    """When a repetition may succeed, in whole seconds: for the quota of a day, at its end.

    None for what exists and is stored: it does not end by itself, so a client that repeats waits in vain.
    """
    if name.endswith("_per_day"):
        midnight = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
        return max(1, ceil((midnight - now).total_seconds()))
    return _PASSING_SECONDS.get(name)


def _either(change: Any, before: Any) -> Any:
    return before if change is msgspec.UNSET else change
