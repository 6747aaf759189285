"""The rule of watermarks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.commit.watermarks import is_late, latest, least, watermark_of, watermark_text

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
TYPES = [pa.timestamp("ms", tz="UTC"), pa.timestamp("us", tz="UTC"), pa.timestamp("us")]


def times(kind: pa.DataType, *values: datetime | date | None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_row_is_late_before_the_watermark_and_not_at_it(kind: pa.DataType) -> None:
    zone = UTC if kind.tz else None
    values = [(NOON + timedelta(milliseconds=step)).replace(tzinfo=zone) for step in (-1, 0, 1)]
    assert is_late(times(kind, *values, None), NOON).tolist() == [True, False, False, False]
    assert is_late(times(kind, *values), None).tolist() == [False, False, False]


@pytest.mark.parametrize(
    "moment", [NOON, NOON.replace(microsecond=120_000), NOON.astimezone(timezone(timedelta(hours=5)))]
)
def test_text_of_a_watermark_is_that_of_other_times_of_the_api(moment: datetime) -> None:
    text = watermark_text(moment)
    assert text == msgspec.json.decode(msgspec.json.encode(moment.astimezone(UTC)))
    assert text.endswith("Z")
    assert datetime.fromisoformat(text) == moment


def test_date_is_late_unless_it_begins_at_the_watermark_or_later() -> None:
    days = times(pa.date32(), date(2026, 11, 22), date(2026, 11, 23), date(2026, 11, 24))
    assert is_late(days, NOON).tolist() == [True, True, False]
    assert is_late(days, NOON.replace(hour=0)).tolist() == [True, False, False]


def test_watermark_is_the_greatest_event_time_less_the_delay() -> None:
    kind = pa.timestamp("ms", tz="UTC")
    assert watermark_of(times(kind, NOON, None, NOON - timedelta(hours=1)), 60) == NOON - timedelta(minutes=1)
    assert watermark_of(times(pa.date32(), date(2026, 11, 23)), 0) == NOON.replace(hour=0)
    assert watermark_of(times(kind, None), 60) is None
    assert watermark_of(times(kind), 60) is None


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(TYPES))
def test_every_event_time_has_a_watermark_that_can_be_written(value: int, kind: pa.DataType) -> None:
    found = watermark_of(pa.chunked_array([pa.array([value], pa.int64()).cast(kind)]), 10)
    assert found is not None
    assert 1 <= found.year <= 9999


def test_watermark_never_goes_back_and_that_of_several_feeds_is_the_least() -> None:
    later = NOON + timedelta(seconds=1)
    assert latest([None, later, NOON]) == later
    assert latest([]) is None
    assert least([later, NOON]) == NOON
    assert least([later, None]) is None
    assert least([]) is None
