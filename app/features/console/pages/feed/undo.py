"""Undoes the last write of a dataset: what exactly it is, who wrote it, and what is in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.feed.lines import VersionLines, by_version, feed_lines, with_seconds
from app.features.console.pages.feed.shared import (
    column_names,
    console_path,
    key_columns,
    number_columns,
    number_option,
    shown_columns,
)
from app.features.console.pages.field_values import FieldFault
from app.features.console.visit import PagePart, Visit, path_of

_WRITES: Final = ["commit", "rollback", "restore"]
_SEARCHED: Final = 200
_LINES: Final = 50
_WAIT: Final = {"Prefer": "wait=20"}


async def _read(visit: Visit) -> Context:
    frame = await dataset_frame(visit)
    dataset = frame["dataset"]
    context = {
        **frame,
        "tab": "Changes",
        "base": console_path(dataset),
        "numbers": number_columns(dataset),
        "keys": frozenset(key_columns(dataset)),
    }
    path = path_of("datasets", dataset["name"], "timeline")
    timeline = await visit.api.get(path, action=_WRITES, state="completed", page_size=_SEARCHED)
    writes = [with_seconds(each) for each in timeline["items"] if each["version"] is not None]
    # Writes that are committed together end in any order.
    writes.sort(key=lambda each: each["version"], reverse=True)
    write = _chosen(visit, writes)
    context |= {
        "writers": _writers(writes),
        "chosen": [],
        "later": [],
        "lines": (),
        "count": 0,
    }
    if write is None:
        return context
    version = write["version"]
    lines, count = await _lines(visit, dataset, write)
    return {
        **context,
        "version": version,
        "chosen": [each for each in writes if each["version"] == version],
        "later": [each for each in writes if each["version"] > version],
        "lines": lines,
        "count": count,
        "columns": shown_columns(visit, dataset) or column_names(dataset),
    }


def _chosen(visit: Visit, writes: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The write that is requested: the last one of a writer, one of a version, or the last of all."""
    writer = visit.query.get("writer", "")
    try:
        version = number_option(visit, "version")
    except FieldFault:
        version = None
    for each in writes:
        if writer and writer != _name(each):
            continue
        if not writer and version is not None and version != each["version"]:
            continue
        return each
    return None


def _writers(writes: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({_name(each) for each in writes})


def _name(instant: Mapping[str, Any]) -> str:
    return str(instant["actor_name"] or instant["actor"] or "the service")


async def _lines(
    visit: Visit, dataset: Mapping[str, Any], write: Mapping[str, Any]
) -> tuple[Sequence[VersionLines], int]:
    """The first changes of the write, and how many it made. None are known for a feed without them."""
    if write["first_offset"] is None:
        return (), 0
    first, end = write["first_offset"], write["last_offset"] + 1
    options = {"since": first, "until": end, "form": "single_event", "vocabulary": "standard"}
    page: PagePart = await visit.api.part(
        path_of("datasets", dataset["name"], "changes"), limit=_LINES, **options
    )
    if page.problem:
        return (), end - first
    lines = feed_lines(dataset, page.value["changes"], shown_columns(visit, dataset))
    return by_version(lines, {}), end - first


async def _undo(visit: Visit, form: ConsoleForm) -> Done:
    dataset = visit.variables["dataset"]
    version, head = _number(form, "version"), _number(form, "head")
    job = await visit.api.send(
        "POST",
        path_of("datasets", dataset, "rollbacks"),
        {"instants": 1, "expected_version": head},
        headers=_WAIT,
    )
    page = "/console" + path_of("datasets", dataset, "changes")
    if job["state"] != "succeeded":
        return Done(to=f"/console/jobs/{job['id']}", notice=f"v{version:,} is being undone by this job.")
    return Done(to=page, notice=f"v{version:,} is undone: {_effect(job)}.")


def _number(form: ConsoleForm, name: str) -> int:
    text = form.text(name)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _effect(job: Mapping[str, Any]) -> str:
    rows = job["rows"]
    parts = [
        f"{rows[name]:,} {word}"
        for name, word in (("inserted", "added"), ("deleted", "removed"), ("updated", "corrected"))
        if rows[name]
    ]
    return f"{', '.join(parts) or 'no row changed'}, as v{job['committed_version']:,}"


_PAGE: Final = ConsolePage(path="/datasets/{dataset:str}/changes/undo", template="undo.html", read=_read)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (ConsoleAction(path="/datasets/{dataset:str}/changes/undo", run=_undo, page=_PAGE),)
