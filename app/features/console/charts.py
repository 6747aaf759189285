"""Charts as SVG, made on the server. A chart answers one question; a table of the same numbers stands behind it.

The policy of the pages forbids the attribute `style`: all looks come from attributes and classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

_WIDTH: Final = 560.0


def bars(
    values: Sequence[float | None],
    *,
    label: str,
    height: float,
    names: Sequence[str] = (),
) -> Markup:
    """A bar for each value, from 0, as wide as its place. `label`: what it shows, for those who cannot see it.

    None is a value that is not known: there is no bar. `names`: what each bar shows on hover. `height`: of a width of
    560.
    """
    top = max((value for value in values if value), default=0.0)
    step = _WIDTH / max(len(values), 1)
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
    return Markup(
        '<svg class="chart" viewBox="0 0 {0:.0f} {1:.0f}" role="img" aria-label="{2}">'
        '<line x1="0" y1="{1:.0f}" x2="{0:.0f}" y2="{1:.0f}"/>{3}</svg>'
    ).format(_WIDTH, height, label, shapes)


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


CHARTS: Final[Mapping[str, Callable[..., Any]]] = {"bars": bars, "meter": meter}
"""What templates call, by name."""
