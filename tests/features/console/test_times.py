"""Times on pages of the console."""

from __future__ import annotations

from datetime import UTC, datetime

from app.features.console.rendering import age, moment

NOW = datetime(2026, 11, 29, 12, 25, tzinfo=UTC)


def test_age_is_a_duration_and_a_moment_is_a_distance() -> None:
    assert ">25 min<" in age("2026-11-29T12:00:00Z", NOW)
    assert ">25 min ago<" in moment("2026-11-29T12:00:00Z", NOW)
    # The clock of another machine may be ahead.
    assert ">0 ms<" in age("2026-11-29T12:25:01Z", NOW)
