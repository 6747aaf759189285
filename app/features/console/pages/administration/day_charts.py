"""Usage by day as charts: one for each number, with the days on which nothing was used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

_OF_WRITES: Final = (
    ("rows_written", "Rows written", "number"),
    ("bytes_written", "Bytes written", "bytes"),
    ("changes", "Changes in feeds", "number"),
    ("job_seconds", "Time of jobs", "seconds"),
    ("stored_bytes", "Bytes stored", "bytes"),
)
_OF_REQUESTS: Final = (("requests", "Requests", "number"), ("egress_bytes", "Bytes sent", "bytes"))
_CHARTS: Final = (*_OF_WRITES, *_OF_REQUESTS)
NUMBERS: Final = tuple(name for name, _, _ in _CHARTS)
"""The numbers that items of usage have, or null."""


class DayChart(NamedTuple):
    """A number by day. `unit`: `number`, `bytes` or `seconds`. A day on which it is not known has None."""

    name: str
    title: str
    unit: str
    days: list[date]
    values: list[float | None]

    @property
    def total(self) -> float:
        """The sum; of what is stored, the last value."""
        if self.name == "stored_bytes":
            return next((value for value in reversed(self.values) if value is not None), 0)
        return sum(value or 0 for value in self.values)


def by_day(items: Iterable[Mapping[str, Any]], last: date, *, days: int) -> list[DayChart]:
    """The charts of the numbers that the items of usage have, for the days up to the last one."""
    dates = [last - timedelta(days=number) for number in reversed(range(days))]
    sums: dict[str, dict[date, float]] = {}
    for item in items:
        day = date.fromisoformat(item["day"])
        for name in NUMBERS:
            if (value := item[name]) is not None:
                of_name = sums.setdefault(name, {})
                of_name[day] = of_name.get(day, 0) + value
    charts = []
    for name, title, unit in _CHARTS:
        if name in sums:
            # A sample that was not made is not zero bytes.
            other = None if name == "stored_bytes" else 0
            values = [sums[name].get(day, other) for day in dates]
            charts.append(DayChart(name, title, unit, dates, values))
    return charts
