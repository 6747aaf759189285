"""Who follows the feed of a dataset: how far each is, how far behind, and since when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
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
    frame, consumers, hidden = await together(
        dataset_frame(visit),
        visit.api.part(f"{base}/consumers", page_size=_PAGE_SIZE, page_token=visit.query.get("page_token")),
        _hidden(visit),
    )
    consumer_items = [] if consumers.problem else consumers.value["items"]
    titles = await _titles(visit, frame["dataset"]["name"], {each["kind"] for each in consumer_items})
    items = [_entry(visit, each, hidden, titles) for each in consumer_items]
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


async def _hidden(visit: Visit) -> Callable[[str], bool]:
    """Whether the reader may not see what moves a position, by its id: lineage has what the grants show."""
    if visit.principal.grants is None:
        return lambda _: False
    lineage = await visit.api.part("/lineage", dataset=visit.variables["dataset"])
    seen = set() if lineage.problem else {each["id"] for each in lineage.value["nodes"]}
    return lambda identity: identity not in seen


async def _titles(visit: Visit, dataset: str, kinds: AbstractSet[str]) -> dict[str, str]:
    """What people call the views, webhooks and exports that follow, by id: of the first ones."""
    lists = {
        "/views": ("view",),
        "/webhooks": ("webhook", "partition_webhook"),
        path_of("datasets", dataset, "exports"): ("export",),
    }
    paths = [path for path, of_list in lists.items() if not kinds.isdisjoint(of_list)]
    parts = await together(
        *(
            visit.api.part(path, page_size=_PAGE_SIZE, dataset=dataset if path == "/webhooks" else None)
            for path in paths
        )
    )
    items = [item for part in parts if part.problem is None for item in part.value["items"]]
    titles = {
        each["id"]: each.get("name") or each.get("description") or each.get("url") or "" for each in items
    }
    return {item_id: title for item_id, title in titles.items() if title}


def _entry(
    visit: Visit, consumer: Mapping[str, Any], hidden: Callable[[str], bool], titles: Mapping[str, str]
) -> dict[str, Any]:
    """A consumer with what people call it, when its lag began, and its position in words."""
    # A reader that sees a part of the dataset is not shown how many changes there are.
    lag = consumer["lag"] or {"changes": None, "seconds": 0}
    since = visit.now - timedelta(seconds=min(lag["seconds"], _SECONDS_MAX)) if lag["changes"] else None
    offset = consumer["offset"]
    words = number(offset) if isinstance(offset, int) else "in the rows of a version"
    return {
        **consumer,
        "behind_since": since,
        "is_reader": consumer["kind"] == "reader",
        "title": titles.get(consumer["name"].partition(":")[2], consumer["name"]),
        "offset_text": words,
        "link": _page_of(consumer, hidden),
    }


def _page_of(consumer: Mapping[str, Any], hidden: Callable[[str], bool]) -> str | None:
    """The page of what moves a position of the service, by the id in its name; None for one that is hidden."""
    place = _PLACES.get(consumer["kind"])
    _, colon, identity = consumer["name"].partition(":")
    return path_of("console", place, identity) if place and colon and not hidden(identity) else None


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
