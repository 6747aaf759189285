"""Components of the OpenAPI document: schemas of the types, in the form that client generators read well."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from inspect import cleandoc
from typing import Any, Final

import msgspec
from msgspec import inspect

from app.http.openapi.attribute_docs import attribute_docs
from app.kernel.format.member_errors import EXPECTED
from app.kernel.format.struct_types import struct_types

_REFERENCE: Final = "#/components/schemas/"
_RESPONSE: Final = "Response"
COMPONENT: Final = "x-component"
"""In a type's `extra_json_schema`: the name of the component that its schema becomes."""
INT64_MAX: Final = 2**63 - 1
# Unions get a name, so that generated clients have one type for them.
_UNIONS: Final = {
    frozenset({"RowsSource", "UploadSource", "UploadsSource"}): "WriteSource",
    frozenset({"ReadRows", "ReadFiles"}): "ReadOutput",
    frozenset(
        {"AddField", "DropField", "RenameField", "WidenField", "RelaxField", "ReorderFields"}
    ): "SchemaChange",
}


class Components:
    """What a document states once, by name; `schema_of` adds the schemas that a type needs."""

    def __init__(self) -> None:
        self.responses: dict[str, dict[str, Any]] = {}
        self.schemas: dict[str, dict[str, Any]] = {}
        self._classes: dict[str, type[Any]] = {}

    def schema_of(self, type_: Any) -> dict[str, Any]:
        """The schema of a type, which refers to components for structs and enumerations."""
        (draft,), parts = msgspec.json.schema_components([type_], ref_template=f"{_REFERENCE}{{name}}")
        classes = {class_.__name__: class_ for class_ in struct_types(type_)}
        for name, part in parts.items():
            self._add(component_name(name), classes[name], part)
        schema: dict[str, Any] = self._refined(draft)
        return schema

    def name_symbols(self, enums: Iterable[type[Enum]]) -> None:
        """Names the members of enumerations whose values are no words, for generated code."""
        for enum in enums:
            self.schemas[enum.__name__]["enum"] = [member.value for member in enum]
            self.schemas[enum.__name__]["x-enum-varnames"] = [member.name for member in enum]

    def _add(self, name: str, class_: type[Any], draft: dict[str, Any]) -> None:
        owner = self._classes.setdefault(name, class_)
        if owner is not class_:
            raise ValueError(f"two types would have the component name {name}: {owner}, {class_}")
        if name in self.schemas:
            return
        self.schemas[name] = schema = self._refined(draft)
        if "description" in schema:
            schema["description"] = " ".join(cleandoc(schema["description"]).split())
        if schema.get("type") == "object":
            schema.setdefault("additionalProperties", False)
        if issubclass(class_, Enum):
            # In the order of its definition, not of the alphabet.
            schema["enum"] = [member.value for member in class_]
        if issubclass(class_, msgspec.Struct):
            _mark_times(class_, schema["properties"])
            docs = attribute_docs(class_)
            config = class_.__struct_config__
            if config.tag is not None:
                schema["properties"][config.tag_field]["description"] = f"Always `{config.tag}`."
            names = zip(class_.__struct_encode_fields__, class_.__struct_fields__, strict=True)
            for encoded_name, attribute in names:
                if attribute in docs:
                    schema["properties"][encoded_name].setdefault("description", docs[attribute])
            if class_.__name__.endswith(_RESPONSE) and not config.omit_defaults:
                _require_written(class_, schema)

    def _refined(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._refined(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        new_schema = {
            key: value if key in ("default", "examples", "enum") else self._refined(value)
            for key, value in schema.items()
            if key not in ("title", EXPECTED)
        }
        if "properties" in schema:
            new_schema["properties"] = {
                name: self._refined(each) for name, each in schema["properties"].items()
            }
        if "$ref" in new_schema:
            name = component_name(new_schema["$ref"].removeprefix(_REFERENCE))
            siblings = {key: value for key, value in new_schema.items() if key == "description"}
            return {"$ref": f"{_REFERENCE}{name}", **siblings}
        _plain(new_schema)
        return self._named(new_schema)

    def _named(self, schema: dict[str, Any]) -> dict[str, Any]:
        members = [each.get("$ref", "").removeprefix(_REFERENCE) for each in schema.get("anyOf", [])]
        name = schema.pop(COMPONENT, None) or _UNIONS.get(frozenset(members))
        if name is None:
            return schema
        if "anyOf" not in schema:
            self.schemas[name] = schema
            return {"$ref": f"{_REFERENCE}{name}"}
        siblings = {key: schema[key] for key in ("description", "default") if key in schema}
        union = {key: value for key, value in schema.items() if key not in siblings}
        # Parsers that convert numbers to strings find two members of a `oneOf` for a number, and refuse it.
        kind = "oneOf" if "discriminator" in union else "anyOf"
        self.schemas[name] = {kind if key == "anyOf" else key: value for key, value in union.items()}
        return {"$ref": f"{_REFERENCE}{name}", **{k: v for k, v in siblings.items() if k == "description"}}


def component_name(type_name: str) -> str:
    """A response is named after what it holds: `WebhookResponse` is the schema `Webhook`, `JobResponse` is `Job`."""
    return type_name.removesuffix(_RESPONSE)


def _require_written(class_: type[msgspec.Struct], schema: dict[str, Any]) -> None:
    """A response has all its members, also those that have a default where a request shares them, but unset ones."""
    fields = msgspec.structs.fields(class_)
    schema["required"] = [field.encode_name for field in fields if field.default is not msgspec.UNSET]
    for member in schema["properties"].values():
        member.pop("default", None)


def _plain(schema: dict[str, Any]) -> None:
    """Leaves out what generators take amiss, and adds what they need."""
    if schema.get("type") == "integer":
        schema["format"] = "int64"
        if schema.get("maximum", 0) >= INT64_MAX:
            # The format says it; readers of JSON that know doubles only would take it for one more.
            del schema["maximum"]
    if "enum" in schema:
        schema["type"] = "string"
    if schema.get("type") == "object" and "properties" not in schema:
        schema.setdefault("additionalProperties", True)
    if schema.get("required") == []:
        del schema["required"]
    if schema.get("default") is None or isinstance(schema.get("default"), dict):
        # A generator takes a default inside an object for a value to send.
        schema.pop("default", None)


def _mark_times(class_: type[msgspec.Struct], properties: dict[str, dict[str, Any]]) -> None:
    """Gives times their format, which msgspec states only of those that must have a time zone."""
    type_info = inspect.type_info(class_)
    for field in type_info.fields if isinstance(type_info, inspect.StructType) else ():
        types = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
        plain = [each.type if isinstance(each, inspect.Metadata) else each for each in types]
        if any(isinstance(each, inspect.DateTimeType) for each in plain):
            shape = properties[field.encode_name]
            (time,) = [each for each in shape.get("anyOf", [shape]) if each["type"] == "string"]
            time["format"] = "date-time"
