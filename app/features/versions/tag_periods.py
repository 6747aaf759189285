"""The periods at the end of which versions are tagged, all in UTC: where they end, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from app.kernel.format.policies import TagPeriod

_NAMES: Final = {
    TagPeriod.HOUR: "%Y-%m-%dT%H",
    TagPeriod.DAY: "%Y-%m-%d",
    # The year that the week counts in, which is another one on some days around New Year.
    TagPeriod.WEEK: "%G-W%V",
    TagPeriod.MONTH: "%Y-%m",
}
_FORMS: Final = {
    TagPeriod.HOUR: re.compile(r"\d{4}-\d\d-\d\dT\d\d"),
    TagPeriod.DAY: re.compile(r"\d{4}-\d\d-\d\d"),
    TagPeriod.WEEK: re.compile(r"\d{4}-W\d\d"),
    TagPeriod.MONTH: re.compile(r"\d{4}-\d\d"),
}


def beginning(period: TagPeriod, moment: datetime) -> datetime:
    """When the period began that the moment lies in."""
    hour = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if period is TagPeriod.HOUR:
        return hour
    day = hour.replace(hour=0)
    if period is TagPeriod.WEEK:
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period is TagPeriod.MONTH else day


def end(period: TagPeriod, moment: datetime) -> datetime:
    """When the period ends that the moment lies in: the first moment of the next."""
    # No period is longer, and from the beginning of one that leads into the next.
    longer = {TagPeriod.HOUR: 1, TagPeriod.DAY: 24, TagPeriod.WEEK: 24 * 7, TagPeriod.MONTH: 24 * 31}[period]
    return beginning(period, beginning(period, moment) + timedelta(hours=longer))


def name_of(period: TagPeriod, moment: datetime) -> str:
    """The name of the period that the moment lies in: `2026-11-22T05`, `2026-11-22`, `2026-W47`, `2026-11`."""
    return beginning(period, moment).strftime(_NAMES[period])


def ended(period: TagPeriod, since: datetime, now: datetime, limit: int) -> list[datetime]:
    """The ends of the periods that ended after `since`, and by `now`, in order; of many the latest `limit`."""
    ends: list[datetime] = []
    last = beginning(period, now)
    while last > since and len(ends) < limit:
        ends.append(last)
        last = beginning(period, last - timedelta(microseconds=1))
    return ends[::-1]


def outlived(period: TagPeriod, names: Sequence[str], keep: int) -> list[str]:
    """The names of such periods that are not among the latest `keep`. Names of another form are ignored."""
    return sorted(name for name in names if _FORMS[period].fullmatch(name))[:-keep]
