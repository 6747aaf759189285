"""Periods of automatic tags: where they end and what they are called, also around New Year and in leap years."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.features.versions.service.tag_policy import beginning, end, ended, name_of, outlived
from app.kernel.format.policies import TagPeriod

HOUR, DAY, WEEK, MONTH = TagPeriod.HOUR, TagPeriod.DAY, TagPeriod.WEEK, TagPeriod.MONTH

FIRST, LAST = datetime(1990, 1, 1), datetime(2090, 1, 1)  # noqa: DTZ001 - Hypothesis wants them so


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "moment", "name", "begins", "ends"),
    [
        (HOUR, "2026-11-22T05:17:09.5", "2026-11-22T05", "2026-11-22T05:00", "2026-11-22T06:00"),
        (HOUR, "2026-12-31T23:00", "2026-12-31T23", "2026-12-31T23:00", "2027-01-01T00:00"),
        (DAY, "2026-11-22T00:00", "2026-11-22", "2026-11-22", "2026-11-23"),
        (DAY, "2024-02-28T23:59:59.999999", "2024-02-28", "2024-02-28", "2024-02-29"),
        (DAY, "2024-02-29T12:00", "2024-02-29", "2024-02-29", "2024-03-01"),
        (DAY, "2023-02-28T12:00", "2023-02-28", "2023-02-28", "2023-03-01"),
        (WEEK, "2026-11-22T05:00", "2026-W47", "2026-11-16", "2026-11-23"),
        (WEEK, "2026-11-23T00:00", "2026-W48", "2026-11-23", "2026-11-30"),
        # Weeks belong to the year that most of their days are in.
        (WEEK, "2027-01-03T23:59", "2026-W53", "2026-12-28", "2027-01-04"),
        (WEEK, "2027-01-04T00:00", "2027-W01", "2027-01-04", "2027-01-11"),
        (WEEK, "2024-12-30T00:00", "2025-W01", "2024-12-30", "2025-01-06"),
        (WEEK, "2021-01-01T00:00", "2020-W53", "2020-12-28", "2021-01-04"),
        (MONTH, "2026-11-30T23:59:59", "2026-11", "2026-11-01", "2026-12-01"),
        (MONTH, "2026-12-01T00:00", "2026-12", "2026-12-01", "2027-01-01"),
        (MONTH, "2024-02-29T10:00", "2024-02", "2024-02-01", "2024-03-01"),
        (MONTH, "2023-01-31T10:00", "2023-01", "2023-01-01", "2023-02-01"),
    ],
)
def test_period_has_its_name_begin_and_end(
    period: TagPeriod, moment: str, name: str, begins: str, ends: str
) -> None:
    assert name_of(period, at(moment)) == name
    assert beginning(period, at(moment)) == at(begins)
    assert end(period, at(moment)) == at(ends)


def test_periods_are_in_utc() -> None:
    somewhere = datetime(2026, 11, 22, 1, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert name_of(DAY, somewhere) == "2026-11-21"
    assert name_of(HOUR, somewhere) == "2026-11-21T20"


@given(
    st.sampled_from(TagPeriod),
    st.datetimes(min_value=FIRST, max_value=LAST),
    st.integers(0, 60),
)
def test_periods_are_contiguous_and_their_names_sort_in_time(
    period: TagPeriod, moment: datetime, count: int
) -> None:
    moment = moment.replace(tzinfo=UTC)
    now, names, ends = moment, [name_of(period, moment)], []
    for _ in range(count):
        ends.append(end(period, now))
        assert beginning(period, now) <= now < ends[-1]
        now = ends[-1]
        assert beginning(period, now) == now
        names.append(name_of(period, now))
    assert len(set(names)) == count + 1
    assert names == sorted(names)
    assert ended(period, moment, now, 100) == ends
    assert ended(period, moment, now, 3) == ends[-3:]
    assert ended(period, now, moment, 100) == [], "nothing ends while a clock goes back"
    assert outlived(period, names[::-1], 7) == names[:-7]


def test_only_names_of_the_period_are_expired() -> None:
    names = [
        "2026-11",
        "2026-12",
        "2026-11-22",
        "2026-W47",
        "2026-11-22T05",
        "2026-10",
        "release",
        "2026-101",
    ]
    assert outlived(MONTH, names, 1) == ["2026-10", "2026-11"]
    assert outlived(DAY, names, 1) == []
    assert outlived(WEEK, names, 1) == []
