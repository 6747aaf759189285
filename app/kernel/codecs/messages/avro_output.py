"""Arrow values as Avro: a schema of a type, and the bytes of its values.

https://avro.apache.org/docs/1.12.0/specification/

    boolean int8–int32 uint8 uint16     boolean int
    int64 uint32, float double          long, float double
    string large_string binary, decimal string bytes, bytes with the logical type decimal
    date, timestamp                     date, timestamp-millis or -micros; local-timestamp-… without a zone
    struct, list                        record, array
    map<string, …>, other maps          map, array of records with key and value
    nullable                            [null, T] with the default null
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.types as kinds

from app.kernel.codecs.messages.reading import UnsupportedSchema
from app.kernel.format.schema.types import stored_type

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ROWS: Final = ("row", "before", "after")
_PARSED_MAX: Final = 256
_Convert = Callable[[Any], Any]


def avro_schema(kind: pa.StructType, name: str) -> str:
    """The schema of a record with the members of a struct, as JSON. `name`: with its namespace, as in `orders.Row`.

    The members `row`, `before` and `after` of a record `Change` are records `Row`. Raises UnsupportedSchema.
    """
    return json.dumps(_Schemas(name.rpartition(".")[0]).record(kind, name), separators=(",", ":"))


def avro_namespace(text: str) -> str:
    """A text as a namespace: what a name cannot have becomes an underscore."""
    parts = [re.sub(r"[^A-Za-z0-9_]", "_", part) for part in text.split(".") if part]
    return ".".join(f"_{part}" if part[0].isdigit() else part for part in parts) or "_"


def avro_values(values: pa.StructArray, schema: str) -> Iterator[bytes]:
    """The bytes of each value, under a schema that `avro_schema` has made of its type. No value is null."""
    writer_schema = _parsed(schema)
    convert = _converter(values.type)
    for value in values.to_pylist():
        target = io.BytesIO()
        fastavro.schemaless_writer(target, writer_schema, value if convert is None else convert(value))
        yield target.getvalue()


class _Schemas:
    """The types of one schema. Each record is defined where it comes first."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._records: dict[str, pa.DataType] = {}

    def record(self, kind: pa.StructType, name: str) -> dict[str, Any] | str:
        """The definition of a record, or its name if it was defined before."""
        free = name
        number = 1
        while free in self._records:
            if self._records[free] == kind:
                return free
            number += 1
            free = f"{name}_{number}"
        self._records[free] = kind
        return {
            "type": "record",
            "name": free.rpartition(".")[2],
            "namespace": self._namespace,
            "fields": [self._field(field, name) for field in kind],
        }

    def _field(self, field: pa.Field, outer: str) -> dict[str, Any]:
        if _NAME.fullmatch(field.name) is None:
            raise UnsupportedSchema(
                f"{field.name!r} cannot be a name in Avro; expected letters, digits and underscores, no digit first"
            )
        if kinds.is_null(field.type):
            return {"name": field.name, "type": "null", "default": None}
        name = f"{outer}_{field.name}"
        if outer == f"{self._namespace}.Change" and field.name in _ROWS:
            name = f"{self._namespace}.Row"
        definition = {"name": field.name, "type": self._type(field.type, name)}
        if field.nullable:
            definition |= {"type": ["null", definition["type"]], "default": None}
        return definition

    def _type(self, kind: pa.DataType, name: str) -> Any:
        if kinds.is_struct(kind):
            return self.record(kind, name)
        if kinds.is_map(kind):
            if _is_text(kind.key_type):
                return {"type": "map", "values": ["null", self._type(kind.item_type, name)]}
            key = pa.field("key", kind.key_type, nullable=False)
            entry = pa.struct([key, pa.field("value", kind.item_type)])
            return {"type": "array", "items": self.record(entry, f"{name}_entry")}
        if kinds.is_list(kind) or kinds.is_large_list(kind):
            return {"type": "array", "items": ["null", self._type(kind.value_type, name)]}
        flat = stored_type(kind)
        if flat is None:
            raise UnsupportedSchema(f"values of type {kind}")
        return flat.avro


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _converter(kind: pa.DataType) -> _Convert | None:
    """What makes the value for Avro of a Python value that is not null; None if they are the same."""
    if kinds.is_struct(kind):
        return _of_struct(kind)
    if kinds.is_map(kind):
        return _of_map(kind)
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        inner = _converter(kind.value_type)
        if inner is None:
            return None
        element = _or_null(inner)
        return lambda values: [element(value) for value in values]
    flat = stored_type(kind)
    return None if flat is None else flat.to_avro


def _of_struct(kind: pa.StructType) -> _Convert | None:
    members = [(field.name, _converter(field.type)) for field in kind]
    conversions = [(name, _or_null(convert)) for name, convert in members if convert is not None]
    if not conversions:
        return None
    return lambda value: value | {name: convert(value[name]) for name, convert in conversions}


def _of_map(kind: pa.MapType) -> _Convert:
    value = _or_null(_converter(kind.item_type) or _same)
    if _is_text(kind.key_type):
        return lambda entries: {key: value(each) for key, each in entries}
    return lambda entries: [{"key": key, "value": value(each)} for key, each in entries]


def _or_null(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


@lru_cache(maxsize=_PARSED_MAX)
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))
