"""Changes as lines of a page: one for each change, or for a correction as a whole; grouped by version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from app.features.console.pages.feed.shared import key_text, short
from app.features.console.visit import ApiProblem, PagePart, Visit, path_of, together

_RANGE_MAX: Final = 500
_SINGLE_MAX: Final = 20
_INSTANTS: Final = 1_000
_OLD_CHARACTERS: Final = 32
_OPS: Final = {"+A": "added", "-R": "removed", "U": "corrected", "-C": "corrected", "+C": "corrected"}


class LineCell(NamedTuple):
    """A value of a change."""

    column: str
    value: Any
    old: Any
    """The value before, if it is another one."""
    differs: bool
    """Whether the change gave it another value."""


class FeedLine(NamedTuple):
    """A change, or a correction as a whole."""

    offset: int
    version: int
    time: str
    op: str
    """`+A`, `-R`, `-C` or `+C`; empty for a correction as a whole."""
    cells: Sequence[LineCell]
    key: str | None
    """The key in the form of `/rows/{key}`; None without one."""
    corrects: int | None
    """The offset of the change that this one corrects."""


class VersionLines(NamedTuple):
    """The lines of a version, the latest first, and what made it."""

    version: int
    time: str
    lines: Sequence[FeedLine]
    instants: Sequence[Mapping[str, Any]]
    """Entries of the timeline; empty if they are not known."""


def feed_lines(
    dataset: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> list[FeedLine]:
    """A line for each change, in their order."""
    return [_line(dataset, change, columns) for change in changes]


def has_op(change: Mapping[str, Any], word: str) -> bool:
    """Whether the change is of this kind: `added`, `removed`, `corrected`; any for an empty word."""
    return not word or _OPS[change["op"]] == word


def by_version(
    lines: Sequence[FeedLine], instants: Mapping[int, Sequence[Mapping[str, Any]]]
) -> list[VersionLines]:
    """The lines by version, the latest version and the latest line first."""
    versions: dict[int, list[FeedLine]] = {}
    for line in reversed(lines):
        versions.setdefault(line.version, []).append(line)
    return [
        VersionLines(version, each[0].time, each, instants.get(version, ()))
        for version, each in versions.items()
    ]


async def instants_of(visit: Visit, dataset: str, versions: Sequence[int]) -> PagePart:
    """What made these versions: lists of entries of the timeline by version. Of few far apart, the latest ones."""
    path = path_of("datasets", dataset, "timeline")
    newest = sorted(set(versions), reverse=True)
    if not newest:
        return PagePart({})
    try:
        if newest[0] - newest[-1] < _RANGE_MAX:
            pages = [
                await visit.api.get(path, from_version=newest[-1], to_version=newest[0], page_size=_INSTANTS)
            ]
        else:
            pages = await together(*(visit.api.get(path, version=each) for each in newest[:_SINGLE_MAX]))
    except ApiProblem as problem:
        return PagePart({}, problem)
    origins: dict[int, list[Mapping[str, Any]]] = {}
    for page in pages:
        for instant in page["items"]:
            # A savepoint or a tag names a version, and does not make it.
            if instant["action"] not in ("savepoint", "tag"):
                origins.setdefault(instant["version"], []).append(with_seconds(instant))
    return PagePart(origins)


def with_seconds(instant: Mapping[str, Any]) -> Mapping[str, Any]:
    """An entry of the timeline with `seconds`, from the request to its end; None before it."""
    seconds = None
    if instant["completed_at"]:
        begin, end = (datetime.fromisoformat(instant[name]) for name in ("requested_at", "completed_at"))
        seconds = (end - begin).total_seconds()
    return {**instant, "seconds": seconds}


def _line(dataset: Mapping[str, Any], change: Mapping[str, Any], columns: Sequence[str]) -> FeedLine:
    row, before = change["row"], change.get("before")
    whole = change["op"] == "U"
    cells = [
        LineCell(
            name,
            short(row.get(name)),
            None if before is None else short(before.get(name), _OLD_CHARACTERS),
            before is not None and before.get(name) != row.get(name),
        )
        for name in columns
    ]
    return FeedLine(
        offset=change["offset"],
        version=change["version"],
        time=change["system_time"],
        op="" if whole else change["op"],
        cells=cells,
        key=key_text(dataset, row),
        corrects=change["corrects_offset"],
    )
