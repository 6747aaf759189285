"""The times of schedules: intervals, and times of day in the syntax of cron, in a zone.

Where clocks go forward, a time of day that does not exist stands for the first minute after the gap. Where they go
back, it counts once, at its first occurrence. A schedule whose minute or hour begins with `*` has the times that clocks
show: none in the gap, and both occurrences.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from app.features.exports.values import CRON_CHARACTERS_MAX, Schedule
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.similar_names import similar_names

DEFAULT_ZONE: Final = "UTC"
_FIELDS: Final = 5
# Clocks go back by two hours at most.
_OVERLAP: Final = timedelta(hours=3)
_EXAMPLE: Final = "'0 6 * * 1-5', at six on weekdays"


def check_schedule(schedule: Schedule) -> None:
    """Raises InvalidRequest unless the schedule is an interval, or a cron expression with times to come."""
    cron, zone = schedule.cron, schedule.zone
    if (cron is None) is (schedule.every_seconds is None):
        raise _refused("", "expected every_seconds or cron, one of the two")
    if cron is None:
        if zone is not None:
            raise _refused("/zone", "only beside cron; remove it")
        return
    if zone is not None and zone not in _zones():
        similar = similar_names(zone, sorted(_zones()))
        hint = f"; did you mean {similar[0]!r}?" if similar else ""
        raise _refused(
            "/zone", f"there is no time zone {zone!r}{hint}; expected a name such as Europe/Berlin"
        )
    if len(cron) > CRON_CHARACTERS_MAX or len(cron.split()) != _FIELDS:
        raise _refused(
            "/cron", f"expected five fields: minute, hour, day, month, weekday; such as {_EXAMPLE}"
        )
    if _never_fires(cron):
        raise _refused("/cron", f"{cron!r} never fires: no month that it names has such a day")
    try:
        following = next(times_after(schedule, datetime.now(UTC)), None)
    except (CronSimError, AssertionError, ValueError) as error:
        reason = str(error) or "it has no times"
        raise _refused("/cron", f"{cron!r} is no cron expression: {reason}; such as {_EXAMPLE}") from None
    if following is None:
        raise _refused("/cron", f"{cron!r} never fires in the next 50 years")


def times_after(schedule: Schedule, moment: datetime) -> Iterator[datetime]:
    """The times of a cron schedule after a moment, in UTC, in order. Raises CronSimError for an invalid expression."""
    cron, zone = schedule.cron, schedule.zone
    if cron is None:
        return
    place = ZoneInfo(DEFAULT_ZONE if zone is None else zone)
    # From before on, so that the second occurrence of an hour counts as after the first.
    start = (moment - _OVERLAP).astimezone(place)
    for each in CronSim(cron, start):
        time = each.astimezone(UTC)
        if time > moment:
            yield time


def next_times(schedule: Schedule, last_start: datetime | None, now: datetime, count: int) -> list[datetime]:
    """The next times at which a schedule starts a run, if there is something to export. `last_start`: the last run."""
    every = schedule.every_seconds
    if every is None:
        return list(islice(times_after(schedule, now), count))
    first = now if last_start is None else max(last_start + timedelta(seconds=every), now)
    return [first + timedelta(seconds=every * number) for number in range(count)]


def _never_fires(cron: str) -> bool:
    """Whether the days of the expression exist, but in none of its months, such as 30 February."""
    minute, hour, day, month, weekday = cron.split()
    parts = (f"{minute} {hour} {day} * {weekday}", f"{minute} {hour} * {month} {weekday}")
    return not _parses(cron) and all(_parses(each) for each in parts)


def _parses(cron: str) -> bool:
    try:
        CronSim(cron, datetime.now(UTC))
    except (CronSimError, AssertionError, ValueError):
        return False
    return True


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _refused(pointer: str, detail: str) -> InvalidRequest:
    return InvalidRequest(f"schedule: {detail}", [FieldError(pointer=f"/schedule{pointer}", detail=detail)])
