"""Records that writes could not use: what is wrong with each, beside the schema, and its repair in place."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.field_values import FieldFault
from app.features.console.pages.json_text import NoJson, json_of
from app.features.console.visit import ApiProblem, NoticeKind, Visit, path_of, together

_PAGE_SIZE: Final = 25
_JOBS_MAX: Final = _PAGE_SIZE
"""The most writes whose records one form writes again: a page has no records of more."""
_CHARACTERS: Final = 12_000
"""The length of all records that a page shows in full."""
_REPAIR: Final = "value of "
"""The beginning of the name of a field with the repaired value of a column."""
_WRITTEN: Final = ("inserted", "updated", "deleted", "unchanged", "late")
_WAIT: Final = {"Prefer": "wait=10"}


async def _read(visit: Visit) -> Context:
    base = path_of("datasets", visit.variables["dataset"])
    frame, records = await together(
        dataset_frame(visit),
        visit.api.part(
            f"{base}/quarantine",
            job=visit.query.get("job"),
            page_size=_PAGE_SIZE,
            page_token=visit.query.get("page_token"),
        ),
    )
    dataset = frame["dataset"]
    items = [] if records.problem else records.value["items"]
    fields = dataset["schema"]["fields"]
    alone = visit.query.get("record")
    waiting = [each for each in items if each["state"] == "quarantined" and alone in (None, each["id"])]
    budget = _CHARACTERS // max(len(waiting), 1)
    return {
        **frame,
        "records": records,
        "items": [_entry(each, fields, budget) for each in waiting],
        "redriven": [each for each in items if each["state"] == "redriven"],
        "put_back": _put_back(items),
        "groups": _groups(waiting),
        "here": path_of("console", "datasets", dataset["name"], "quarantine"),
        "action": path_of("datasets", dataset["name"], "quarantine"),
    }


def _put_back(records: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The positions of records that are bad again, by the id of the job that wrote them again."""
    redrives = {each["redrive_job_id"] for each in records}
    positions: dict[str, list[int]] = {}
    for each in records:
        if each["job_id"] in redrives:
            positions.setdefault(each["job_id"], []).append(each["position"])
    return positions


def _groups(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records that fail at the same place, by the pointer of their first error, the most first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for each in records:
        groups.setdefault(pointer_of(each), []).append(each)
    return [
        {
            "pointer": pointer,
            "place": column_of(pointer) or "the whole record",
            "detail": of_pointer[0]["errors"][0]["detail"] if of_pointer[0]["errors"] else "",
            "ids": " ".join(f"{each['job_id']}/{each['id']}" for each in of_pointer),
            "count": len(of_pointer),
        }
        for pointer, of_pointer in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    ]


def pointer_of(record: Mapping[str, Any]) -> str:
    """Where the first error of a record is; empty for the whole record."""
    return str(record["errors"][0]["pointer"]) if record["errors"] else ""


def column_of(pointer: str) -> str:
    """The column that a JSON pointer is in; empty for the whole record."""
    return pointer[1:].partition("/")[0].replace("~1", "/").replace("~0", "~") if pointer else ""


def _entry(record: Mapping[str, Any], fields: Sequence[Mapping[str, Any]], characters: int) -> dict[str, Any]:
    """A record with its cells beside the columns of the schema, as far as its text can be divided.

    `characters`: of a longer record only the beginning is shown.
    """
    errors: dict[str, list[str]] = {}
    for error in record["errors"]:
        errors.setdefault(column_of(error["pointer"]), []).append(error["detail"])
    cells = _cells(record)
    names = [each["name"] for each in fields]
    rows = None
    if cells is not None:
        types = {each["name"]: each["type"] for each in fields}
        rows = [
            {
                "name": name,
                "type": types.get(name, "no such column"),
                "value": cells.get(name),
                "errors": errors.get(name, []),
            }
            for name in dict.fromkeys((*names, *cells))
        ]
    names_of_all = set(names) | set(cells or ())
    return {
        **record,
        "rows": rows,
        "editable": rows is not None and record["header"] is None,
        "other_errors": [
            text for name, texts in errors.items() if name not in names_of_all for text in texts
        ],
        "is_text": record["encoding"] == "text",
        "long": len(record["payload"]) > characters,
    }


def _cells(record: Mapping[str, Any]) -> dict[str, str] | None:
    """The values of a record by column, as they were sent; None if its text has another form."""
    if record["encoding"] != "text":
        return None
    if record["header"] is not None:
        return _csv_cells(record["header"], record["payload"])
    values = _values(record["payload"])
    return {name: bytes(value).decode() for name, value in values.items()} if values else None


def _values(payload: str) -> Mapping[str, msgspec.Raw]:
    """The members of a JSON object, each as it was sent; none of another text."""
    try:
        return dict(json_of(payload, dict[str, msgspec.Raw]))
    except NoJson:
        return {}


def _csv_cells(header: str, line: str) -> dict[str, str] | None:
    """The cells of a record of CSV, if it has as many as the header with one of the usual delimiters."""
    for delimiter in ",;\t|":
        try:
            names, cells = (next(_csv(text, delimiter), []) for text in (header, line))
        except csv.Error:
            continue
        if len(names) > 1 and len(names) == len(cells):
            return dict(zip(names, cells, strict=True))
    return None


def _csv(text: str, delimiter: str) -> Iterator[list[str]]:
    return iter(csv.reader([text.rstrip("\r\n")], delimiter=delimiter))


async def _redrive(visit: Visit, form: ConsoleForm) -> Done:
    """Writes one record again, as it is or repaired."""
    record: dict[str, Any] = {"id": form.text("id")}
    payload = repair(form)
    if payload is not None:
        record["payload"] = payload
    job = await visit.api.send("POST", f"{_base(visit)}/redrives", {"records": [record]}, headers=_WAIT)
    return await _ended(visit, [job])


def repair(form: ConsoleForm) -> str | None:
    """The payload of a form: the text of the whole record if it was changed, or the original one with the changed
    values of columns. None if nothing was changed.
    """
    original, whole = _lines(form.fields.get("original", ("",))[-1]), form.fields.get("payload")
    if whole is not None and _lines(whole[-1]) != original:
        return _lines(whole[-1])
    changes = {
        name.removeprefix(_REPAIR): _lines(values[-1])
        for name, values in form.fields.items()
        if name.startswith(_REPAIR)
    }
    if not changes:
        return None
    values = {name: bytes(value).decode() for name, value in _values(original).items()}
    if all(values.get(name, "") == text for name, text in changes.items()):
        return None
    values |= changes
    members = [f"{_encoded(name)}: {_json(text)}" for name, text in values.items() if text.strip()]
    return "{" + ", ".join(members) + "}"


def _lines(text: str) -> str:
    """The text of a field: forms send line breaks as CR and LF."""
    return text.replace("\r\n", "\n")


def _json(text: str) -> str:
    """The JSON of a value that a person wrote: what is no JSON is a string."""
    try:
        json_of(text, msgspec.Raw)
    except NoJson:
        return _encoded(text)
    return text


def _encoded(text: str) -> str:
    return msgspec.json.encode(text).decode()


async def _redrive_group(visit: Visit, form: ConsoleForm) -> Done:
    """Writes several records again: one request for each write that they are of."""
    jobs: dict[str, list[str]] = {}
    for reference in form.text("ids").split():
        job, _, record = reference.partition("/")
        jobs.setdefault(job, []).append(record)
    if len(jobs) > _JOBS_MAX:
        raise FieldFault("ids", f"expected records of at most {_JOBS_MAX} jobs, got {len(jobs):,}")
    outcomes, refusal = [], None
    for ids in jobs.values():
        body = {"records": [{"id": each} for each in ids]}
        try:
            outcomes.append(await visit.api.send("POST", f"{_base(visit)}/redrives", body, headers=_WAIT))
        except ApiProblem as problem:
            refusal = problem
    if refusal is not None and not outcomes:
        raise refusal
    return await _ended(visit, outcomes, refusal)


async def _discard(visit: Visit, form: ConsoleForm) -> Done:
    """Removes all bad records of a write."""
    await visit.api.send("DELETE", _base(visit), job=form.text("job"))
    return Done(to=_here(visit), notice=f"The bad records of job {form.text('job')} are discarded.")


async def _ended(visit: Visit, jobs: Sequence[Mapping[str, Any]], refusal: ApiProblem | None = None) -> Done:
    """What redrives did. `refusal`: the problem of a request that had no job."""
    written = sum(each["rows"][name] for each in jobs for name in _WRITTEN)
    faults = [] if refusal is None else [f"A part was refused: {refusal.members.get('detail', '')}."]
    faults += [
        f"Job {each['id']} {each['state']}: {(each['error'] or {}).get('detail', 'it was stopped')}."
        for each in jobs
        if each["state"] in ("failed", "cancelled")
    ]
    again = [each for each in jobs if each["rows"]["quarantined"]]
    if again:
        count = sum(each["rows"]["quarantined"] for each in again)
        faults.append(f"{count:,} in quarantine again: {await _reason(visit, again[0])}.")
    open_jobs = [each for each in jobs if each["state"] in ("queued", "running")]
    waits = [f"Requested: job {each['id']} is {each['state']}." for each in open_jobs[:1]]
    done = [f"{written:,} written."] if written or faults or not waits else []
    kind: NoticeKind = "good" if not faults else "warning" if written or waits else "bad"
    return Done(to=_here(visit), notice=" ".join([*done, *waits, *faults]), kind=kind)


async def _reason(visit: Visit, job: Mapping[str, Any]) -> str:
    """Why the first record of a redrive is bad."""
    part = await visit.api.part(_base(visit), job=job["id"], page_size=1)
    errors = [] if part.problem else [error for each in part.value["items"] for error in each["errors"]]
    if not errors:
        return "the reason is below"
    place = column_of(errors[0]["pointer"])
    return f"{place}: {errors[0]['detail']}" if place else str(errors[0]["detail"])


def _base(visit: Visit) -> str:
    return path_of("datasets", visit.variables["dataset"], "quarantine")


def _here(visit: Visit) -> str:
    return visit.link(path_of("console", "datasets", visit.variables["dataset"], "quarantine"))


_PAGE: Final = ConsolePage(
    path="/datasets/{dataset:str}/quarantine", template="dataset_quarantine.html", read=_read
)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (
    ConsoleAction(path="/datasets/{dataset:str}/quarantine/redrive", run=_redrive, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/quarantine/redrives", run=_redrive_group, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/quarantine/discard", run=_discard, page=_PAGE),
)
