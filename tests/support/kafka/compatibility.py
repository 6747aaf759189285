"""Whether data of one Avro schema can be read with another one, by the rules of Avro's specification.

https://avro.apache.org/docs/1.12.0/specification/#schema-resolution
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_PROMOTIONS: Final = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
_NAMED: Final = ("record", "enum", "fixed")

LEVELS: Final = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
"""The levels of compatibility of a registry."""


def is_compatible(new: Any, earlier: list[Any], level: str) -> bool:
    """Whether a schema follows the earlier ones of its subject, the last one last, at a level."""
    against = earlier if level.endswith("_TRANSITIVE") else earlier[-1:]
    backward = level.startswith(("BACKWARD", "FULL"))
    forward = level.startswith(("FORWARD", "FULL"))
    return all(
        (not backward or can_read(new, old)) and (not forward or can_read(old, new)) for old in against
    )


def can_read(reader: Any, writer: Any) -> bool:
    """Whether data that was written with one schema can be read with the other."""
    return _Resolution(reader, writer).reads(reader, writer)


class _Resolution:
    """Compares two schemas, each with its named types."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self._reader_types = dict(_named_types(reader))
        self._writer_types = dict(_named_types(writer))
        self._assumed: set[tuple[str, str]] = set()

    def reads(self, reader: Any, writer: Any) -> bool:
        if isinstance(writer, list):
            return all(self.reads(reader, each) for each in writer)
        if isinstance(reader, list):
            return any(self.reads(each, writer) for each in reader)
        reader, writer = _resolved(reader, self._reader_types), _resolved(writer, self._writer_types)
        kind, written = _kind(reader), _kind(writer)
        if kind in _NAMED and kind == written:
            return self._named(kind, reader, writer)
        if kind == written == "array":
            return self.reads(reader["items"], writer["items"])
        if kind == written == "map":
            return self.reads(reader["values"], writer["values"])
        return kind == written or kind in _PROMOTIONS.get(written, set())

    def _named(self, kind: str, reader: dict[str, Any], writer: dict[str, Any]) -> bool:
        if _short(reader["name"]) != _short(writer["name"]):
            return False
        if kind == "fixed":
            return bool(reader["size"] == writer["size"])
        if kind == "enum":
            return "default" in reader or set(writer["symbols"]) <= set(reader["symbols"])
        pair = reader["name"], writer["name"]
        if pair in self._assumed:
            return True
        self._assumed.add(pair)
        fields = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            found = next(
                (fields[name] for name in (field["name"], *field.get("aliases", ())) if name in fields), None
            )
            if found is None and "default" not in field:
                return False
            if found is not None and not self.reads(field["type"], found["type"]):
                return False
        return True


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _resolved(schema: Any, types: dict[str, Any]) -> Any:
    if isinstance(schema, dict) and isinstance(schema["type"], dict):
        schema = schema["type"]
    return types.get(_short(schema), schema) if isinstance(schema, str) else schema


def _named_types(schema: Any) -> Iterator[tuple[str, Any]]:
    """The named types that a schema defines, by their names without namespace."""
    if isinstance(schema, list):
        for each in schema:
            yield from _named_types(each)
    elif isinstance(schema, dict):
        if schema["type"] in _NAMED:
            yield _short(schema["name"]), schema
        for part in (schema["type"], schema.get("items"), schema.get("values")):
            if isinstance(part, dict | list):
                yield from _named_types(part)
        for field in schema.get("fields", ()):
            yield from _named_types(field["type"])
