"""The feed of a dataset: the latest changes and each new one, or those from a position on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.feed.lines import VersionLines, by_version, feed_lines, instants_of
from app.features.console.pages.feed.positions import (
    SPANS,
    FeedPage,
    FeedView,
    feed_view,
    read_after,
    read_from,
    read_latest,
    span_of,
    start_of,
)
from app.features.console.pages.feed.shared import (
    column_names,
    console_path,
    key_columns,
    number_columns,
    number_option,
    problem_fields,
)
from app.features.console.pages.field_values import FieldFault
from app.features.console.visit import ApiProblem, Visit, path_of

_WAIT_SECONDS: Final = 25
_BEHIND_MAX: Final = 2_000


async def _read(visit: Visit) -> Context:
    frame = await dataset_frame(visit)
    dataset = frame["dataset"]
    context: dict[str, Any] = {
        **frame,
        **_shared(visit, dataset),
        "tab": "Changes",
        "names": column_names(dataset),
        "faults": {},
        "fault": None,
        "page": None,
        "view": None,
        "span": SPANS[0],
        "longer_span": None,
    }
    try:
        view, start, span = feed_view(visit, dataset), start_of(visit), span_of(visit)
    except FieldFault as fault:
        return {**context, "faults": problem_fields(fault)}
    context |= {"view": view, "span": span}
    keys = key_columns(dataset)
    try:
        if start is None:
            page = await read_latest(visit, view, dataset, keys, span)
        else:
            page = await read_from(visit, view, start, keys)
    except ApiProblem as problem:
        return {**context, "faults": _faults(problem), "fault": problem}
    longer = next((each for each in SPANS if each > span), None)
    searched_all = page.start <= page.earliest or start is not None or not view.selects
    return {
        **context,
        "page": page,
        "older": max(page.start - view.lines_max, page.earliest) if page.start > page.earliest else None,
        "longer_span": None if searched_all else longer,
        "live": _live(visit, dataset, page) if page.at_end else "",
        **await _versions(visit, dataset, page, view),
    }


async def _read_more(visit: Visit) -> Context:
    """A part of the page for its script: the changes since a position, for which it waits."""
    dataset = await visit.api.get(path_of("datasets", visit.variables["dataset"]))
    view, since, seconds = (
        feed_view(visit, dataset),
        number_option(visit, "since"),
        number_option(visit, "wait"),
    )
    seconds = _WAIT_SECONDS if seconds is None else min(seconds, _WAIT_SECONDS)
    wait = {"feed": "longpoll", "timeout": seconds}
    end = dataset["next_offset"]
    since = end if since is None else since
    # After a long pause the changes between are counted and not read.
    start = max(since, end - _BEHIND_MAX) if not view.selects else since
    page = await read_after(visit, view, start, key_columns(dataset), **wait)
    if page.next_since > end:
        # It was read before the wait: the page shows the version of now.
        dataset = await visit.api.get(path_of("datasets", dataset["name"]))
    versions = await _versions(visit, dataset, page, view)
    surplus = page.surplus + start - since
    return {
        **_shared(visit, dataset),
        **versions,
        "page": page,
        "view": view,
        "since": since,
        "surplus": surplus,
        "count": len(page.changes) + surplus,
    }


def _shared(visit: Visit, dataset: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "base": console_path(dataset),
        "numbers": number_columns(dataset),
        "keys": frozenset(key_columns(dataset)),
        "may_undo": visit.may("manage"),
    }


async def _versions(
    visit: Visit, dataset: Mapping[str, Any], page: FeedPage, view: FeedView
) -> dict[str, Any]:
    lines = feed_lines(dataset, page.changes, view.columns)
    instants = await instants_of(visit, dataset["name"], [line.version for line in lines])
    versions: Sequence[VersionLines] = by_version(lines, instants.value)
    return {
        "versions": versions,
        "writers": instants,
        # A table without a key that only grows needs neither signs nor corrections.
        "has_ops": bool(dataset["record_key"]) or any(line.op != "+A" for line in lines),
        "newest": page.at_end and versions[0].version if versions else None,
    }


def _live(visit: Visit, dataset: Mapping[str, Any], page: FeedPage) -> str:
    """The address of the part with the changes after this page."""
    options = {name: visit.query.get(name) or None for name in ("where", "op", "columns", "two")}
    return visit.link(console_path(dataset, "changes", "more"), since=str(page.next_since), **options)


def _faults(problem: ApiProblem) -> dict[str, str]:
    if problem.code in ("offset-ahead", "offset-expired"):
        return {"since": str(problem.members.get("detail", ""))}
    return {
        "since" if name.startswith("since") else name: text for name, text in problem_fields(problem).items()
    }


PAGES: Final = (
    ConsolePage(path="/datasets/{dataset:str}/changes", template="changes.html", read=_read),
    ConsolePage(path="/datasets/{dataset:str}/changes/more", template="changes_more.html", read=_read_more),
)
