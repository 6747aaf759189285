"""Where a page of changes starts, and the changes from there on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.features.console.pages.feed.lines import has_op
from app.features.console.pages.feed.shared import (
    moment_of,
    number_option,
    rfc3339,
    shown_columns,
    shown_lines,
)
from app.features.console.pages.field_values import FieldFault
from app.features.console.visit import TOO_LARGE, ApiProblem, Visit, path_of

_VERSION: Final = re.compile(r"v(\d{1,18})", re.ASCII)
_OFFSET: Final = re.compile(r"\d{1,18}", re.ASCII)
_OPS: Final = ("", "added", "removed", "corrected")
_PAGE: Final = 5_000
_SMALL_PAGE: Final = 10
_SPAN: Final = 1_000
SPANS: Final = (1_000, 10_000, 100_000)
"""How many of the last changes a filter can search."""
_ROUNDS_MAX: Final = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedView:
    """What a page of changes shows: the options of its address."""

    dataset: str
    columns: Sequence[str]
    where: str
    op: str
    as_two: bool
    """Whether a correction is shown as two rows."""
    lines_max: int

    @property
    def selects(self) -> bool:
        """Whether changes are left out."""
        return bool(self.where or self.op)

    def options(self, keys: Sequence[str]) -> dict[str, Any]:
        """The options of a request. `keys`: the columns that links of rows need."""
        return {
            "where": self.where,
            "columns": list(dict.fromkeys([*self.columns, *keys])),
            "form": "two_event" if self.as_two else "single_event",
            "vocabulary": "standard",
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedPage:
    """Changes in the order of the feed."""

    changes: Sequence[Mapping[str, Any]]
    start: int
    """The position that the page was read from."""
    next_since: int
    pending: int
    earliest: int
    surplus: int = 0
    """How many earlier changes of the range match and are not shown."""

    @property
    def at_end(self) -> bool:
        """Whether all changes were read."""
        return self.pending == 0


def feed_view(visit: Visit, dataset: Mapping[str, Any]) -> FeedView:
    """What the address of the page requests. Raises FieldFault."""
    op = visit.query.get("op", "")
    if op not in _OPS:
        raise FieldFault("op", f"expected one of {', '.join(_OPS[1:])}")
    columns = shown_columns(visit, dataset)
    return FeedView(
        dataset=dataset["name"],
        columns=columns,
        where=visit.query.get("where", "").strip(),
        op=op,
        as_two=bool(visit.query.get("two")),
        lines_max=shown_lines(columns),
    )


def start_of(visit: Visit) -> dict[str, Any] | None:
    """The options of the start that a person has typed; None for the latest changes. Raises FieldFault."""
    text = visit.query.get("since", "").strip().replace(",", "")
    if text in ("", "now", "latest"):
        return None
    if text == "earliest" or _OFFSET.fullmatch(text):
        return {"since": text}
    if match := _VERSION.fullmatch(text):
        return {"since_version": match[1]}
    try:
        return {"since_time": rfc3339(moment_of(text, "since", visit.now))}
    except FieldFault:
        raise FieldFault(
            "since",
            "expected an offset (88120), a version (v1203), a time (2026-11-29 09:30, in UTC) or a span (10m)",
        ) from None


def span_of(visit: Visit) -> int:
    """How many of the last changes a filter searches: of a range of time, as many as it can. Raises FieldFault."""
    span = number_option(visit, "span") or (SPANS[-1] if visit.range else _SPAN)
    return min(max(span, 1), SPANS[-1])


async def read_from(visit: Visit, view: FeedView, start: Mapping[str, Any], keys: Sequence[str]) -> FeedPage:
    """Changes from a start on, as many as a page shows. Raises ApiProblem."""
    page = await _page(visit, view, keys, limit=view.lines_max, **start)
    changes = [each for each in page["changes"] if has_op(each, view.op)]
    begin = start.get("since")
    if begin is None or begin == "earliest":
        first = page["changes"][0]["offset"] if page["changes"] else page["next_since"]
        begin = page["earliest"] if begin == "earliest" else first
    return _feed_page(page, changes, int(begin))


async def read_latest(
    visit: Visit, view: FeedView, dataset: Mapping[str, Any], keys: Sequence[str], span: int
) -> FeedPage:
    """The latest changes, within the range of time: as many as a page shows; with a filter, those of the last `span`
    that match. Raises ApiProblem.
    """
    back = span if view.selects else view.lines_max
    start = max(dataset["next_offset"] - back, dataset["earliest_offset"], await _range_start(visit, view))
    return await read_after(visit, view, start, keys)


async def _range_start(visit: Visit, view: FeedView) -> int:
    """The offset at which the range of time begins; 0 without one, or if it begins before the feed."""
    if visit.since is None:
        return 0
    path = path_of("datasets", view.dataset, "changes")
    part = await visit.api.part(path, since_time=rfc3339(visit.since), limit=1)
    if part.problem is not None:
        if part.problem.code == "offset-expired":
            return 0
        raise part.problem
    changes = part.value["changes"]
    return int(changes[0]["offset"] if changes else part.value["next_since"])


async def read_after(
    visit: Visit, view: FeedView, start: int, keys: Sequence[str], **options: Any
) -> FeedPage:
    """All changes from an offset to the end, of which the latest are kept."""
    since, changes, count = start, list[Mapping[str, Any]](), 0
    limit = _PAGE
    for _ in range(_ROUNDS_MAX):
        try:
            page = await _page(visit, view, keys, since=since, limit=limit, **options)
        except ApiProblem as problem:
            if problem.status != TOO_LARGE or limit <= _SMALL_PAGE:
                raise
            limit = max(limit // 8, _SMALL_PAGE)
            continue
        matches = [each for each in page["changes"] if has_op(each, view.op)]
        count += len(matches)
        changes = [*changes, *matches][-view.lines_max :]
        since, options = page["next_since"], {}
        if not page["pending"]:
            break
    return _feed_page(page, changes, start, surplus=count - len(changes))


async def _page(visit: Visit, view: FeedView, keys: Sequence[str], **options: Any) -> Any:
    path = path_of("datasets", view.dataset, "changes")
    return await visit.api.get(path, **options, **view.options(keys))


def _feed_page(
    page: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], start: int, *, surplus: int = 0
) -> FeedPage:
    return FeedPage(
        changes=changes,
        start=start,
        next_since=page["next_since"],
        pending=page["pending"],
        earliest=page["earliest"],
        surplus=surplus,
    )
