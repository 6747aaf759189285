"""What tenants have used, day by day in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import Enum
from typing import Annotated, Final

import msgspec

DAYS_KEPT: Final = 400
HOURS_KEPT: Final = 8 * 24


class UsageOf(str, Enum):
    """What the usage is listed of."""

    TENANT = "tenant"
    DATASET = "dataset"
    KEY = "key"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of a day: of a tenant, or of one of its datasets or keys by its id.

    `stored_bytes`: the largest sample of the day; for the tenant the sum of those of its datasets.
    """

    day: date
    id: str | None = None
    rows_written: int = 0
    bytes_written: int = 0
    changes: int = 0
    job_milliseconds: int = 0
    stored_bytes: int = 0
    requests: int = 0
    egress_bytes: int = 0


class UsageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The days of the usage, both included; None for no bound."""

    of: UsageOf
    first_day: date | None = None
    last_day: date | None = None


class KeyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a key has used since it was last recorded."""

    tenant_id: str
    key_id: str
    requests: int
    egress_bytes: int


class QuotaShare(msgspec.Struct, frozen=True, kw_only=True):
    """Which share of a quota is used."""

    quota: Annotated[str, msgspec.Meta(examples=["storage_bytes"])]
    """Its name."""
    share: Annotated[float, msgspec.Meta(examples=[0.42])]
    """The used share: 1 is all of it."""


class TenantUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant stores, has written on this day, and has used of the quotas that stop its writes."""

    stored_bytes: int = 0
    rows_today: int = 0
    quotas: Sequence[QuotaShare] = ()
    """Those that are set, the one that is used most first; of an active tenant only."""
