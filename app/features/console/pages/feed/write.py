"""Writes rows that a person pastes or uploads, and says first what they would do."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from app.features.console.page import (
    ConsoleAction,
    ConsoleForm,
    ConsolePage,
    Context,
    Done,
    Shown,
)
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.feed.shared import console_path, key_text, short
from app.features.console.pages.json_text import NoJson, json_of
from app.features.console.visit import ApiProblem, PagePart, Visit, path_of

BYTES_MAX: Final = 1024 * 1024
_EXAMPLES: Final = {
    "string": "text",
    "boolean": True,
    "date": "2026-11-29",
    "timestamp": "2026-11-29T09:30:00Z",
}
_FORMATS: Final = {"json": "application/json", "ndjson": "application/x-ndjson", "csv": "text/csv"}
_OPERATIONS: Final = ("upsert", "insert", "bulk_insert", "delete", "overwrite", "snapshot", "changelog")
_OF_KEYS: Final = frozenset({"upsert", "delete", "snapshot"})
_EXPLAINED_MAX: Final = 1_000
_SHOWN: Final = 100
_WAIT: Final = {"Prefer": "wait=15"}


class KeyEffect(NamedTuple):
    """What a write would do to a key."""

    row: int
    key: str | None
    """In the form of `/rows/{key}`."""
    members: Any
    effect: str
    live: Mapping[str, Any] | None


async def _read(visit: Visit) -> Context:
    frame = await dataset_frame(visit)
    dataset = frame["dataset"]
    has_key = bool(dataset["record_key"])
    job = visit.query.get("job", "")
    return {
        **frame,
        "tab": "Rows",
        "base": console_path(dataset),
        "operations": [each for each in _OPERATIONS if has_key or each not in _OF_KEYS],
        "nonce": secrets.token_hex(8),
        "example": msgspec.json.encode(_example(dataset)).decode(),
        "job": await visit.api.part(path_of("jobs", job)) if job else PagePart(),
        "effects": None,
        "form": None,
    }


async def _write(visit: Visit, form: ConsoleForm) -> Done | Shown:
    dataset = visit.variables["dataset"]
    text = form.text("rows") or form.text("file")
    if not text:
        raise _refusal("there is nothing to write: paste rows, or choose a file")
    kind = form.text("format") or _format_of(text)
    if kind not in _FORMATS:
        raise _refusal("the format is one of JSON, NDJSON and CSV")
    if form.checked("dry"):
        return await _dry_run(visit, form, text, kind)
    options = {"operation": form.text("operation"), "on_error": form.text("on_error")}
    path = path_of("datasets", dataset, "writes")
    headers = {**_WAIT, "Idempotency-Key": _idempotency_key(form, text)}
    if kind == "json":
        body = _envelope(form, text)
        job = await visit.api.send("POST", path, body, headers=headers)
    else:
        headers["Content-Type"] = _FORMATS[kind]
        job = await visit.api.send("POST", path, text.encode(), headers=headers, **options)
    page = "/console" + path_of("datasets", dataset, "write")
    return Done(to=visit.link(page, job=job["id"]))


async def _dry_run(visit: Visit, form: ConsoleForm, text: str, kind: str) -> Shown:
    if kind == "csv":
        raise _refusal(
            "a dry run reads JSON and NDJSON. A write of CSV, too, checks all rows before it changes anything"
        )
    body = _envelope(form, _array(text) if kind == "ndjson" else text)
    path = path_of("datasets", visit.variables["dataset"], "explanations")
    explanation = await visit.api.send("POST", path, body)
    context = dict(await _read(visit))
    effects = _effects(context["dataset"], explanation)
    counts: dict[str, int] = {}
    for each in effects:
        counts[each.effect] = counts.get(each.effect, 0) + 1
    context |= {
        "form": form,
        "explanation": explanation,
        "effects": effects[:_SHOWN],
        "hidden": max(len(effects) - _SHOWN, 0),
        "effect_counts": counts,
    }
    return Shown(template="write.html", context=context)


def _effects(dataset: Mapping[str, Any], explanation: Mapping[str, Any]) -> list[KeyEffect]:
    effects = [
        KeyEffect(
            each["row"],
            key_text(dataset, each["key"]),
            short(each["key"]),
            each["effect"] or "decided later",
            each["live"],
        )
        for group in explanation["file_groups"]
        for each in group["keys"]
    ]
    return sorted(effects, key=lambda each: each.row)


def _envelope(form: ConsoleForm, rows: str) -> bytes:
    """The body of a write, with the rows as they were typed: numbers keep their digits."""
    members = {"operation": form.text("operation"), "on_error": form.text("on_error")}
    head = msgspec.json.encode({name: value for name, value in members.items() if value})[:-1]
    source = rows if rows.startswith("[") else f"[{rows}]"
    return head + b',"source":{"kind":"rows","rows":' + source.encode() + b"}}"


def _array(text: str) -> str:
    """Lines of JSON as an array. Raises ApiProblem for too many."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > _EXPLAINED_MAX:
        raise _refusal(f"a dry run takes {_EXPLAINED_MAX:,} rows at most; these are {len(lines):,}")
    return f"[{','.join(lines)}]"


def _format_of(text: str) -> str:
    """The format that the text is in, by its first characters: one JSON object is an array of one."""
    if text.startswith("["):
        return "json"
    if not text.startswith("{"):
        return "csv"
    try:
        json_of(text, msgspec.Raw)
    except NoJson:
        return "ndjson"
    return "json"


def _idempotency_key(form: ConsoleForm, text: str) -> str:
    """The same for the same form with the same rows, so that a form that is sent twice writes once."""
    parts = [form.text("nonce"), form.text("operation"), form.text("on_error"), form.text("format"), text]
    return "console-" + hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _example(dataset: Mapping[str, Any]) -> dict[str, Any]:
    fields: Sequence[Mapping[str, Any]] = dataset["schema"]["fields"]
    return {each["name"]: _EXAMPLES.get(str(each["type"]), 1) for each in fields[:6]}


def _refusal(detail: str) -> ApiProblem:
    return ApiProblem({"title": "the form is not complete", "status": 400, "detail": detail})


_PAGE: Final = ConsolePage(path="/datasets/{dataset:str}/write", template="write.html", read=_read)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (ConsoleAction(path="/datasets/{dataset:str}/write", run=_write, page=_PAGE),)
