"""Component schemas as Python source: structs, literals and unions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from keyword import iskeyword
from typing import Any, Final

from clients.generator.components import Components, Schema, is_mapping, union_of

_LINE_MAX: Final = 120
_SCALARS: Final = {"boolean": "bool", "integer": "int", "number": "float", "string": "str"}
# Members that services of earlier releases do not send, with what a client reads then.
_ABSENT_BEFORE: Final = {
    ("Job", "dataset"): " = None",
    ("Job", "timings"): " = {}",
    ("Job", "replans"): " = 0",
}
_NULL: Final = {"type": "null"}
# By component: the class of headwater_client.html that shows it in notebooks.
HTML: Final = {"ChangesPage": "ChangesHtml", "Dataset": "DatasetHtml", "RowsPage": "RowsHtml"}
# In the client `format` is always an encoding of rows, and `form` has a name that is clearly another one.
_NAMES: Final = {"self": "self_", "form": "delivery_format"}


class Structs:
    """The source of each component."""

    def __init__(self, components: Components) -> None:
        self._components = components

    def source(self, name: str) -> str | None:
        """The definition of a component; None for an enumeration that only responses have, which is a string."""
        schema = self._components.schemas[name]
        if "properties" in schema:
            return "\n".join(self._struct(name, schema))
        if "enum" in schema:
            if name not in self._components.requests:
                return None
            value = f"Literal[{', '.join(repr(each) for each in schema['enum'])}]"
        else:
            value = " | ".join(self._type(each, strict=True) for each in union_of(schema))
        return "\n".join([f"{name} = {value}", *_docstring(schema.get("description", ""), "")])

    def is_union(self, name: str) -> bool:
        """Whether the component is a union, whose members have to be defined before it."""
        return bool(union_of(self._components.schemas[name]))

    def _struct(self, name: str, schema: Schema) -> Iterator[str]:
        properties: dict[str, Schema] = schema["properties"]
        # In a response, an enumeration may have new values in a later release.
        strict = name not in self._components.responses
        options = ["frozen=True", "kw_only=True"]
        if strict:
            options.append("omit_defaults=True")
        tags = {
            member: each["enum"][0] for member, each in properties.items() if len(each.get("enum", ())) == 1
        }
        options += [f"tag_field={member!r}, tag={value!r}" for member, value in tags.items()]
        names = {member: _attribute(member) for member in properties if member not in tags}
        renamed = {attribute: member for member, attribute in names.items() if attribute != member}
        if renamed:
            options.append(f"rename={renamed!r}")
        bases = [*([HTML[name]] if name in HTML else []), "msgspec.Struct"]
        yield f"class {name}({', '.join([*bases, *options])}):"
        yield from _docstring(schema["description"], "    ")
        yield ""
        required = schema.get("required", ())
        for member, attribute in names.items():
            shape = properties[member]
            annotation = self._type(shape, strict=strict)
            default = "" if member in required else _default(shape, annotation)
            default = _ABSENT_BEFORE.get((name, member), default)
            if default == " = None" and not annotation.endswith(("| None", "Any")):
                annotation += " | None"
            yield f"    {attribute}: {annotation}{default}"
            yield from _docstring(shape.get("description", ""), "    ")

    def _type(self, shape: Schema, *, strict: bool) -> str:
        """The annotation of a value. `strict`: of an enumeration, the values that are allowed."""
        if "$ref" in shape:
            return self._reference(shape["$ref"], strict=strict)
        if "anyOf" in shape:
            kinds = [self._type(each, strict=strict) for each in shape["anyOf"] if each != _NULL]
            return " | ".join([*kinds, "None"] if _NULL in shape["anyOf"] else kinds)
        kind = shape.get("type")
        if kind == "array":
            return f"tuple[{self._type(shape['items'], strict=strict)}, ...]"
        if kind == "object":
            values = shape["additionalProperties"]
            return f"dict[str, {self._type(values, strict=strict) if isinstance(values, dict) else 'Any'}]"
        if shape.get("format") == "date-time":
            return "datetime"
        return "Any" if kind is None else _SCALARS[kind]

    def _reference(self, reference: str, *, strict: bool) -> str:
        name, schema = self._components.schema(reference)
        if is_mapping(schema):
            return "dict[str, Any]"
        return "str" if "enum" in schema and not strict else name


def _default(shape: Schema, annotation: str) -> str:
    """The default of a member that may be absent."""
    value: Any = shape.get("default")
    if value == []:
        return " = ()"
    if value is not None:
        return f" = {value!r}"
    is_mapping_only = annotation.startswith("dict") and not annotation.endswith("| None")
    return " = {}" if is_mapping_only else " = None"


def _attribute(member: str) -> str:
    name = _NAMES.get(member, member)
    return f"{name}_" if iskeyword(name) else name


def _docstring(text: str, indent: str) -> list[str]:
    """The lines of a docstring; no line for no text."""
    if not text:
        return []
    text = text.replace("\\", "\\\\")
    if len(indent) + len(text) + 6 <= _LINE_MAX:
        return [f'{indent}"""{text}"""']
    lines = textwrap.wrap(
        f'"""{text}',
        width=_LINE_MAX,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [*lines, f'{indent}"""']
