"""One row: what it is now or was at a time, and each change that made it so, with who wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import unquote

from app.features.console.inner_requests import EncodedPath
from app.features.console.page import ConsolePage, Context
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.feed.lines import FeedLine, feed_lines, instants_of
from app.features.console.pages.feed.shared import (
    column_names,
    console_path,
    key_columns,
    key_condition,
    number_columns,
    problem_fields,
    row_path,
    shown_columns,
    unnamed_key,
    version_or_time,
)
from app.features.console.pages.field_values import FieldFault
from app.features.console.visit import ApiProblem, PagePart, Visit, path_of

_HISTORY: Final = 1_000
_ROUNDS_MAX: Final = 20
_LINES: Final = 100
_HALF_A_DAY: Final = 12


async def _read(visit: Visit) -> Context:
    frame = await dataset_frame(visit)
    dataset = frame["dataset"]
    text = visit.query.get("key", "")
    columns = shown_columns(visit, dataset)
    key_values = [unquote(part) for part in text.split(",")]
    noon = visit.now.replace(hour=_HALF_A_DAY, minute=0, second=0, microsecond=0) - timedelta(days=1)
    context: dict[str, Any] = {
        **frame,
        "tab": "Rows",
        "base": console_path(dataset),
        "key": text,
        "key_names": dataset["record_key"],
        "key_values": key_values,
        "title": ", ".join(each if each.strip() else f'"{each}"' for each in key_values),
        "columns": columns,
        "names": column_names(dataset),
        "numbers": number_columns(dataset),
        "keys": frozenset(key_columns(dataset)),
        "noon": noon.strftime("%Y-%m-%d %H:%M"),
        "faults": {},
        "fault": None,
        "at": "",
        "state": None,
        "history": PagePart(),
        "lines": (),
        "writers": PagePart({}),
        "last": None,
        "complete": True,
        "earlier": 0,
    }
    if "key" not in visit.query or not dataset["record_key"]:
        return context
    try:
        options = version_or_time(visit)
    except FieldFault as fault:
        return {**context, "faults": problem_fields(fault)}
    context["at"] = options["as_of"] or ""
    try:
        state = await _state(visit, dataset, text, options)
        changes, complete = await _history(visit, dataset, text)
    except ApiProblem as problem:
        faults = {{"as_of": "at"}.get(name, name): detail for name, detail in problem_fields(problem).items()}
        return {**context, "faults": faults, "fault": problem}
    lines = list(reversed(feed_lines(dataset, _joined(changes), columns)))
    writers = await instants_of(visit, dataset["name"], [line.version for line in lines[:_LINES]])
    return {
        **context,
        "state": state,
        "lines": lines[:_LINES],
        "earlier": max(len(lines) - _LINES, 0),
        "writers": writers,
        "last": _last(lines, state),
        "last_row": changes[-1]["row"] if changes else None,
        "complete": complete,
    }


async def _state(
    visit: Visit, dataset: Mapping[str, Any], text: str, options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The row at a version: `row`, which is None without one, and the version that was `read`. Raises ApiProblem."""
    if (key := unnamed_key(dataset, text)) is not None:
        return await _by_lookup(visit, dataset, key, options)
    try:
        response = await visit.api.response("GET", row_path(dataset["name"], text), options=options)
    except ApiProblem as problem:
        if problem.code != "row-not-found":
            raise
        return {
            "row": None,
            "version": None,
            "read": problem.members["version"],
            "detail": problem.members["detail"],
        }
    return {**await visit.api.decoded(response), "read": int(response.headers["headwater-version"])}


async def _by_lookup(
    visit: Visit, dataset: Mapping[str, Any], key: Mapping[str, Any], options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """As `_state`, by the request that finds rows of any keys."""
    body = {"keys": [key], **{name: value for name, value in options.items() if value is not None}}
    response = await visit.api.send("POST", path_of("datasets", dataset["name"], "rows", "lookup"), body)
    [item] = response["items"]
    return {"row": item["row"], "version": item["version"], "read": response["version"], "detail": ""}


async def _history(
    visit: Visit, dataset: Mapping[str, Any], text: str
) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """All changes of the key that are kept, and whether these are all. Raises ApiProblem."""
    changes: list[Mapping[str, Any]] = []
    since: Any = "earliest"
    if dataset["changelog"]["producer"] == "none":
        return changes, True
    path, options = _history_request(dataset, text)
    for _ in range(_ROUNDS_MAX):
        page = await visit.api.get(path, limit=_HISTORY, since=since, **options)
        changes += page["changes"]
        if page.get("complete") or page.get("pending") == 0:
            return changes, True
        since = page["next_since"]
    return changes, False


def _history_request(dataset: Mapping[str, Any], text: str) -> tuple[EncodedPath, Mapping[str, Any]]:
    """The path and the options with which the changes of a key are read."""
    if unnamed_key(dataset, text) is not None:
        options = {"where": key_condition(dataset, text), "form": "two_event", "vocabulary": "standard"}
        return path_of("datasets", dataset["name"], "changes"), options
    # A history has all columns, and the row itself was read already.
    return row_path(dataset["name"], text), {"history": True, "columns": key_columns(dataset)[0]}


def _joined(changes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The changes, with a `-C` and its `+C` as one correction."""
    events: list[Mapping[str, Any]] = []
    for change in changes:
        before = events[-1] if events else None
        if change["op"] == "+C" and before is not None and before["op"] == "-C":
            events[-1] = {
                **change,
                "op": "U",
                "before": before["row"],
                "corrects_offset": before["corrects_offset"],
            }
        else:
            events.append(change)
    return events


def _last(lines: Sequence[FeedLine], state: Mapping[str, Any]) -> FeedLine | None:
    """The change that made the row what it was at the version that was read."""
    return next((line for line in lines if line.version <= state["read"]), None)


PAGES: Final = (ConsolePage(path="/datasets/{dataset:str}/rows/row", template="row.html", read=_read),)
