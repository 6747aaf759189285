"""The settings of a dataset as a form, made from what the API declares, and the end of a dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.api_document import api_document, resolved, without_null
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.field_values import FieldFault, json_value
from app.features.console.pages.json_text import finite_number
from app.features.console.visit import Visit, path_of, together
from app.kernel.format.definition.dataset_rules import RETENTION_CHANGES_MAX, RETENTION_SECONDS_MAX
from app.kernel.format.definition.policy_rules import SERVICE_BOUNDS
from app.kernel.format.definition.settings import EXPECTED_SECONDS_MAX

_REQUEST: Final = "UpdateDataset"
_ELSEWHERE: Final = frozenset({"changes"})
"""Members with pages of their own: changes of the schema."""
_FIELD_TYPES: Final = {"integer": "number", "number": "number", "string": "text"}
_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "expected_every_seconds": (1, EXPECTED_SECONDS_MAX),
    "changelog.retention.seconds": (1, RETENTION_SECONDS_MAX),
    "changelog.retention.changes": (1, RETENTION_CHANGES_MAX),
    **{f"services.{place}": bounds for place, bounds in SERVICE_BOUNDS.items()},
}
"""The bounds of numbers that the API document does not have."""
_NULL: Final = re.compile(r"\bnull\b")
_EXACT_MAX: Final = 2**53
"""The largest number that browsers compare exactly."""
_LEFT_OUT: Final = object()
"""A value that the request leaves out."""


class DatasetSetting(NamedTuple):
    """A setting. `kind`: `group` (with members), `choice`, `box`, `number`, `text`, `list`, `map` or `json`."""

    name: str
    """Its place in the request: `services.compaction.logs`."""
    label: str
    kind: str
    description: str
    value: str
    """What it is now, as the form has it."""
    default: str
    choices: tuple[str, ...] = ()
    nullable: bool = False
    step: str = ""
    depth: int = 0
    least: int | None = None
    largest: int | None = None
    """The bounds of a number."""

    @property
    def pointer(self) -> str:
        """Its place as problem documents name it."""
        return "/" + self.name.replace(".", "/")


async def _read(visit: Visit) -> Context:
    frame, document = await together(dataset_frame(visit), api_document(visit))
    sections: list[dict[str, Any]] = []
    for setting in settings_of(document, frame["dataset"]):
        if setting.depth == 0:
            sections.append({"head": setting, "settings": []})
        if setting.depth or setting.kind != "group":
            sections[-1]["settings"].append(setting)
    return {
        **frame,
        "sections": sections,
        "may_manage": visit.may("manage"),
        "etag": f'"{frame["dataset"]["version"]}"',
        "errors": {},
    }


def settings_of(document: Mapping[str, Any], dataset: Mapping[str, Any]) -> Iterator[DatasetSetting]:
    """All settings that a request can change, each group before its members."""
    request = document["components"]["schemas"][_REQUEST]
    for name, schema in request["properties"].items():
        if name not in _ELSEWHERE:
            yield from _settings(document, name, schema, dataset.get(name), 0)


def _settings(
    document: Mapping[str, Any], name: str, schema: Mapping[str, Any], value: Any, depth: int
) -> Iterator[DatasetSetting]:
    inner, nullable = without_null(document, schema)
    description = schema.get("description") or inner.get("description", "")
    label = name.rsplit(".", 1)[-1].replace("_", " ")
    properties = inner.get("properties")
    default = resolved(document, schema).get("default", inner.get("default"))
    least, largest = _bounds(name, inner)
    shared: dict[str, Any] = {
        "name": name,
        "least": least,
        "largest": largest,
        "label": label,
        "description": _in_words(description, properties is not None, _range(least, largest, description)),
        "nullable": nullable,
        "depth": depth,
        "default": _text(default),
    }
    if properties is not None:
        yield DatasetSetting(kind="group", value="on" if value is not None else "", **shared)
        members = value if isinstance(value, dict) else {}
        for member, member_schema in properties.items():
            # A group that is off shows what it would be made of.
            current = (
                members[member] if member in members else resolved(document, member_schema).get("default")
            )
            yield from _settings(document, f"{name}.{member}", member_schema, current, depth + 1)
        return
    kind, choices = _kind(document, inner)
    step = "any" if inner.get("type") == "number" else ""
    text = (
        "\n".join(f"{key}: {each}" for key, each in value.items())
        if kind == "map" and value
        else _text(value)
    )
    yield DatasetSetting(kind=kind, value="" if text == "{}" else text, choices=choices, step=step, **shared)


def _kind(document: Mapping[str, Any], inner: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    if "enum" in inner:
        return "choice", tuple(str(each) for each in inner["enum"])
    if inner.get("type") == "boolean":
        return "box", ()
    if inner.get("type") == "array":
        items, _ = without_null(document, inner.get("items", {}))
        return ("list" if items.get("type") == "string" else "json"), ()
    values = inner.get("additionalProperties")
    if isinstance(values, dict) and resolved(document, values).get("type") == "string":
        return "map", ()
    return _FIELD_TYPES.get(inner.get("type", ""), "json"), ()


def _bounds(name: str, inner: Mapping[str, Any]) -> tuple[int | None, int | None]:
    least, largest = _BOUNDS.get(name) or (inner.get("minimum"), inner.get("maximum"))
    return least, None if largest is None or largest > _EXACT_MAX else largest


def _range(least: int | None, largest: int | None, description: str) -> str:
    """The bounds in words, unless the description has them."""
    if least is None:
        return ""
    if largest is None:
        return f"At least {least:,}."
    return "" if f"{largest:,}" in description else f"{least:,}–{largest:,}."


def _in_words(description: str, is_group: bool, bounds: str) -> str:
    """A description of the API document as one of a field: what is null there is an empty field here, or a group that
    is off.
    """
    text = description.replace("The new ", "The ").replace("; as before, if it is left out", "")
    return f"{_NULL.sub('off' if is_group else 'empty', text)} {bounds}".strip()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


async def _save(visit: Visit, form: ConsoleForm) -> Done:
    path = path_of("datasets", visit.variables["dataset"])
    dataset, document = await together(visit.api.get(path), api_document(visit))
    request = document["components"]["schemas"][_REQUEST]
    body: dict[str, Any] = {}
    for name, schema in request["properties"].items():
        if name in _ELSEWHERE:
            continue
        form_now = ConsoleForm(
            {each.name: [each.value] for each in _settings(document, name, schema, dataset.get(name), 0)}
        )
        value = _typed(document, name, schema, form)
        if value is _LEFT_OUT:
            if name in form.fields:
                raise FieldFault(name, "expected a value")
        elif value != _typed(document, name, schema, form_now):
            body[name] = value
    if not body:
        return Done(to=_page(dataset["name"]), notice="Nothing was changed.")
    options = {"cascade": "pause"} if form.checked("cascade") else {}
    after = await visit.api.send("PATCH", path, body, headers={"If-Match": form.text("etag")}, **options)
    return Done(to=_page(after["name"]), notice=f"Changed: {', '.join(sorted(body))}.")


def _typed(document: Mapping[str, Any], name: str, schema: Mapping[str, Any], form: ConsoleForm) -> Any:
    """The value of a setting that the form has. Raises FieldFault for what has not the form of its type."""
    inner, nullable = without_null(document, schema)
    if (properties := inner.get("properties")) is not None:
        if nullable and not form.checked(name):
            return None
        members = {
            member: _typed(document, f"{name}.{member}", each, form) for member, each in properties.items()
        }
        return {member: value for member, value in members.items() if value is not _LEFT_OUT}
    kind, _ = _kind(document, inner)
    text = form.text(name)
    if kind == "box":
        return form.checked(name)
    if not text:
        return None if nullable else {"list": [], "map": {}}.get(kind, _LEFT_OUT)
    return _parsed(name, kind, text)


def _parsed(name: str, kind: str, text: str) -> Any:
    if kind == "number":
        try:
            return finite_number(text) if set(text) & set(".eE") else int(text)
        except ValueError:
            return text
    if kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == "map":
        pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
        return {key.strip(): value.strip() for key, _, value in pairs}
    if kind == "json":
        return json_value(name, text)
    return text


def _page(name: str) -> str:
    return f"/console/datasets/{name}/settings"


async def _delete(visit: Visit, form: ConsoleForm) -> Done:
    path = path_of("datasets", visit.variables["dataset"])
    dataset = await visit.api.get(path)
    if form.text("confirm") != dataset["name"]:
        raise FieldFault(
            "confirm", f"type {dataset['name']} to delete the dataset with its rows and its feed"
        )
    await visit.api.send("DELETE", path, headers={"If-Match": form.text("etag")})
    return Done(to="/console/datasets", notice=f"The dataset {dataset['name']} is deleted.")


PAGE: Final = ConsolePage(path="/datasets/{dataset:str}/settings", template="settings.html", read=_read)
PAGES: Final = (PAGE,)
ACTIONS: Final = (
    ConsoleAction(path="/datasets/{dataset:str}/settings", run=_save, page=PAGE),
    ConsoleAction(path="/datasets/{dataset:str}/delete", run=_delete, page=PAGE),
)
