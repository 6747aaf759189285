"""The timeline of a dataset: what has happened, by whom, which versions have names, and the way back to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.history.timeline_chart import SIGNS, kind_of, timeline_chart
from app.features.console.rendering import instant_word
from app.features.console.visit import ApiProblem, PagePart, Visit, path_of, together

_PAGE_SIZE: Final = 60
_UNDONE_MAX: Final = 1_000
_ACTIONS: Final = {
    "writes": ("commit",),
    "services": ("compaction", "clustering", "clean"),
    "restores": ("restore", "rollback"),
    "schema": ("schema",),
    "names": ("savepoint", "tag"),
}
_WAIT: Final = {"Prefer": "wait=10"}
_EMPTY: Final = PagePart()


async def _read(visit: Visit) -> Context:
    base = path_of("datasets", visit.variables["dataset"])
    selection = _selection(visit)
    frame, timeline, savepoints, tags = await together(
        dataset_frame(visit),
        visit.api.part(f"{base}/timeline", **selection),
        visit.api.part(f"{base}/savepoints", page_size=1_000),
        visit.api.part(f"{base}/tags", page_size=1_000),
    )
    here = path_of("console", "datasets", frame["dataset"]["name"], "timeline")
    instants = [] if timeline.problem else timeline.value["items"]
    names = _names(savepoints, tags)
    choice = visit.query.get("instant", "")
    link = _links(visit, here)
    return {
        **frame,
        "timeline": timeline,
        "instants": [{**_entry(each), "link": link(each["id"])} for each in instants],
        "signs": SIGNS,
        "names": names,
        "names_problem": next((each for each in (savepoints, tags) if each.problem), None),
        "here": here,
        "action": path_of("datasets", frame["dataset"]["name"], "timeline"),
        "kinds": tuple(_ACTIONS),
        "next_link": _next(visit, here, selection, timeline),
        "chart": timeline_chart(
            instants,
            {version: [each["name"] for each in of_version] for version, of_version in names.items()},
            current=choice,
            link=link,
        ),
        "detail": await _detail(visit, base, choice, instants) if choice else None,
        "way_back": await _way_back(visit, base, frame["dataset"]),
    }


def _entry(instant: Mapping[str, Any]) -> dict[str, Any]:
    """An instant with its kind, how long it took in seconds, and its options as text."""
    start, end = instant["started_at"], instant["completed_at"]
    took = None
    if start and end:
        took = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return {
        **instant,
        "kind": kind_of(instant),
        "word": instant_word(instant),
        "took": took,
        "options_text": msgspec.json.encode(instant["parameters"]).decode(),
    }


def _selection(visit: Visit) -> dict[str, Any]:
    """The options of the list, from those of the page."""
    since = visit.since
    return {
        "action": list(_ACTIONS.get(visit.query.get("kind", ""), ())),
        "state": visit.query.get("state"),
        "version": visit.query.get("version"),
        # A token is valid with the options of its page only.
        "since_time": visit.query.get("since") or (None if since is None else since.isoformat()),
        "page_size": _PAGE_SIZE,
        "page_token": visit.query.get("page_token"),
    }


def _next(visit: Visit, here: str, selection: Mapping[str, Any], timeline: PagePart) -> str | None:
    token = None if timeline.problem else timeline.value["next_page_token"]
    if token is None:
        return None
    options = {name: value for name, value in visit.query.items() if name not in ("instant", "restore")}
    return visit.link(here, **{**options, "since": selection["since_time"], "page_token": token})


def _links(visit: Visit, here: str) -> Any:
    options = {name: value for name, value in visit.query.items() if name not in ("instant", "restore")}

    def link(instant: str) -> str:
        return visit.link(here, **options, instant=instant) + "#instant"

    return link


def _names(savepoints: PagePart, tags: PagePart) -> dict[int, list[dict[str, Any]]]:
    """The savepoints and tags, by their version."""
    names: dict[int, list[dict[str, Any]]] = {}
    for part in (savepoints, tags):
        for each in () if part.problem else part.value["items"]:
            names.setdefault(each["version"], []).append(each)
    return names


async def _detail(
    visit: Visit, base: str, choice: str, instants: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """An instant in full: itself (None if there is none of this id), its job, and what it did to the schema."""
    instant = next((each for each in instants if each["id"] == choice), None)
    if instant is None:
        instant = await _instant(visit, base, choice)
    if instant is None:
        return {"instant": None}
    job, columns = await together(_job(visit, instant), _schema_changes(visit, base, instant))
    return {"instant": _entry(instant), "job": job, "columns": columns}


async def _instant(visit: Visit, base: str, choice: str) -> dict[str, Any] | None:
    """An instant by its id, which begins with the time of its request in microseconds."""
    try:
        at = datetime.strptime(choice.partition("-")[0], "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return None
    # The clock of the database, which dates requests, can differ from the one of the id.
    for seconds in (1, 120):
        try:
            since, until = (at + timedelta(seconds=side * seconds) for side in (-1, 1))
        except OverflowError:
            return None
        page = await visit.api.part(
            f"{base}/timeline", since_time=since.isoformat(), until_time=until.isoformat(), page_size=1_000
        )
        items = [] if page.problem else page.value["items"]
        instant = next((each for each in items if each["id"] == choice), None)
        if instant is not None:
            return dict(instant)
    return None


async def _job(visit: Visit, instant: Mapping[str, Any]) -> PagePart:
    return await visit.api.part(path_of("jobs", instant["job_id"])) if instant["job_id"] else _EMPTY


async def _schema_changes(visit: Visit, base: str, instant: Mapping[str, Any]) -> PagePart:
    """What the version changed of the columns; without a value if it changed none."""
    version, schema_id = instant["version"], instant["schema_id"]
    if not version or not schema_id or schema_id == 1:
        return _EMPTY
    earlier = await visit.api.part(f"{base}/timeline", to_version=version - 1, page_size=1)
    if earlier.problem:
        return PagePart(problem=earlier.problem)
    before_id = earlier.value["items"][0]["schema_id"] if earlier.value["items"] else 1
    if before_id == schema_id or before_id is None:
        return _EMPTY
    try:
        before, after = await together(
            visit.api.get(f"{base}/schema", id=before_id), visit.api.get(f"{base}/schema", id=schema_id)
        )
    except ApiProblem as problem:
        return PagePart(problem=problem)
    return PagePart(column_changes(before["fields"], after["fields"]))


def column_changes(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """The differences of two schemas as sentences. Fields are the same if their ids are."""
    earlier, later = ({each["id"]: each for each in fields} for fields in (before, after))
    changes = [f"+ {each['name']} {each['type']}" for number, each in later.items() if number not in earlier]
    changes += [f"− {each['name']} {each['type']}" for number, each in earlier.items() if number not in later]
    for number, new in later.items():
        old = earlier.get(number, new)
        if old["name"] != new["name"]:
            changes.append(f"{old['name']} → {new['name']}")
        if old["type"] != new["type"]:
            changes.append(f"{new['name']}: {old['type']} → {new['type']}")
        if old["nullable"] != new["nullable"]:
            changes.append(f"{new['name']}: {'may be null' if new['nullable'] else 'required'} now")
    common = [
        [number for number in fields if number in earlier and number in later] for fields in (earlier, later)
    ]
    if common[0] != common[1]:
        changes.append("the order of the columns")
    return changes


async def _way_back(visit: Visit, base: str, dataset: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the restore of a version would undo; None if none is requested."""
    text = visit.query.get("restore", "")
    if not text.isdecimal():
        return None
    version, head = int(text[:18]), dataset["version"]
    if version >= head:
        return {"version": version, "head": head, "writes": _EMPTY}
    writes = await visit.api.part(
        f"{base}/timeline",
        from_version=version + 1,
        to_version=head,
        action=["commit", "restore", "rollback"],
        state="completed",
        page_size=_UNDONE_MAX,
    )
    return {"version": version, "head": head, "writes": writes, **_sums(writes)}


def _sums(writes: PagePart) -> dict[str, Any]:
    items = [] if writes.problem else list(map(_entry, writes.value["items"]))
    return {
        "items": items,
        "more": bool(items) and writes.value["next_page_token"] is not None,
        "rows": {
            name: sum(each["rows"][name] for each in items) for name in ("inserted", "updated", "deleted")
        },
        "who": sorted({each["actor_name"] or "the service" for each in items}),
    }


async def _name_version(visit: Visit, form: ConsoleForm) -> Done:
    """Keeps a version under a name, as a savepoint or a tag."""
    kind = "savepoint" if form.text("kind") == "savepoint" else "tag"
    body: dict[str, Any] = {"name": form.text("name")}
    if form.text("version"):
        body["version"] = _number(form.text("version"))
    if form.text("days"):
        days = _number(form.text("days"))
        body["keep_seconds"] = days * 86_400 if isinstance(days, int) else days
    job = await visit.api.send("POST", f"{_base(visit)}/{kind}s", body, headers=_WAIT)
    return Done(to=_here(visit), notice=_notice(job, f"The {kind} {body['name']} keeps the version."))


async def _remove_name(visit: Visit, form: ConsoleForm) -> Done:
    kind = "savepoint" if form.text("kind") == "savepoint" else "tag"
    await visit.api.send("DELETE", f"{_base(visit)}/{path_of(kind + 's', form.text('name'))[1:]}")
    return Done(to=_here(visit), notice=f"The {kind} {form.text('name')} is deleted.")


async def _restore(visit: Visit, form: ConsoleForm) -> Done:
    """Gives the dataset the rows of an earlier version, if it is still at the version that the reader has seen."""
    body = {
        "version": _number(form.text("version")),
        "expected_version": _number(form.text("expected_version")),
    }
    job = await visit.api.send("POST", f"{_base(visit)}/restores", body, headers=_WAIT)
    notice = (
        f"The dataset has the rows of version {body['version']} again, as version {job['committed_version']}."
    )
    return Done(to=_here(visit), notice=_notice(job, notice))


async def _compare(visit: Visit, form: ConsoleForm) -> Done:
    """Compares two versions row by row, in a job that shows its result."""
    body = {"from_version": _number(form.text("from")), "to_version": _number(form.text("to"))}
    job = await visit.api.send("POST", f"{_base(visit)}/comparisons", body, headers=_WAIT)
    return Done(to=path_of("console", "jobs", job["id"]))


def _notice(job: Mapping[str, Any], notice: str) -> str:
    return notice if job["state"] == "succeeded" else f"Requested: job {job['id']} is {job['state']}."


def _number(text: str) -> int | str:
    """The number; another text as it is, for which the API says what is expected."""
    return int(text) if text.isdecimal() and len(text) < 19 else text


def _base(visit: Visit) -> str:
    return path_of("datasets", visit.variables["dataset"])


def _here(visit: Visit) -> str:
    return visit.link(path_of("console", "datasets", visit.variables["dataset"], "timeline"))


_PAGE: Final = ConsolePage(
    path="/datasets/{dataset:str}/timeline", template="dataset_timeline.html", read=_read
)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (
    ConsoleAction(path="/datasets/{dataset:str}/timeline/names", run=_name_version, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/timeline/names/delete", run=_remove_name, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/timeline/restore", run=_restore, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/timeline/compare", run=_compare, page=_PAGE),
)
