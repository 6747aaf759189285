"""The times of cron schedules: in their zone, where clocks change, and what is no schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from app.features.exports.schedules import check_schedule, next_times, times_after
from app.features.exports.values import Schedule
from app.kernel.format.errors import InvalidRequest

BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(cron: str, moment: str, count: int, zone: str = BERLIN) -> list[str]:
    found = islice(times_after(Schedule(cron=cron, zone=zone), at(moment)), count)
    return [each.strftime("%m-%dT%H:%M") for each in found]


def test_times_are_those_of_the_zone() -> None:
    # From Friday on: the weekend is left out.
    assert times("0 6 * * 1-5", "2026-07-03T03:59", 3) == ["07-03T04:00", "07-06T04:00", "07-07T04:00"]
    assert times("0 6 * * 1-5", "2026-01-02T04:59", 2) == ["01-02T05:00", "01-05T05:00"]
    assert times("30 18 * * *", "2026-07-03T00:00", 1, "Asia/Kolkata") == ["07-03T13:00"]
    utc = times_after(Schedule(cron="0 6 * * *"), at("2026-07-03T06:00"))
    assert next(utc) == at("2026-07-04T06:00")


def test_time_in_the_gap_is_the_first_minute_after_it() -> None:
    # At 02:00 of 29 March clocks go to 03:00, which is 01:00 in UTC.
    assert times("30 2 * * *", "2026-03-28T02:00", 3) == ["03-29T01:00", "03-30T00:30", "03-31T00:30"]
    assert times("*/30 2 * * *", "2026-03-28T02:00", 2) == ["03-30T00:00", "03-30T00:30"]
    assert times("0 * * * *", "2026-03-28T23:30", 3) == ["03-29T00:00", "03-29T01:00", "03-29T02:00"]


def test_time_of_day_that_occurs_twice_counts_once() -> None:
    # At 03:00 of 25 October clocks go back to 02:00.
    assert times("30 2 * * *", "2026-10-24T12:00", 2) == ["10-25T00:30", "10-26T01:30"]
    # Between the two occurrences, and at the second.
    for moment in ("2026-10-25T00:30", "2026-10-25T00:45", "2026-10-25T01:30", "2026-10-25T01:40"):
        assert times("30 2 * * *", moment, 1) == ["10-26T01:30"], moment
    assert times("*/30 2 * * *", "2026-10-24T12:00", 4) == [
        "10-25T00:00", "10-25T00:30", "10-25T01:00", "10-25T01:30",
    ]  # fmt: skip
    assert times("0 * * * *", "2026-10-24T23:30", 3) == ["10-25T00:00", "10-25T01:00", "10-25T02:00"]


@pytest.mark.parametrize("cron", ["0 6 * * 1-5", "*/7 * * * *", "15 2 * * *", "0 0 29 2 *", "59 23 L * *"])
@pytest.mark.parametrize("zone", ["UTC", BERLIN, "Australia/Lord_Howe", "America/St_Johns"])
def test_times_are_after_the_moment_and_increase(cron: str, zone: str) -> None:
    schedule = Schedule(cron=cron, zone=zone)
    moment = at("2026-03-28T00:00")
    for _ in range(40):
        following = next(times_after(schedule, moment))
        assert following > moment
        moment = following
    expected = list(islice(times_after(schedule, at("2026-03-28T00:00")), 40))
    assert expected[-1] == moment


def test_next_times_of_an_interval_begin_with_the_last_run() -> None:
    schedule, now = Schedule(every_seconds=60), at("2026-07-03T06:00")
    began = now - timedelta(seconds=40)
    assert next_times(schedule, began, now, 2) == [now + timedelta(seconds=20), now + timedelta(seconds=80)]
    assert next_times(schedule, None, now, 1) == [now]
    assert next_times(schedule, now - timedelta(days=1), now, 1) == [now]


@pytest.mark.parametrize(
    "cron", ["1#2/2 * * * *", "0 6 * * L", "0 6 * * 1#9", "x * * * *", "0 6 0 * *", "*/0 * * * *"]
)
def test_what_is_no_expression_is_refused(cron: str) -> None:
    with pytest.raises(InvalidRequest, match="is no cron expression"):
        check_schedule(Schedule(cron=cron))


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 31 4,6 *", "15 6 30,31 FEB *"])
def test_days_that_no_month_has_are_refused(cron: str) -> None:
    with pytest.raises(InvalidRequest, match="never fires"):
        check_schedule(Schedule(cron=cron))
    # With a weekday beside, the expression has times.
    check_schedule(Schedule(cron=cron.removesuffix("*") + "1"))


def test_zone_that_is_not_known_is_refused_with_a_similar_one() -> None:
    with pytest.raises(InvalidRequest, match="did you mean 'Europe/Berlin'"):
        check_schedule(Schedule(cron="0 6 * * *", zone="Europe/Berln"))
    for zone in ("../etc/passwd", "", "Berlin\0"):
        with pytest.raises(InvalidRequest, match="there is no time zone"):
            check_schedule(Schedule(cron="0 6 * * *", zone=zone))
