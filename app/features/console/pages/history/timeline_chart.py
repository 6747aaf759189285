"""The timeline as a chart: one shape an instant, by its kind and its state, from the earliest to the latest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from app.features.console.rendering import counted, instant_word

_WIDTH: Final = 1_200
_HEIGHT: Final = 84
_EDGE: Final = 24
_STEP_MAX: Final = 48.0
_Y: Final = 44
_R: Final = 6
_CHARACTER: Final = 7.5
_KINDS: Final = {
    "commit": "write",
    "compaction": "service",
    "clustering": "service",
    "clean": "service",
    "restore": "restore",
    "rollback": "restore",
    "schema": "schema",
    "savepoint": "name",
    "tag": "name",
}
SIGNS: Final = {
    "write": "●",
    "service": "◆",
    "restore": "▲",
    "failed": "○",
    "waiting": "◌",
    "schema": "│",
    "name": "⚑",
}
"""The sign of each kind, for texts."""
_SHAPES: Final = {
    "write": Markup('<circle cx="{x:.1f}" cy="44" r="6"/>'),
    "service": Markup('<path d="M{x:.1f} 36l8 8-8 8-8-8z"/>'),
    "restore": Markup('<path d="M{x:.1f} 36l8 14h-16z"/>'),
    "failed": Markup('<circle cx="{x:.1f}" cy="44" r="5.5" class="open"/>'),
    "waiting": Markup('<circle cx="{x:.1f}" cy="44" r="5.5" class="open dashed"/>'),
    "schema": Markup('<path d="M{x:.1f} 30v28" class="stroke"/>'),
    "name": Markup('<path d="M{x:.1f} 52v-18h9l-3 4 3 4h-9" class="flag"/>'),
}


def kind_of(instant: Mapping[str, Any]) -> str:
    """The kind by which an instant is drawn: what it does, or its state if it has failed or has not ended."""
    if instant["state"] == "rolled_back":
        return "failed"
    if instant["state"] != "completed":
        return "waiting"
    return _KINDS.get(instant["action"], "write")


def timeline_chart(
    instants: Sequence[Mapping[str, Any]],
    names: Mapping[int, Sequence[str]],
    *,
    current: str,
    link: Callable[[str], str],
) -> Markup:
    """`instants`: the latest first, as GET …/timeline has them. `names`: savepoints and tags by version.

    `current`: the id of the instant that is shown in full. `link`: the address that shows an instant.
    """
    from_earliest = list(reversed(instants))
    step = min(_STEP_MAX, (_WIDTH - 2 * _EDGE) / max(len(from_earliest) - 1, 1))
    places = [(_EDGE + number * step, each) for number, each in enumerate(from_earliest)]
    shapes = [_shape(x, each, current == each["id"], link(each["id"])) for x, each in places]
    label = (
        f"The latest {counted(len(from_earliest), 'instant')} in their order, from the earliest to the latest"
    )
    end = places[-1][0] + _EDGE if places else _WIDTH
    return Markup(
        '<svg class="timeline" width="{0:.0f}" viewBox="0 0 {0:.0f} {1}" role="group" aria-label="{2}">'
        '<line x1="0" y1="{3}" x2="{0:.1f}" y2="{3}"/>{4}{5}{6}</svg>'
    ).format(end, _HEIGHT, label, _Y, Markup("").join(shapes), _names(places, names), _versions(places))


def _shape(x: float, instant: Mapping[str, Any], current: bool, target: str) -> Markup:
    kind = kind_of(instant)
    version = "" if instant["version"] is None else f"v{instant['version']:,} "
    circle = Markup('<circle cx="{:.1f}" cy="44" r="12" class="current"/>').format(x) if current else ""
    # The list below has the same links, for those who use the keyboard.
    return Markup('<a href="{}" class="{}" tabindex="-1"><title>{}{} {}</title>{}{}</a>').format(
        target, kind, version, instant_word(instant), instant["state"], circle, _SHAPES[kind].format(x=x)
    )


def _names(places: Sequence[tuple[float, Mapping[str, Any]]], names: Mapping[int, Sequence[str]]) -> Markup:
    """The names of versions, above the instants that made them. One that would cover another is a flag alone."""
    marks, free = [], 0.0
    for x, instant in places:
        of_version = names.get(instant["version"] or -1, ())
        if not of_version or kind_of(instant) == "name":
            continue
        text = of_version[0][:18] + (f" +{len(of_version) - 1}" if len(of_version) > 1 else "")
        marks.append(
            Markup('<path d="M{:.1f} 34v-20h7l-2 3 2 3h-7" class="flag"><title>{}</title></path>').format(
                x, ", ".join(of_version)
            )
        )
        if x >= free and x + 10 + len(text) * _CHARACTER < _WIDTH:
            marks.append(Markup('<text x="{:.1f}" y="22">{}</text>').format(x + 10, text))
            free = x + 18 + len(text) * _CHARACTER
    return Markup("").join(marks)


def _versions(places: Sequence[tuple[float, Mapping[str, Any]]]) -> Markup:
    """The numbers of versions below their instants, as far as they do not cover each other."""
    texts, free = [], 0.0
    for x, instant in places:
        if instant["version"] is None or instant["action"] in ("savepoint", "tag"):
            continue
        text = f"v{instant['version']:,}"
        half = len(text) * _CHARACTER / 2
        if x - half >= free:
            texts.append(
                Markup('<text x="{:.1f}" y="76" text-anchor="middle">{}</text>').format(max(x, half), text)
            )
            free = x + half + 10
    return Markup("").join(texts)
