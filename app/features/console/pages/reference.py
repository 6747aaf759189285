"""The reference of the API: all operations, and each with its parameters, bodies and problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.api_document import (
    ApiOperation,
    api_document,
    operations,
    resolved,
    type_words,
    without_null,
)
from app.features.console.visit import ApiProblem, Visit

_DEPTH_MAX: Final = 4


async def _read(visit: Visit) -> Context:
    document = await api_document(visit)
    groups: dict[str, list[ApiOperation]] = {each["name"]: [] for each in document.get("tags", ())}
    for each in operations(document):
        groups.setdefault(each.tag, []).append(each)
    about = {each["name"]: each.get("description", "") for each in document.get("tags", ())}
    return {"groups": {name: each for name, each in groups.items() if each}, "about": about}


async def _read_operation(visit: Visit) -> Context:
    document = await api_document(visit)
    name = visit.variables["operation"]
    matches = [each for each in operations(document) if each.id == name]
    if not matches:
        raise ApiProblem(
            {
                "type": "/problems/not-found",
                "title": "the resource does not exist",
                "status": 404,
                "detail": f"no operation has the id {name!r}; /console/reference lists all",
            }
        )
    operation = matches[0]
    return {
        "operation": operation,
        "parameters": [_parameter(document, each) for each in operation.members.get("parameters", ())],
        "bodies": list(_bodies(document, operation.members.get("requestBody", {}))),
        "responses": [
            {
                "status": status,
                "description": resolved(document, response).get("description", ""),
                "bodies": list(_bodies(document, resolved(document, response)))
                if status.startswith("2")
                else [],
            }
            for status, response in operation.members["responses"].items()
        ],
    }


def _parameter(document: Mapping[str, Any], parameter: Mapping[str, Any]) -> Mapping[str, Any]:
    members = resolved(document, parameter)
    schema = members.get("schema", {})
    inner, _ = without_null(document, schema)
    return {
        "name": members["name"],
        "place": members["in"],
        "type": type_words(document, schema),
        "required": members.get("required", False),
        "description": members.get("description") or inner.get("description", ""),
        "default": inner.get("default"),
    }


def _bodies(document: Mapping[str, Any], holder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The bodies of a request or a response, by media type, with their members and an example."""
    for media_type, members in holder.get("content", {}).items():
        schema = members.get("schema", {})
        examples = [resolved(document, each) for each in members.get("examples", {}).values()]
        yield {
            "media_type": media_type,
            "members": list(_members(document, schema, 0)),
            "example": next((each.get("value") for each in examples), None),
        }


def _members(
    document: Mapping[str, Any], schema: Mapping[str, Any], depth: int, above: tuple[str, ...] = ()
) -> Iterator[Mapping[str, Any]]:
    """The members of an object, each before those of its own, as deep as readers can follow."""
    reference = str(schema.get("$ref", ""))
    inner, _ = without_null(document, schema)
    if inner.get("type") == "array":
        yield from _members(document, inner.get("items", {}), depth, above)
        return
    required = inner.get("required", ())
    if depth >= _DEPTH_MAX or (reference and reference in above):
        return
    for name, member in inner.get("properties", {}).items():
        own, _ = without_null(document, member)
        yield {
            "name": name,
            "depth": depth,
            "type": type_words(document, member),
            "required": name in required,
            "description": member.get("description") or own.get("description", ""),
        }
        yield from _members(document, member, depth + 1, (*above, reference))


PAGES: Final = (
    ConsolePage(path="/reference", template="reference.html", read=_read),
    ConsolePage(path="/reference/{operation:str}", template="operation.html", read=_read_operation),
)
