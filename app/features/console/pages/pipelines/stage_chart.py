"""What the stages of a job took, as SVG: one bar for a list, and one row a stage for the page of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from markupsafe import Markup

from app.features.console.rendering import duration

_ORDER: Final = ("wait", "claim", "decode", "plan", "merge", "commit")
"""The stages between the acceptance of a job and its end, as they follow one another."""
_OPACITIES: Final = {"wait": 0.25, "claim": 0.4, "decode": 0.55, "plan": 0.7, "merge": 0.85, "commit": 1.0}
_REST: Final = "work"
"""The time that belongs to no stage: all of it, for kinds of jobs that do not report stages."""
_REST_OPACITY: Final = 0.55
_LABEL: Final = 70
_WIDTH: Final = 320
_ROW: Final = 20
_MILLISECONDS: Final = 1_000


class StageSpan(NamedTuple):
    """A stage: when it began after the acceptance of its job, and how long it took, in milliseconds."""

    name: str
    begin: int
    length: int


def stage_spans(timings: Mapping[str, int]) -> list[StageSpan]:
    """The stages of a job, one after another. What `total` has beyond them is the stage `work`."""
    spans: list[StageSpan] = []
    begin = 0
    for name in _ORDER:
        if name in timings:
            spans.append(StageSpan(name, begin, timings[name]))
            begin += timings[name]
    rest = timings.get("total", 0) - begin
    if rest > 0:
        spans.append(StageSpan(_REST, begin, rest))
    return spans


def stage_bar(timings: Mapping[str, int]) -> Markup:
    """All stages as one bar, each as long as its share; empty if nothing is known."""
    spans = stage_spans(timings)
    whole = sum(span.length for span in spans)
    if not whole:
        return Markup("")
    shapes = Markup("").join(
        Markup('<rect x="{:.1f}" width="{:.1f}" height="6" fill-opacity="{}"/>').format(
            100 * span.begin / whole, max(100 * span.length / whole, 0.5), _opacity(span)
        )
        for span in spans
        if span.length
    )
    return Markup(
        '<svg class="meter stages" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>"
    ).format(_words(spans), _words(spans), shapes)


def stage_chart(timings: Mapping[str, int]) -> Markup:
    """One row a stage, from the acceptance of the job on; empty if nothing is known."""
    spans = stage_spans(timings)
    whole = max((span.begin + span.length for span in spans), default=0)
    if not whole:
        return Markup("")
    rows = Markup("").join(
        Markup(
            '<text x="0" y="{:.0f}">{}</text>'
            '<rect x="{:.1f}" y="{:.0f}" width="{:.1f}" height="12" fill-opacity="{}"/>'
            '<text x="{:.1f}" y="{:.0f}">{}</text>'
        ).format(
            _ROW * row + 14,
            span.name,
            _LABEL + _WIDTH * span.begin / whole,
            _ROW * row + 4,
            max(_WIDTH * span.length / whole, 1.0),
            _opacity(span),
            _LABEL + _WIDTH * (span.begin + span.length) / whole + 6,
            _ROW * row + 14,
            duration(span.length / _MILLISECONDS),
        )
        for row, span in enumerate(spans)
    )
    return Markup('<svg class="chart stages" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _LABEL + _WIDTH + 80, _ROW * len(spans) + 4, _words(spans), rows
    )


def _opacity(span: StageSpan) -> float:
    return _OPACITIES.get(span.name, _REST_OPACITY)


def _words(spans: list[StageSpan]) -> str:
    return ", ".join(f"{span.name} {duration(span.length / _MILLISECONDS)}" for span in spans)
