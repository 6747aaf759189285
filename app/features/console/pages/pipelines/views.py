"""Views: their SQL, how far each is behind its inputs, and a form that makes one of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.field_values import present, words
from app.features.console.pages.pipelines.requests import change_state, delete_confirmed, read_list
from app.features.console.pages.pipelines.sql_fault import sql_fault
from app.features.console.visit import PagePart, Visit, path_of, together

_REFRESHES: Final = 10
_QUEUED: Final = 200
_ORIGINS: Final = 20


async def _read_list(visit: Visit) -> Context:
    page, template = await together(read_list(visit, "/views"), _template(visit))
    waiting = await _waiting(visit) if any(each["freshness"] != "current" for each in page["items"]) else {}
    return {**page, "waiting": waiting, "template": template, "fault_in": sql_fault}


async def _waiting(visit: Visit) -> Mapping[str, Any]:
    """The refreshes that wait for a process, by the id of the view; none if they cannot be read."""
    part: PagePart = await visit.api.part("/jobs", kind="refresh", state="queued", page_size=_QUEUED)
    return {} if part.problem else {job["dataset"]["id"]: job for job in part.value["items"]}


async def _template(visit: Visit) -> Any:
    """The view whose text the form begins with; None without one."""
    name = visit.query.get("copy")
    part = await visit.api.part(path_of("views", name)) if name else PagePart()
    return part.value


async def _read_view(visit: Visit) -> Context:
    path = _path(visit)
    view = await visit.api.get(path)
    refreshes = await visit.api.part("/jobs", dataset=view["id"], kind="refresh", page_size=_REFRESHES)
    origins = None
    if visit.query.get("origins") is not None:
        origins = await visit.api.part(
            f"{path}/origins", since=visit.query["origins"] or "earliest", limit=_ORIGINS
        )
    jobs = [] if refreshes.problem else refreshes.value["items"]
    return {
        "view": view,
        "refreshes": refreshes,
        "waiting": next((job for job in jobs if job["state"] == "queued"), None),
        "origins": origins,
        "fault": _stored_fault(view),
    }


def _stored_fault(view: Any) -> Any:
    return None if view["error"] is None else sql_fault(view["sql"], view["error"])


def _path(visit: Visit, *more: str) -> str:
    return path_of("views", visit.variables["view"], *more)


async def _create(visit: Visit, form: ConsoleForm) -> Done:
    sql = form.fields.get("sql", [""])[-1].replace("\r\n", "\n")
    members = present(
        {
            "name": form.text("name"),
            "sql": sql,
            "record_key": words(form.text("record_key")),
            "partition_by": words(form.text("partition_by")),
            "allow_cross_join": True if form.checked("allow_cross_join") else None,
        }
    )
    members.setdefault("name", "")
    members.setdefault("sql", "")
    view = await visit.api.send("POST", "/views", members)
    return Done(
        to=visit.link(f"/console/views/{view['name']}"),
        notice=f"View {view['name']} is registered, and its first refresh is queued.",
    )


async def _state(visit: Visit, form: ConsoleForm) -> Done:
    state = await change_state(visit, _path(visit), form)
    return Done(to=visit.link("/console" + _path(visit)), notice=f"The view is {state}.")


async def _refresh(visit: Visit, _: ConsoleForm) -> Done:
    job = await visit.api.send("POST", _path(visit, "refreshes"))
    return Done(to=f"/console/jobs/{job['id']}", notice="A refresh is queued.")


async def _delete(visit: Visit, form: ConsoleForm) -> Done:
    await delete_confirmed(visit, form, _path(visit))
    return Done(to="/console/views", notice=f"The view {visit.variables['view']} is deleted.")


_LIST: Final = ConsolePage(path="/views", template="views.html", read=_read_list)
_VIEW: Final = ConsolePage(path="/views/{view:str}", template="view.html", read=_read_view)
PAGES: Final = (_LIST, _VIEW)
ACTIONS: Final = (
    ConsoleAction(path="/views", run=_create, page=_LIST),
    ConsoleAction(path="/views/{view:str}/state", run=_state, page=_VIEW),
    ConsoleAction(path="/views/{view:str}/refreshes", run=_refresh, page=_VIEW),
    ConsoleAction(path="/views/{view:str}/delete", run=_delete, page=_VIEW),
)
