"""The hours whose writes pages show as charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from app.features.console.visit import PagePart, Visit

_STANDARD: Final = 24
_KEPT: Final = 192
"""The hours that `GET /overview/hours` has at most."""
_BARS_MAX: Final = 48


def hours_of(visit: Visit) -> int:
    """How many of the last hours the range of time of a page has, the current one included. Raises ApiProblem."""
    if visit.span is None:
        return _STANDARD
    # Fewer bars than this are no chart.
    return min(max(visit.span // timedelta(hours=1), 2), _KEPT)


def hour_bars(hours: PagePart) -> PagePart:
    """The hours of GET /overview/hours as the `items` of a chart, of which each is `size` hours; `count`: of all."""
    if hours.problem is not None:
        return hours
    items: Sequence[Mapping[str, Any]] = hours.value["items"]
    size = max(-(-len(items) // _BARS_MAX), 1)
    # The last bar has all of its hours, the first one may have fewer.
    ends = range(len(items), 0, -size)
    bars = [_sum(items[max(end - size, 0) : end]) for end in reversed(ends)]
    return PagePart({"items": bars, "size": size, "count": len(items)})


def _sum(hours: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {
        "hour": hours[0]["hour"],
        **{name: sum(each[name] for each in hours) for name in ("writes", "rows_in")},
    }
