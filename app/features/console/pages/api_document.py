"""The OpenAPI document of the service: what pages read of operations and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from app.features.console.visit import Visit

_DOCUMENT: Final[dict[str, Mapping[str, Any]]] = {}
# The document of one service alone is kept: a test may run several.
_DOCUMENTS_MAX: Final = 4


class ApiOperation(NamedTuple):
    """An operation of the API."""

    id: str
    method: str
    path: str
    summary: str
    tag: str
    scopes: Sequence[str]
    members: Mapping[str, Any]
    """All that the document has of it."""


async def api_document(visit: Visit) -> Mapping[str, Any]:
    """The document. It is read once for each address of the service."""
    if (document := _DOCUMENT.get(visit.url)) is None:
        response = await visit.api.sender.send("GET", "/schema")
        document = await visit.api.decoded(response)
        if len(_DOCUMENT) >= _DOCUMENTS_MAX:
            _DOCUMENT.clear()
        _DOCUMENT[visit.url] = document
    return document


def operations(document: Mapping[str, Any]) -> Iterator[ApiOperation]:
    """All operations, in the order of the document."""
    for path, methods in document["paths"].items():
        for method, members in methods.items():
            scopes = [
                each
                for each_way in members.get("security", ())
                for names in each_way.values()
                for each in names
            ]
            yield ApiOperation(
                id=members["operationId"],
                method=method.upper(),
                path=path,
                summary=members.get("summary", ""),
                tag=members["tags"][0],
                scopes=sorted(set(scopes)),
                members=members,
            )


def resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference leads to, with the members that stand beside the reference."""
    while "$ref" in schema:
        target: Any = document
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[part]
        schema = {**target, **{name: value for name, value in schema.items() if name != "$ref"}}
    return schema


def without_null(document: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema of values other than null, and whether null is one. Of several alternatives, it is the first."""
    schema = resolved(document, schema)
    if "anyOf" not in schema:
        return schema, False
    alternatives = [resolved(document, each) for each in schema["anyOf"]]
    rest = [each for each in alternatives if each.get("type") != "null"]
    own = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**(rest[0] if rest else {}), **own}, len(rest) < len(alternatives)


def type_words(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """The type in a few words: integer or null, one of zstd, lz4, list of text."""
    inner, nullable = without_null(document, schema)
    end = " or null" if nullable else ""
    if "enum" in inner:
        values = [str(each) for each in inner["enum"]]
        return f"one of {', '.join(values)}{end}"
    if inner.get("type") == "array":
        return f"list of {type_words(document, inner.get('items', {}))}{end}"
    if inner.get("type") == "string":
        return f"{inner.get('format', 'text')}{end}"
    return f"{inner.get('type', 'any JSON')}{end}"
