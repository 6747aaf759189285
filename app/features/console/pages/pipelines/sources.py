"""Sources: how far each has read, and why it stands."""

from __future__ import annotations

from typing import Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.field_values import decimal_number, json_value, present, whole_number
from app.features.console.pages.pipelines.requests import change, change_state, delete_confirmed, read_list
from app.features.console.visit import PagePart, Visit, path_of

DEFINITION: Final = """{
  "name": "orders_in",
  "dataset": "orders",
  "kind": "files",
  "config": {"path": "file:///srv/incoming/orders", "format": "ndjson"},
  "mode": "continuous",
  "create": {"record_key": ["id"]}
}"""
"""The definition that the form of a new source begins with."""
_ROUNDS: Final = 10


async def _read_list(visit: Visit) -> Context:
    items = await read_list(visit, "/sources", dataset=visit.query.get("dataset"))
    return {**items, "definition": DEFINITION}


async def _read_source(visit: Visit) -> Context:
    response = await visit.api.response("GET", _path(visit))
    source = response.value()
    rounds = PagePart({"items": []})
    if source["dataset"]["id"] is not None:
        rounds = await visit.api.part(
            "/jobs", dataset=source["dataset"]["id"], kind="source_round", page_size=_ROUNDS
        )
    return {"source": source, "etag": response.headers["etag"], "rounds": rounds}


def _path(visit: Visit, *more: str) -> str:
    return path_of("sources", visit.variables["source"], *more)


def _page(visit: Visit) -> str:
    return visit.link("/console" + _path(visit))


async def _create(visit: Visit, form: ConsoleForm) -> Done:
    source = await visit.api.send("POST", "/sources", json_value("definition", form.text("definition")))
    return Done(
        to=visit.link(f"/console/sources/{source['name']}"),
        notice=f"Source {source['name']} is registered, and its first round starts.",
    )


async def _state(visit: Visit, form: ConsoleForm) -> Done:
    state = await change_state(visit, _path(visit), form)
    return Done(to=_page(visit), notice=f"The source is {state}.")


async def _settings(visit: Visit, form: ConsoleForm) -> Done:
    members = present(
        {
            "interval_seconds": decimal_number("interval_seconds", form.text("interval_seconds")),
            "max_rows": whole_number("max_rows", form.text("max_rows")),
            "max_bytes": whole_number("max_bytes", form.text("max_bytes")),
            "max_items": whole_number("max_items", form.text("max_items")),
        }
    )
    await change(visit, _path(visit), members, form.text("etag"))
    return Done(to=_page(visit), notice="The source is changed.")


async def _rewind(visit: Visit, form: ConsoleForm) -> Done:
    await change(
        visit, _path(visit), {"position": json_value("position", form.text("position"))}, form.text("etag")
    )
    return Done(to=_page(visit), notice="The source continues from this position.")


async def _start_round(visit: Visit, _: ConsoleForm) -> Done:
    job = await visit.api.send("POST", _path(visit, "rounds"))
    return Done(to=f"/console/jobs/{job['id']}", notice="A round has started.")


async def _delete(visit: Visit, form: ConsoleForm) -> Done:
    await delete_confirmed(visit, form, _path(visit))
    return Done(to="/console/sources", notice=f"The source {visit.variables['source']} is deleted.")


_LIST: Final = ConsolePage(path="/sources", template="sources.html", read=_read_list)
_SOURCE: Final = ConsolePage(path="/sources/{source:str}", template="source.html", read=_read_source)
PAGES: Final = (_LIST, _SOURCE)
ACTIONS: Final = (
    ConsoleAction(path="/sources", run=_create, page=_LIST),
    ConsoleAction(path="/sources/{source:str}/state", run=_state, page=_SOURCE),
    ConsoleAction(path="/sources/{source:str}/settings", run=_settings, page=_SOURCE),
    ConsoleAction(path="/sources/{source:str}/position", run=_rewind, page=_SOURCE),
    ConsoleAction(path="/sources/{source:str}/rounds", run=_start_round, page=_SOURCE),
    ConsoleAction(path="/sources/{source:str}/delete", run=_delete, page=_SOURCE),
)
