"""The search over everything: a dataset, a job, a row by its key, an offset of a feed, an entry of the audit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import UUID

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.feed.shared import unnamed_key
from app.features.console.visit import ApiProblem, PagePart, Visit, path_of, together

_NOT_FOUND: Final = 404
_DATASETS: Final = 20
_AUDITED: Final = 500
"""The latest entries of the audit, among which a request is searched for."""
_BETWEEN: Final = re.compile(r"[\s/]+")
"""What separates a dataset from what is searched for in it."""
_ABSENT: Final = frozenset({400, 404, 422})
_RESOURCES: Final = (("sources", "source"), ("webhooks", "webhook"))
_EACH: Final = 100


class Match(NamedTuple):
    """Something that was searched for."""

    kind: str
    name: str
    href: str
    note: str = ""


async def _read(visit: Visit) -> Context:
    text = visit.query.get("q", "").strip()
    if not text:
        return {"text": "", "matches": [], "parts": []}
    dataset, rest = dataset_and_rest(text)
    searches = [_names(visit, text), _resources(visit, text)]
    if _is_id(text):
        searches += [_job(visit, text), _request(visit, text), _by_id(visit, text)]
    elif visit.may("manage") and len(text) > 8:
        searches.append(_request(visit, text))
    if dataset and rest:
        searches.append(_in_dataset(visit, dataset, rest))
    outcomes = await together(*searches)
    matches = [match for matches, _ in outcomes for match in matches]
    return {
        "text": text,
        "matches": sorted(matches, key=lambda each: each.name != text),
        "parts": [part for _, part in outcomes if part is not None and part.problem.status not in _ABSENT],
    }


def dataset_and_rest(text: str) -> tuple[str, str]:
    """The name of a dataset, and what is searched for in it; each is empty if the text has none."""
    dataset, *rest = _BETWEEN.split(text, maxsplit=1)
    return dataset, rest[0] if rest else ""


_Outcome = tuple[list[Match], PagePart | None]


async def _names(visit: Visit, text: str) -> _Outcome:
    part = await visit.api.part("/datasets", name=f"*{text[:200]}*", page_size=_DATASETS)
    if part.problem is not None:
        return [], part
    return [
        Match("dataset", each["name"], f"/console/datasets/{each['name']}", each["description"] or "")
        for each in part.value["items"]
    ], None


async def _by_id(visit: Visit, text: str) -> _Outcome:
    part = await visit.api.part(path_of("datasets", text))
    if part.problem is not None:
        return [], part
    name = part.value["name"]
    return [Match("dataset", name, f"/console/datasets/{name}", "by its id")], None


async def _resources(visit: Visit, text: str) -> _Outcome:
    """Views, sources and so on whose name or id has the text, of the first ones."""
    parts = await together(*(visit.api.part(f"/{folder}", page_size=_EACH) for folder, _ in _RESOURCES))
    matches = []
    for (folder, kind), part in zip(_RESOURCES, parts, strict=True):
        for each in [] if part.problem else part.value["items"]:
            name = each.get("name") or each.get("description") or each["id"]
            if text.lower() in f"{name} {each['id']} {each.get('url') or ''}".lower():
                matches.append(Match(kind, name, f"/console/{folder}/{each['id']}"))
    return matches, next((each for each in parts if each.problem is not None), None)


async def _job(visit: Visit, text: str) -> _Outcome:
    part = await visit.api.part(path_of("jobs", text))
    if part.problem is not None:
        return [], part
    job = part.value
    return [Match("job", job["id"], f"/console/jobs/{job['id']}", f"{job['kind']}, {job['state']}")], None


async def _request(visit: Visit, text: str) -> _Outcome:
    """The entry of the audit with this request id, among the latest ones."""
    if not visit.may("manage"):
        return [], None
    part = await visit.api.part("/audit", page_size=_AUDITED)
    if part.problem is not None:
        return [], part
    return [
        Match(
            "request",
            text,
            f"/console/audit?operation={each['operation']}",
            f"{each['operation']}, {each['at']}",
        )
        for each in part.value["items"]
        if each.get("request_id") == text
    ], None


async def _in_dataset(visit: Visit, dataset: str, rest: str) -> _Outcome:
    """A row by its key, and an offset or a version, within a dataset."""
    part = await visit.api.part(path_of("datasets", dataset))
    if part.problem is not None:
        return [], part
    definition: dict[str, Any] = part.value
    row = PagePart()
    if definition["record_key"] and "/" not in rest:
        row = await _row(visit, definition, rest)
    return list(_matches_in(definition, rest, row)), row if row.problem is not None else None


async def _row(visit: Visit, dataset: dict[str, Any], key: str) -> PagePart:
    """The row of a key, as it is typed."""
    members = unnamed_key(dataset, quote(key))
    if members is None:
        return await visit.api.part(path_of("datasets", dataset["name"], "rows", key))
    try:
        path = path_of("datasets", dataset["name"], "rows", "lookup")
        answer = await visit.api.send("POST", path, {"keys": [members]})
    except ApiProblem as problem:
        return PagePart(problem=problem)
    row = answer["items"][0]["row"]
    return PagePart(row) if row is not None else PagePart(problem=ApiProblem({"status": _NOT_FOUND}))


def _matches_in(dataset: dict[str, Any], rest: str, row: PagePart) -> Iterator[Match]:
    name = dataset["name"]
    if row.value is not None or (row.problem is not None and row.problem.status == _NOT_FOUND):
        note = "by its key" if row.value is not None else "no row has this key now: its history"
        yield Match("row", f"{name}/{rest}", f"/console/datasets/{name}/rows/row?key={_quoted(rest)}", note)
    number = rest.removeprefix("v").replace(",", "")
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        return
    if dataset["earliest_offset"] <= int(number) < dataset["next_offset"] and not rest.startswith("v"):
        yield Match(
            "change", f"{name}, offset {int(number):,}", f"/console/datasets/{name}/changes?since={number}"
        )
    if int(number) <= dataset["version"]:
        yield Match("version", f"{name}, v{int(number):,}", f"/console/datasets/{name}/rows?version={number}")


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


PAGES: Final = (ConsolePage(path="/search", template="search.html", read=_read),)
