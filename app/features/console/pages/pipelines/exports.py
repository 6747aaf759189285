"""Exports: their schedules, their runs, and the files of these."""

from __future__ import annotations

from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.field_values import present, whole_number, words
from app.features.console.pages.pipelines.requests import change, change_state, delete_confirmed, read_list
from app.features.console.visit import Visit, path_of, together

QUERIES: Final = (
    ("changes", "changes"),
    ("incremental", "incremental: the rows that changed"),
    ("snapshot", "snapshot: all rows"),
)
"""What is exported, as `POST /datasets/{dataset}/exports` has it."""
FORMATS: Final = ("parquet", "csv", "ndjson", "arrow")
"""The formats of the files."""
STATES: Final = ("active", "paused", "ended")
"""The states of exports."""
_PAGE_SIZE: Final = 50
_RUNS: Final = 20
_FILES_MAX: Final = 200
"""The most files of a run that a page lists; its manifest has all."""


async def _read_list(visit: Visit) -> Context:
    dataset, state = visit.query.get("dataset"), visit.query.get("state")
    return {
        **await read_list(visit, "/exports", page_size=_PAGE_SIZE, dataset=dataset, state=state),
        "queries": QUERIES,
        "formats": FORMATS,
        "last_success": last_success,
        "state_tabs": [
            (visit.link("/console/exports", dataset=dataset, state=each), each or "all", None)
            for each in (None, *STATES)
        ],
    }


def last_success(export: Any) -> Any:
    """The latest run that has succeeded, of those that the export has; None without one."""
    return next((run for run in export["runs"] if run["state"] == "succeeded"), None)


async def _read_export(visit: Visit) -> Context:
    path = _path(visit)
    response, runs = await together(
        visit.api.response("GET", path),
        visit.api.part(f"{path}/runs", page_size=_RUNS, page_token=visit.query.get("page_token")),
    )
    export = response.value()
    manifest = None
    number = visit.query.get("run")
    if number is None and (latest := last_success(export)):
        number = str(latest["number"])
    if number:
        manifest = await visit.api.part(f"{path}/runs/{number}")
    return {
        "export": export,
        "etag": response.headers["etag"],
        "runs": runs,
        "manifest": manifest,
        "files_max": _FILES_MAX,
        "last": last_success(export),
    }


def _path(visit: Visit, *more: str) -> str:
    return path_of("exports", visit.variables["export"], *more)


def _schedule(form: ConsoleForm) -> Any:
    """The schedule of the fields; None if all are empty."""
    return (
        present(
            {
                "every_seconds": whole_number("schedule.every_seconds", form.text("every_seconds")),
                "cron": form.text("cron"),
                "zone": form.text("zone"),
            }
        )
        or None
    )


async def _create(visit: Visit, form: ConsoleForm) -> Done:
    members = present(
        {
            "query": form.text("query"),
            "format": form.text("format"),
            "name": form.text("name"),
            "columns": words(form.text("columns")),
            "where": form.text("where"),
            "schedule": _schedule(form),
            "destination": form.text("destination"),
        }
    )
    export = await visit.api.send("POST", path_of("datasets", form.text("dataset"), "exports"), members)
    return Done(to=f"/console/exports/{export['id']}", notice="The export is registered.")


async def _state(visit: Visit, form: ConsoleForm) -> Done:
    state = await change_state(visit, _path(visit), form)
    return Done(to="/console" + _path(visit), notice=f"The export is {state}.")


async def _reschedule(visit: Visit, form: ConsoleForm) -> Done:
    await change(visit, _path(visit), {"schedule": _schedule(form)}, form.text("etag"))
    return Done(to="/console" + _path(visit), notice="The schedule is changed.")


async def _run(visit: Visit, _: ConsoleForm) -> Done:
    run = await visit.api.send("POST", _path(visit, "runs"))
    return Done(to="/console" + _path(visit), notice=f"Run {run['number']} is accepted.")


async def _delete(visit: Visit, form: ConsoleForm) -> Done:
    await delete_confirmed(visit, form, _path(visit))
    return Done(to="/console/exports", notice="The export is deleted.")


_LIST: Final = ConsolePage(path="/exports", template="exports.html", read=_read_list)
_EXPORT: Final = ConsolePage(path="/exports/{export:str}", template="export.html", read=_read_export)
PAGES: Final = (_LIST, _EXPORT)
ACTIONS: Final = (
    ConsoleAction(path="/exports", run=_create, page=_LIST),
    ConsoleAction(path="/exports/{export:str}/state", run=_state, page=_EXPORT),
    ConsoleAction(path="/exports/{export:str}/schedule", run=_reschedule, page=_EXPORT),
    ConsoleAction(path="/exports/{export:str}/runs", run=_run, page=_EXPORT),
    ConsoleAction(path="/exports/{export:str}/delete", run=_delete, page=_EXPORT),
)
