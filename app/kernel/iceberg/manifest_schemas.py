"""The Avro schemas of manifests and of manifest lists, with the field ids that readers find fields by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from app.kernel.iceberg.partition_specs import PartitionColumn

_OF_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")
_PLAIN: Final[dict[str, Any]] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
}
_NUMBERS: Final = re.compile(r"\d+")


@lru_cache(maxsize=64)
def decimal_bytes(precision: int) -> int:
    """The number of bytes that hold every decimal of the precision."""
    greatest: int = 10**precision - 1
    return greatest.bit_length() // 8 + 1


def fixed_bytes(kind: str) -> int | None:
    """How many bytes each value of one of Iceberg's types has in Avro; None if they have no fixed number."""
    return decimal_bytes(int(_NUMBERS.findall(kind)[0])) if kind.startswith("decimal") else None


def _avro_type(kind: str) -> Any:
    size = fixed_bytes(kind)
    if size is None:
        return _PLAIN[kind]
    precision, scale = (int(number) for number in _NUMBERS.findall(kind))
    return {
        "type": "fixed",
        "name": f"decimal_{precision}_{scale}",
        "size": size,
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


def _needed(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


def _optional(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _record(name: str, fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _map(key_id: int, value: str) -> dict[str, Any]:
    """A map of ids to values. Avro's own maps have texts as keys."""
    fields = [_needed(key_id, "key", "int"), _needed(key_id + 1, "value", value)]
    return {"type": "array", "logicalType": "map", "items": _record(f"k{key_id}_v{key_id + 1}", fields)}


def _list(element_id: int, kind: Any) -> dict[str, Any]:
    return {"type": "array", "items": kind, "element-id": element_id}


def _partition(columns: Sequence[PartitionColumn]) -> dict[str, Any]:
    """The record of the values of a partition. A type with a name is defined where it is first used."""
    fields, names = [], set()
    for column in columns:
        kind = _avro_type(column.result)
        type_name = kind.get("name") if isinstance(kind, dict) else None
        if type_name in names:
            kind = type_name
        names.update([type_name] if type_name else [])
        fields.append(
            {**_optional(column.id, avro_name(column.name), kind), "iceberg-field-name": column.name}
        )
    return _record("r102", fields)


def avro_name(name: str) -> str:
    """The name with what Avro's names may have: each other character by its code point."""
    plain = _OF_NAMES.sub(lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def entry_schema(columns: Sequence[PartitionColumn], format_version: int) -> dict[str, Any]:
    """The schema of the entries of a manifest. `columns`: of the partition spec."""
    file_fields = [
        _needed(134, "content", "int"),
        _needed(100, "file_path", "string"),
        _needed(101, "file_format", "string"),
        _needed(102, "partition", _partition(columns)),
        _needed(103, "record_count", "long"),
        _needed(104, "file_size_in_bytes", "long"),
        _optional(108, "column_sizes", _map(117, "long")),
        _optional(109, "value_counts", _map(119, "long")),
        _optional(110, "null_value_counts", _map(121, "long")),
        _optional(137, "nan_value_counts", _map(138, "long")),
        _optional(125, "lower_bounds", _map(126, "bytes")),
        _optional(128, "upper_bounds", _map(129, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", _list(133, "long")),
        _optional(135, "equality_ids", _list(136, "int")),
        _optional(140, "sort_order_id", "int"),
    ]
    if format_version > 2:
        file_fields.append(_optional(142, "first_row_id", "long"))
    file_fields.append(_optional(143, "referenced_data_file", "string"))
    if format_version > 2:
        file_fields.append(_optional(144, "content_offset", "long"))
        file_fields.append(_optional(145, "content_size_in_bytes", "long"))
    fields = [
        _needed(0, "status", "int"),
        _optional(1, "snapshot_id", "long"),
        _optional(3, "sequence_number", "long"),
        _optional(4, "file_sequence_number", "long"),
        _needed(2, "data_file", _record("r2", file_fields)),
    ]
    return _record("manifest_entry", fields)


def list_schema(format_version: int) -> dict[str, Any]:
    """The schema of the entries of a manifest list."""
    summary = _record(
        "r508",
        [
            _needed(509, "contains_null", "boolean"),
            _optional(518, "contains_nan", "boolean"),
            _optional(510, "lower_bound", "bytes"),
            _optional(511, "upper_bound", "bytes"),
        ],
    )
    fields = [
        _needed(500, "manifest_path", "string"),
        _needed(501, "manifest_length", "long"),
        _needed(502, "partition_spec_id", "int"),
        _needed(517, "content", "int"),
        _needed(515, "sequence_number", "long"),
        _needed(516, "min_sequence_number", "long"),
        _needed(503, "added_snapshot_id", "long"),
        _needed(504, "added_files_count", "int"),
        _needed(505, "existing_files_count", "int"),
        _needed(506, "deleted_files_count", "int"),
        _needed(512, "added_rows_count", "long"),
        _needed(513, "existing_rows_count", "long"),
        _needed(514, "deleted_rows_count", "long"),
        _optional(507, "partitions", _list(508, summary)),
        _optional(519, "key_metadata", "bytes"),
    ]
    if format_version > 2:
        fields.append(_optional(520, "first_row_id", "long"))
    return _record("manifest_file", fields)
