"""Charts as SVG, made on the server. A chart answers one question; a table of the same numbers stands behind it.

The policy of the pages forbids the attribute `style`: all looks come from attributes and classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

_WIDTH: Final = 240.0
_HEIGHT: Final = 48.0
_LABEL: Final = 60.0
_FOOT: Final = 14.0
# A chart of this width takes that of its place.
_WIDE: Final = 400.0


def bars(
    values: Sequence[float | None],
    *,
    label: str,
    last: str = "",
    width: float = _WIDTH,
    height: float = _HEIGHT,
    names: Sequence[str] = (),
    ends: tuple[str, str] | None = None,
) -> Markup:
    """A bar for each value, from 0. `label`: what it shows, for those who cannot see it. `last`: the text at its end.

    None is a value that is not known: there is no bar. `names`: what each bar shows on hover. `ends`: the texts below
    the first and the last bar.
    """
    top = max((value for value in values if value), default=0.0)
    step = width / max(len(values), 1)
    gap = 1.0 if step < 8 else 2.0
    shapes = Markup("").join(
        Markup('<rect{} x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="1">{}</rect>').format(
            Markup(' class="last"') if index == len(values) - 1 else "",
            index * step,
            height - _share(value, top, height),
            max(step - gap, 0.5),
            _share(value, top, height),
            Markup("<title>{}</title>").format(names[index]) if index < len(names) else "",
        )
        for index, value in enumerate(values)
        if value is not None
    )
    return _svg(shapes, label, last, width, height, ends)


def line(
    values: Sequence[float | None],
    *,
    label: str,
    last: str = "",
    width: float = _WIDTH,
    height: float = _HEIGHT,
    ends: tuple[str, str] | None = None,
) -> Markup:
    """A line through the values, from 0. Where a value is not known the line has a gap."""
    top = max((value for value in values if value), default=0.0)
    step = width / max(len(values) - 1, 1)
    points: list[str] = []
    runs: list[list[str]] = []
    for index, value in enumerate(values):
        if value is None:
            runs.append(points)
            points = []
        else:
            points.append(f"{index * step:.1f},{height - _share(value, top, height):.1f}")
    shapes = Markup("").join(
        Markup('<polyline points="{}"/>').format(" ".join(run)) for run in (*runs, points) if run
    )
    return _svg(shapes, label, last, width, height, ends)


def meter(value: float, whole: float, *, label: str) -> Markup:
    """How much of a whole is used, as one bar."""
    share = min(max(value / whole, 0.0), 1.0) if whole else 0.0
    return Markup(
        '<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="whole" width="100" height="6"/><rect width="{:.1f}" height="6"/></svg>'
    ).format(label, share * 100)


def _share(value: float | None, top: float, height: float) -> float:
    if not value or not top:
        return 0.0
    return max(height * value / top, 1.0)


def _svg(
    shapes: Markup, label: str, last: str, width: float, height: float, ends: tuple[str, str] | None
) -> Markup:
    texts = Markup("")
    if last:
        texts += Markup('<text class="value" x="{:.0f}" y="{:.0f}">{}</text>').format(
            width + 6, height - 2, last
        )
    if ends is not None:
        texts += Markup('<text class="end" x="0" y="{0:.0f}">{1}</text>').format(height + _FOOT - 2, ends[0])
        texts += Markup('<text class="end" x="{0:.0f}" y="{1:.0f}" text-anchor="end">{2}</text>').format(
            width, height + _FOOT - 2, ends[1]
        )
    return Markup(
        '<svg class="chart{}" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">'
        '<line x1="0" y1="{:.0f}" x2="{:.0f}" y2="{:.0f}"/>{}{}</svg>'
    ).format(
        " broad" if width >= _WIDE else "",
        width + (_LABEL if last else 0),
        height + (_FOOT if ends else 0),
        label,
        height,
        width,
        height,
        shapes,
        texts,
    )


CHARTS: Final[Mapping[str, Callable[..., Any]]] = {"bars": bars, "line_chart": line, "meter": meter}
"""What templates call, by name."""
