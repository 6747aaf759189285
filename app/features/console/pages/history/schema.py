"""The columns of a dataset: what they are, who uses each, how they came to be, and what a change of one would break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.history.timeline import column_changes
from app.features.console.rendering import counted
from app.features.console.visit import ApiProblem, PagePart, Visit, path_of, together

_SCHEMAS: Final = 50
_KEYS: Final = 1_000
_FIELDS: Final = ("kind", "column", "to", "type", "doc", "explicit_cast")
_CHANGES: Final = ("rename", "drop", "add", "widen", "relax")
_PLACES: Final = {
    "view": "/console/views/",
    "source": "/console/sources/",
    "export": "/console/exports/",
    "webhook": "/console/webhooks/",
}
_BY_ID: Final = frozenset({"export", "webhook"})


async def _read(visit: Visit) -> Context:
    base = path_of("datasets", visit.variables["dataset"])
    frame, schema, schemas, lineage, me = await together(
        dataset_frame(visit),
        visit.api.part(f"{base}/schema"),
        visit.api.part(f"{base}/schemas", page_size=_SCHEMAS, page_token=visit.query.get("page_token")),
        visit.api.part("/lineage", dataset=visit.variables["dataset"], columns=True),
        visit.api.part("/me"),
    )
    dataset = frame["dataset"]
    masks = {} if schema.problem else await _masks(visit, schema.value, dataset["name"])
    return {
        **frame,
        "schema": schema,
        "schemas": schemas,
        "lineage": lineage,
        "here": path_of("console", "datasets", dataset["name"], "schema"),
        "action": path_of("datasets", dataset["name"], "schema"),
        "columns": [] if schema.problem else _columns(dataset, schema.value, lineage, masks),
        "versions": [] if schemas.problem else _versions(schemas.value["items"]),
        "mine": _own_access(me),
        "changes": _CHANGES,
        "plan": await _plan(visit, base, dataset),
    }


def _columns(
    dataset: Mapping[str, Any],
    schema: Mapping[str, Any],
    lineage: PagePart,
    masks: Mapping[str, Sequence[str]],
) -> list[dict[str, Any]]:
    """The columns with their parts in the table, and who uses each."""
    made_from = _made_from(dataset, lineage)
    return [
        {
            **field,
            "roles": _roles(dataset, field["name"]),
            "readers": [
                _reader(each, dataset["name"])
                for each in schema["readers"]
                if field["name"] in each["columns"]
            ],
            "targets": made_from.get(field["name"], []),
            "masks": masks.get(field["name"], ()),
        }
        for field in schema["fields"]
    ]


async def _masks(visit: Visit, schema: Mapping[str, Any], dataset: str) -> dict[str, list[str]]:
    """By column, the keys that see no value of it."""
    if not any(each["kind"] == "key" for each in schema["readers"]):
        return {}
    keys = await visit.api.part("/keys", page_size=_KEYS)
    masks: dict[str, list[str]] = {}
    for key in () if keys.problem else keys.value["items"]:
        for grant in key["grants"] or ():
            if fnmatchcase(dataset, grant["datasets"]):
                for column in grant.get("mask") or ():
                    masks.setdefault(column, []).append(key["name"])
    return masks


def _roles(dataset: Mapping[str, Any], name: str) -> list[str]:
    """What the definition of the dataset uses a column for."""
    roles = ["key"] if name in dataset["record_key"] else []
    partitions = [
        each for each in dataset["partition_by"] if name in each.replace("(", " ").replace(")", " ").split()
    ]
    for member, word in (
        ("ordering_field", "orders changes"),
        ("event_time_field", "event time"),
    ):
        if dataset[member] == name:
            roles.append(word)
    if partitions:
        roles.append(f"partitions by {partitions[0]}")
    if name in ((dataset["services"].get("clustering") or {}).get("columns") or ()):
        roles.append("clustered by")
    aggregate = (dataset["aggregates"] or {}).get(name)
    return [*roles, f"merged by {aggregate}"] if isinstance(aggregate, str) else roles


def _broken(reader: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """A reader that a change breaks, and what to do about it on this page."""
    action = reader["action"].replace("with cascade=pause", "by the form below")
    return {**reader, **_reader(reader, dataset), "action": action}


def _reader(reader: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """A reader with the page that shows it. `dataset`: what it reads, which is the name of one without a name."""
    name = reader["name"] or f"{reader['kind']} of {dataset}"
    place = _PLACES.get(reader["kind"])
    link = None if place is None else place + (reader["id"] if reader["kind"] in _BY_ID else name)
    return {"kind": reader["kind"], "name": name, "link": link}


def _made_from(dataset: Mapping[str, Any], lineage: PagePart) -> dict[str, list[str]]:
    """By column, the columns elsewhere that are computed from it."""
    if lineage.problem:
        return {}
    names = {
        # A node without a name has its id as name.
        each["id"]: each["name"] if each["name"] != each["id"] else f"{each['kind']} of {dataset['name']}"
        for each in lineage.value["nodes"]
    }
    targets: dict[str, list[str]] = {}
    for edge in lineage.value["edges"]:
        if edge["from"] == dataset["id"]:
            for pair in edge["columns"] or ():
                targets.setdefault(pair["from"], []).append(
                    f"{names.get(edge['to'], edge['to'])}.{pair['to']}"
                )
    return targets


def _versions(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The schemas, the latest first, each with its differences from the one before."""
    return [
        {
            **schema,
            "differences": None
            if number + 1 == len(items)
            else column_changes(items[number + 1]["fields"], schema["fields"]),
        }
        for number, schema in enumerate(items)
    ]


def _own_access(me: PagePart) -> list[dict[str, Any]]:
    """The grants of the reader that show a part of some datasets only."""
    grants = () if me.problem else me.value.get("grants") or ()
    return [each for each in grants if each.get("where") or each.get("mask")]


async def _plan(visit: Visit, base: str, dataset: Mapping[str, Any]) -> dict[str, Any] | None:
    """A change that is filled in, and what it would break, by a dry run. None if none is filled in."""
    change = schema_change(visit.query)
    if change is None:
        return None
    body = {"changes": [change]}
    headers = {"If-Match": f'"{dataset["version"]}"'}
    try:
        options = {"dry_run": True, "cascade": "pause"}
        trial = PagePart(await visit.api.send("PATCH", base, body, headers=headers, **options))
    except ApiProblem as problem:
        trial = PagePart(problem=problem)
    breaks = () if trial.problem else trial.value.get("broken", ())
    if trial.problem:
        breaks = trial.problem.members.get("breaks", ())
    return {
        "change": change,
        "trial": trial,
        "breaks": [_broken(each, dataset["name"]) for each in breaks],
        "fields": {name: visit.query[name] for name in _FIELDS if visit.query.get(name)},
    }


def schema_change(fields: Mapping[str, str]) -> dict[str, Any] | None:
    """The change of a schema that a form describes; None if it describes none."""
    kind, column, type_ = (fields.get(name, "").strip() for name in ("kind", "column", "type"))
    if not column or kind not in _CHANGES:
        return None
    if kind == "add":
        doc = fields.get("doc", "").strip()
        return {"kind": kind, "field": {"name": column, "type": type_, **({"doc": doc} if doc else {})}}
    if kind == "rename":
        return {"kind": kind, "name": column, "to": fields.get("to", "").strip()}
    if kind == "widen":
        cast = {"explicit_cast": True} if fields.get("explicit_cast") else {}
        return {"kind": kind, "name": column, "type": type_, **cast}
    return {"kind": kind, "name": column}


async def _change(visit: Visit, form: ConsoleForm) -> Done:
    """Makes a change of the schema, for the version that the reader has seen."""
    change = schema_change({name: form.text(name) for name in _FIELDS})
    base = path_of("datasets", visit.variables["dataset"])
    dataset = await visit.api.send(
        "PATCH",
        base,
        {"changes": [] if change is None else [change]},
        headers={"If-Match": f'"{form.text("version")}"'},
        cascade="pause" if form.checked("pause") else None,
    )
    paused = dataset.get("broken", ())
    users = counted(len(paused), "that used the column no longer fits", "that used the column no longer fit")
    note = f" {users}." if paused else ""
    here = visit.link(path_of("console", "datasets", dataset["name"], "schema"))
    return Done(to=here, notice=f"The schema is changed, as version {dataset['version']:,}.{note}")


_PAGE: Final = ConsolePage(path="/datasets/{dataset:str}/schema", template="dataset_schema.html", read=_read)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (ConsoleAction(path="/datasets/{dataset:str}/schema/changes", run=_change, page=_PAGE),)
