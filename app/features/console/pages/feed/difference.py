"""What changed between two versions: from the feed if few changes lie between, else by a job that compares them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.feed.lines import FeedLine, feed_lines, instants_of
from app.features.console.pages.feed.shared import (
    console_path,
    key_columns,
    key_text,
    number_columns,
    number_option,
    problem_fields,
    shown_columns,
)
from app.features.console.pages.field_values import FieldFault
from app.features.console.visit import ApiProblem, PagePart, Visit, path_of, together

_CHANGES_MAX: Final = 1_000
_LINES: Final = 200
# Where a feed has each change with the row before and after, at once.
_COMPLETE: Final = "full"


class NetChange(NamedTuple):
    """What all changes of a row between the versions result in, as a change of the feed."""

    change: Mapping[str, Any]
    steps: int
    """How many changes the row had between the versions."""


async def _read(visit: Visit) -> Context:
    frame = await dataset_frame(visit)
    dataset = frame["dataset"]
    context: dict[str, Any] = {
        **frame,
        "tab": "Rows",
        "base": console_path(dataset),
        "columns": shown_columns(visit, dataset),
        "numbers": number_columns(dataset),
        "keys": frozenset(key_columns(dataset)),
        "faults": {},
        "fault": None,
        "lines": None,
        "between": None,
        "job": PagePart(),
        "instants": (),
    }
    try:
        first, last = _versions(visit, dataset)
    except FieldFault as fault:
        return {**context, "first": None, "last": None, "faults": problem_fields(fault)}
    context |= {"first": first, "last": last}
    if job := visit.query.get("job"):
        return {**context, "job": await _job(visit, job, first, last)}
    try:
        return {**context, **await _from_feed(visit, dataset, first, last, context["columns"])}
    except ApiProblem as problem:
        return {**context, "fault": problem}


def _versions(visit: Visit, dataset: Mapping[str, Any]) -> tuple[int, int]:
    """The two versions, the lower one first. Raises FieldFault."""
    head: int = dataset["version"]
    last, first = number_option(visit, "to"), number_option(visit, "from")
    last = head if last is None else last
    first = max(last - 1, 0) if first is None else first
    for field, version in (("to", last), ("from", first)):
        if version > head:
            raise FieldFault(field, f"expected 0–{head:,}, the latest version")
    return min(first, last), max(first, last)


async def _from_feed(
    visit: Visit, dataset: Mapping[str, Any], first: int, last: int, columns: Sequence[str]
) -> dict[str, Any]:
    """The net changes, if the feed has them and they are few. Raises ApiProblem."""
    instants = await instants_of(visit, dataset["name"], [last] if last else [])
    context: dict[str, Any] = {"instants": instants.value.get(last, ())}
    if first == last:
        return {**context, "lines": (), "between": 0, "counts": {}}
    if dataset["changelog"]["producer"] != _COMPLETE:
        return context
    start, end = await together(_offset(visit, dataset, first), _offset(visit, dataset, last))
    context["between"] = end - start
    if end - start > _CHANGES_MAX:
        return context
    changes = await _changes(visit, dataset, start, end)
    net = _net(dataset, changes)
    lines: list[FeedLine] = feed_lines(dataset, [each.change for each in net[:_LINES]], columns)
    return {
        **context,
        "lines": lines,
        "times": [each.steps for each in net],
        "hidden": max(len(net) - _LINES, 0),
        "counts": Counter(each.change["op"] for each in net),
    }


async def _offset(visit: Visit, dataset: Mapping[str, Any], version: int) -> int:
    """The position after all changes of a version. Raises ApiProblem."""
    if version == dataset["version"]:
        return int(dataset["next_offset"])
    page = await visit.api.get(
        path_of("datasets", dataset["name"], "changes"),
        since_version=version + 1,
        limit=1,
        vocabulary="standard",
    )
    return int(page["changes"][0]["offset"] if page["changes"] else page["next_since"])


async def _changes(
    visit: Visit, dataset: Mapping[str, Any], start: int, end: int
) -> Sequence[Mapping[str, Any]]:
    changes: list[Mapping[str, Any]] = []
    since = start
    while since < end:
        page = await visit.api.get(
            path_of("datasets", dataset["name"], "changes"),
            since=since,
            until=end,
            limit=_CHANGES_MAX,
            vocabulary="standard",
        )
        changes += page["changes"]
        if page["next_since"] == since:
            break
        since = page["next_since"]
    return changes


def _net(dataset: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> list[NetChange]:
    """What the changes result in, by row, in the order of the first change of each."""
    if all(key_text(dataset, each["row"]) is not None for each in changes):
        return _net_by_key(dataset, changes)
    return _net_by_values(changes)


def _net_by_key(dataset: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> list[NetChange]:
    by_key: dict[str | None, list[Mapping[str, Any]]] = {}
    for change in changes:
        by_key.setdefault(key_text(dataset, change["row"]), []).append(change)
    net = []
    for each in by_key.values():
        before = each[0]["row"] if each[0]["op"] in ("-C", "-R") else None
        after = each[-1]["row"] if each[-1]["op"] in ("+A", "+C") else None
        steps = sum(change["op"] != "-C" for change in each)
        if before == after:
            continue
        op = "+A" if before is None else "-R" if after is None else "U"
        row = before if after is None else after
        net.append(NetChange({**each[-1], "op": op, "row": row, "before": before}, steps))
    return net


def _net_by_values(changes: Sequence[Mapping[str, Any]]) -> list[NetChange]:
    """Rows without a key are equal if all of their values are."""
    balance: Counter[bytes] = Counter()
    latest: dict[bytes, Mapping[str, Any]] = {}
    for change in changes:
        values = msgspec.json.encode(change["row"])
        balance[values] += 1 if change["op"] in ("+A", "+C") else -1
        latest[values] = change
    return [
        NetChange({**latest[values], "op": "+A" if count > 0 else "-R"}, 1)
        for values, count in balance.items()
        for _ in range(abs(count))
    ]


async def _job(visit: Visit, job: str, first: int, last: int) -> PagePart:
    """The job of a comparison. One of other versions is no job of this page."""
    part = await visit.api.part(path_of("jobs", job))
    result = None if part.problem else part.value["result"]
    if result and (result.get("from_version"), result.get("to_version")) != (first, last):
        return PagePart()
    return part


async def _compare(visit: Visit, form: ConsoleForm) -> Done:
    dataset = visit.variables["dataset"]
    versions = [form.text(name) for name in ("from", "to")]
    body = {"from_version": _number(versions[0]), "to_version": _number(versions[1])}
    job = await visit.api.send("POST", path_of("datasets", dataset, "comparisons"), body)
    page = "/console" + path_of("datasets", dataset, "rows", "difference")
    options = {"from": versions[0], "to": versions[1], "job": job["id"]}
    return Done(to=visit.link(page, **options))


def _number(text: str) -> int | str:
    """A number; another text as it is, which the API refuses."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


_PAGE: Final = ConsolePage(
    path="/datasets/{dataset:str}/rows/difference", template="difference.html", read=_read
)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (ConsoleAction(path="/datasets/{dataset:str}/rows/difference", run=_compare, page=_PAGE),)
