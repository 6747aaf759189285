"""How types and defaults of the OpenAPI document are written in tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_FORMATS: Final = {"date-time": "time", "int64": "integer", "double": "number", "uri": "URL"}
_UNLIMITED: Final = 2**63 - 1


def shown_type(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """The type of a value, with its range: `integer 1–1,000`, `list of text`, `CreateBucket`."""
    options = [each for each in schema.get("anyOf", (schema,)) if each.get("type") != "null"]
    return " or ".join(dict.fromkeys(_one(document, each) for each in options))


def _one(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        named = document["components"]["schemas"][name]
        return _one(document, named) if "enum" in named else f"`{name}`"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            values = f" of {shown_type(document, schema['items'])}" if "items" in schema else ""
            return f"list{_range(schema, 'Items')}{values}"
        case "object":
            values = schema.get("additionalProperties")
            return (
                f"object of {shown_type(document, values)}"
                if isinstance(values, dict) and values
                else "object"
            )
        case "integer" | "number" as kind:
            return f"{kind}{_range(schema, 'imum')}"
        case "string":
            return f"{_FORMATS.get(schema.get('format', ''), 'text')}{_range(schema, 'Length')}"
        case str() as kind:
            return kind
        case _:
            return "any"


def _range(schema: Mapping[str, Any], end: str) -> str:
    """The limits of a value: ` 1–1,000`, ` ≥ 1`, ` ≤ 200 characters`."""
    least, most = schema.get(f"min{end}"), schema.get(f"max{end}")
    unit = {"Length": " characters", "Items": ""}.get(end, "")
    if most is not None and most >= _UNLIMITED:
        most = None
    if least is not None and most is not None:
        return f" {least:,}–{most:,}{unit}" if least != most else f" {least:,}{unit}"
    if most is not None:
        return f" ≤ {most:,}{unit}"
    return f" ≥ {least:,}{unit}" if least else ""


def default_of(schema: Mapping[str, Any]) -> str:
    """The default of a value, empty where there is no such value."""
    if "default" not in schema or schema["default"] is None:
        return ""
    match schema["default"]:
        case [] | {}:
            return "empty"
        case bool() as flag:
            return f"`{str(flag).lower()}`"
        case int() | float() as number:
            return f"{number:,}"
        case other:
            return f"`{other}`"
