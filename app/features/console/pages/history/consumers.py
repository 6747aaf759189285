"""Who follows the feed of a dataset: how far each is, how far behind, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.rendering import number
from app.features.console.visit import Visit, path_of, together

_PLACES: Final = {
    "view": "views",
    "export": "exports",
    "webhook": "webhooks",
    "partition_webhook": "webhooks",
}
_PAGE_SIZE: Final = 200
_SECONDS_MAX: Final = 86_400 * 365 * 100


async def _read(visit: Visit) -> Context:
    base = path_of("datasets", visit.variables["dataset"])
    frame, consumers, names = await together(
        dataset_frame(visit),
        visit.api.part(f"{base}/consumers", page_size=_PAGE_SIZE, page_token=visit.query.get("page_token")),
        _names(visit),
    )
    items = [_entry(visit, each, names) for each in ([] if consumers.problem else consumers.value["items"])]
    # Who lags most is first; a name decides between those that lag alike.
    items.sort(key=lambda each: (-(each["lag"] or {}).get("changes", 0), each["name"]))
    name = visit.query.get("consumer")
    return {
        **frame,
        "consumers": consumers,
        "items": items,
        "here": path_of("console", "datasets", frame["dataset"]["name"], "consumers"),
        "action": path_of("datasets", frame["dataset"]["name"], "consumers"),
        "chosen": next((each for each in items if each["name"] == name), None),
        "refresh": name is None,
    }


async def _names(visit: Visit) -> dict[str, str]:
    """The names of the views, webhooks and exports that follow, by id: of those that the reader may see."""
    lineage = await visit.api.part("/lineage", dataset=visit.variables["dataset"])
    nodes = [] if lineage.problem else lineage.value["nodes"]
    return {each["id"]: each["name"] for each in nodes}


def _entry(visit: Visit, consumer: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A consumer with what people call it, when its lag began, and its position in words."""
    place, follower = _PLACES.get(consumer["kind"]), consumer["name"].partition(":")[2]
    # A reader that sees a part of the dataset is not shown how many changes there are.
    lag = consumer["lag"] or {"changes": None, "seconds": 0}
    since = visit.now - timedelta(seconds=min(lag["seconds"], _SECONDS_MAX)) if lag["changes"] else None
    offset = consumer["offset"]
    words = number(offset) if isinstance(offset, int) else "in the rows of a version"
    return {
        **consumer,
        "behind_since": since,
        "is_reader": consumer["kind"] == "reader",
        "title": names.get(follower) or consumer["name"],
        "offset_text": words,
        "link": path_of("console", place, follower) if place and follower in names else None,
    }


async def _create(visit: Visit, form: ConsoleForm) -> Done:
    """Makes a consumer at a position."""
    name = form.text("name")
    await visit.api.send("PUT", _path(visit, name), _body(form), headers={"If-None-Match": "*"})
    return Done(to=_here(visit), notice=f"The consumer {name} is made.")


async def _move(visit: Visit, form: ConsoleForm) -> Done:
    """Moves a consumer, also back, if it is still where the reader has seen it."""
    name = form.text("name")
    headers = {"If-Match": f'"{form.text("revision")}"'}
    consumer = await visit.api.send(
        "PUT", _path(visit, name), {**_body(form), "reset": True}, headers=headers
    )
    return Done(to=_here(visit), notice=f"The consumer {name} is at {consumer['offset']}.")


async def _delete(visit: Visit, form: ConsoleForm) -> Done:
    name = form.text("name")
    headers = {"If-Match": f'"{form.text("revision")}"'}
    await visit.api.send("DELETE", _path(visit, name), headers=headers)
    return Done(to=_here(visit), notice=f"The consumer {name} is deleted.")


def _body(form: ConsoleForm) -> dict[str, Any]:
    """The position and the bound of a form: an offset or a word, a version as v12, or a time."""
    body: dict[str, Any] = {}
    position = form.text("position")
    if position[:1] in ("v", "V") and position[1:].isdecimal():
        body["since_version"] = _number(position[1:])
    elif position.count("-") >= 2:
        body["since_time"] = position
    elif position:
        body["offset"] = _number(position)
    bounds = {
        name: _number(form.text(f"max_{name}")) for name in ("changes", "seconds") if form.text(f"max_{name}")
    }
    return {**body, "max_lag": bounds} if bounds else body


def _number(text: str) -> int | str:
    """The number; another text as it is, for which the API says what is expected."""
    return int(text) if text.isdecimal() and len(text) < 19 else text


def _path(visit: Visit, name: str) -> str:
    return path_of("datasets", visit.variables["dataset"], "consumers", name)


def _here(visit: Visit) -> str:
    return visit.link(path_of("console", "datasets", visit.variables["dataset"], "consumers"))


_PAGE: Final = ConsolePage(
    path="/datasets/{dataset:str}/consumers", template="dataset_consumers.html", read=_read
)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (
    ConsoleAction(path="/datasets/{dataset:str}/consumers", run=_create, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/consumers/move", run=_move, page=_PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/consumers/delete", run=_delete, page=_PAGE),
)
