"""Components of the OpenAPI document: schemas of the types, in the form that client generators read well."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, get_args

import msgspec

_REFERENCE: Final = "#/components/schemas/"
# Unions get a name, so that generated clients have one type for them.
_UNIONS: Final = {
    frozenset({"RowsSource", "UploadSource"}): "WriteSource",
    frozenset({"ReadRows", "ReadFiles"}): "ReadOutput",
    frozenset(
        {"AddField", "DropField", "RenameField", "WidenField", "RelaxField", "ReorderFields"}
    ): "SchemaChange",
}


def components_of(types: Sequence[Any], symbols: Sequence[type[Enum]] = ()) -> dict[str, dict[str, Any]]:
    """The schemas of the types, and of all that they hold, by name.

    `symbols`: enumerations among them whose values are no words, so that generated code needs names for them.
    """
    whole, drafted = msgspec.json.schema_components(types, ref_template=f"{_REFERENCE}{{name}}")
    unions: dict[str, dict[str, Any]] = {}
    components = {component_name(name): _refined(schema, unions) for name, schema in drafted.items()}
    for schema in whole:
        _refined(schema, unions)
    if len(components) != len(drafted):
        raise ValueError("two types would have the same component name")
    for schema in components.values():
        if schema.get("type") == "object":
            schema.setdefault("additionalProperties", False)
    for enum in symbols:
        components[enum.__name__]["enum"] = [member.value for member in enum]
        components[enum.__name__]["x-enum-varnames"] = [member.name for member in enum]
    return {**components, **unions}


def component_name(type_name: str) -> str:
    """The schema of `JobResponse` is named `Job`."""
    return type_name.removesuffix("Response")


def component_of(type_: Any) -> str:
    """The name of the component that is the schema of a type."""
    parts = frozenset(part.__name__ for part in get_args(type_))
    return _UNIONS[parts] if parts else component_name(type_.__name__)


def _refined(schema: Any, unions: dict[str, dict[str, Any]]) -> Any:
    if isinstance(schema, list):
        return [_refined(each, unions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    refined = {key: _refined(value, unions) for key, value in schema.items() if key != "title"}
    if "properties" in schema:
        refined["properties"] = {name: _refined(each, unions) for name, each in schema["properties"].items()}
    if "$ref" in refined:
        name = refined["$ref"].removeprefix(_REFERENCE)
        return {"$ref": f"{_REFERENCE}{component_name(name)}"}
    if refined.get("type") == "integer":
        refined["format"] = "int64"
    if "enum" in refined:
        refined["type"] = "string"
    if refined.get("type") == "object" and "properties" not in refined:
        refined.setdefault("additionalProperties", True)
    if refined.get("required") == []:
        del refined["required"]
    if refined.get("default") is None or isinstance(refined.get("default"), dict):
        # A generator takes a default inside an object for a value to send.
        refined.pop("default", None)
    return _named(refined, unions)


def _named(schema: dict[str, Any], unions: dict[str, dict[str, Any]]) -> dict[str, Any]:
    members = [each.get("$ref", "").removeprefix(_REFERENCE) for each in schema.get("anyOf", [])]
    name = _UNIONS.get(frozenset(members))
    if name is None:
        return schema
    unions[name] = {"oneOf": schema["anyOf"], "discriminator": schema["discriminator"]}
    return {"$ref": f"{_REFERENCE}{name}"}
