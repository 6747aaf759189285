"""Examples of the OpenAPI document, composed from the schemas: what a property declares, or what its name stands for.

A field declares an example of its own with `Annotated[str, msgspec.Meta(examples=["…"])]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_REFERENCE: Final = "#/components/schemas/"
_ID: Final = "01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"
_TIME: Final = "2026-11-21T10:00:00Z"

BY_NAME: Final[Mapping[str, Any]] = {
    "id": _ID,
    "name": "orders",
    "dataset": "orders",
    "url": "https://hooks.example.com/headwater",
    "where": "amount > 100",
    "columns": ["id", "amount"],
    "partitions": ["day=2026-11-21"],
    "since": 120,
    "next_since": 145,
    "position": 120,
    "offset": 120,
    "pending": 25,
    "version": 7,
    "revision": 3,
    "batch_changes_max": 100,
    "seconds": 604_800,
    "status": 200,
    "attempts": 1,
    "type": "string",
    "title": "There is no such thing",
    "detail": "there is no dataset 'orders'",
    "instance": "/datasets/orders",
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "self": f"/datasets/{_ID}",
    "events": f"/jobs/{_ID}/events",
    "deliveries": f"/webhooks/{_ID}/deliveries",
    "checksum": "99aa06d3014798d86001c324468d497f",
}
"""What a string or number of this name is, where its schema does not say; of another type it is not used."""
_BY_TYPE: Final = {"string": "", "integer": 0, "number": 0.5, "boolean": False, "object": {}, "array": []}
_PYTHON: Final = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def example_of(name: str, schemas: Mapping[str, Any]) -> Any:
    """An example of a component."""
    return _example(schemas[name], name, schemas, (name,))


def _example(schema: Mapping[str, Any], name: str, schemas: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    if "$ref" in schema:
        component = schema["$ref"].removeprefix(_REFERENCE)
        if component in above:
            return None
        return _example(schemas[component], name, schemas, (*above, component))
    for key in ("examples", "enum"):
        if key in schema:
            return schema[key][0]
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return _of_union(options, name, schemas, above)
    return _of_type(schema, name, schemas, above)


def _of_union(options: Any, name: str, schemas: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    nullable = any(each.get("type") == "null" for each in options)
    for each in options:
        has_example = isinstance(BY_NAME.get(name), _PYTHON.get(each.get("type", ""), ()))
        # What may be absent is shown where there is something to show.
        if each.get("type") != "null" and (
            not nullable or has_example or "format" in each or "$ref" not in each
        ):
            # A time that something happened at is null until then; one that selects something is shown.
            selects_time = each.get("format") == "date-time" and not name.endswith("_at")
            if nullable and not has_example and not selects_time:
                continue
            return _example(each, name, schemas, above)
    return None


def _of_type(schema: Mapping[str, Any], name: str, schemas: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    kind = schema.get("type", "object")
    if "properties" in schema:
        return _of_object(schema, schemas, above)
    if schema.get("format") == "date-time" or name.endswith("_at"):
        return _TIME
    example = BY_NAME.get(name)
    if isinstance(example, _PYTHON[kind]) and _fits(example, schema):
        return example
    if kind == "string" and (name.endswith("_id") or name == "actor"):
        return _ID
    if kind == "array" and "items" in schema:
        return [_example(schema["items"], name, schemas, above)] * max(schema.get("minItems", 1), 1)
    if kind == "string":
        return name
    return max(schema.get("minimum", 0), 0) if kind == "integer" else _BY_TYPE[kind]


def _of_object(schema: Mapping[str, Any], schemas: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    required_names = schema.get("required", ())
    members = {name: _example(each, name, schemas, above) for name, each in schema["properties"].items()}
    return {
        name: value
        for name, value in members.items()
        if name in required_names or (value is not None and _is_usual(name, schema["properties"][name]))
    }


def _is_usual(name: str, schema: Mapping[str, Any]) -> bool:
    """Whether an example shows a member that may be left out."""
    return name in BY_NAME or "default" in schema or "examples" in schema


def _fits(example: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(example, list):
        return schema.get("items", {}).get("type") == "string"
    return not isinstance(example, int) or example <= schema.get("maximum", example)
