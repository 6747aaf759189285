"""Automatic tags: at the end of each period, in UTC, the last version of a dataset gets the name of the period."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult
from app.features.versions.repository import NamedVersionStore
from app.kernel.format.policies import TagPeriod, TagPolicy

_log = logging.getLogger(__name__)
# At most this many periods that ended since the previous run are tagged.
_PERIODS_MAX: Final = 100
# The reconciler runs this long after the end of a period, never before it.
_MARGIN_SECONDS: Final = 0.5
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


@dataclass(frozen=True, kw_only=True, slots=True)
class TagReconciler:
    """Carries out `services.tags`. It stores the time up to which the periods have been tagged."""

    tags: NamedVersionStore

    def reconcile(self, observation: Observation) -> ReconcileResult:
        """See `Reconciler`."""
        policy = observation.dataset.definition.services.tags
        if policy is None:
            return ReconcileResult()
        # The first period to be tagged is the one in which the policy was first seen.
        since = beginning(policy.period, observation.now)
        if observation.memory.get("period") == policy.period.value:
            since = datetime.fromisoformat(observation.memory["since"])
        limit = _PERIODS_MAX if policy.keep is None else min(policy.keep, _PERIODS_MAX)
        ends = ended(policy.period, since, observation.now, limit)
        for each in ends:
            self._tag(observation.dataset, policy, each)
        if ends and policy.keep is not None:
            self._remove_outdated(observation.dataset, policy, policy.keep)
        next_end = end(policy.period, observation.now)
        return ReconcileResult(
            memory={"period": policy.period.value, "since": max([since, *ends]).isoformat()},
            wake_after_seconds=(next_end - observation.now).total_seconds() + _MARGIN_SECONDS,
        )

    def _tag(self, dataset: Dataset, policy: TagPolicy, period_end: datetime) -> None:
        name = name_of(policy.period, period_end - timedelta(microseconds=1))
        version = self.tags.add_automatic(dataset.tenant_id, dataset.id, name, period_end)
        if version is not None:
            _log.info("version %d of dataset %s is tagged %s", version, dataset.id, name)

    def _remove_outdated(self, dataset: Dataset, policy: TagPolicy, keep: int) -> None:
        names = outlived(policy.period, self.tags.automatic(dataset.tenant_id, dataset.id), keep)
        if names:
            self.tags.remove(dataset.tenant_id, dataset.id, names)


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
