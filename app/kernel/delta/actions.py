"""The lines of responses of Delta Sharing, one JSON object each, in the formats `parquet` and `delta`.

The format `delta` has the actions of a Delta log, which readers of Delta read: with column mapping, deletion vectors
and times without a zone. The format `parquet` has files whose columns are found by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

import msgspec

from app.kernel.delta.schemas import COLUMN_MAPPING, has_zoneless_times, schema_string
from app.kernel.format.schema.schema import Schema


class ResponseFormat(str, Enum):
    """The form of the lines of a response."""

    PARQUET = "parquet"
    DELTA = "delta"


class SharedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file to read.

    `id`: the same for the same bytes. `size_bytes`: of the file. `version`, `committed_at`: of the version that is
    read, or whose changes the file has; the time in milliseconds since the epoch. `expires_at`: when `url` ends, in
    milliseconds, too. `statistics`: their text; None for a file of changes. `vector`: the descriptor of its deleted
    rows.
    """

    url: str
    id: str
    size_bytes: int
    expires_at: int
    version: int | None = None
    committed_at: int | None = None
    statistics: str | None = None
    vector: Mapping[str, Any] | None = None


class TableFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A table as a response has it.

    `table_id`: the same as long as the table exists. `schema`: of the columns that it is published with. `by_id`:
    whether columns are found by id, in the format `delta`. `nullable`: ids of columns that have nulls, whatever the
    schema says. `without`: the names of columns that it is published without. `version`: None if the response is not
    about one that was requested. `has_vectors`: whether files may have deleted rows. `properties`: further ones.
    """

    response_format: ResponseFormat
    table_id: str
    name: str
    schema: Schema
    by_id: bool = False
    nullable: frozenset[int] = frozenset()
    without: tuple[str, ...] = ()
    version: int | None = None
    has_vectors: bool = False
    properties: Mapping[str, str] = {}


_READER_VERSION: Final = 3
_WRITER_VERSION: Final = 7
COLUMN_MAPPING_FEATURE: Final = "columnMapping"
VECTORS_FEATURE: Final = "deletionVectors"
ZONELESS_FEATURE: Final = "timestampNtz"
OMITTED: Final = "headwater.omitted"
"""The configuration that names the columns which a table is published without."""
_encode: Final = msgspec.json.Encoder().encode


def reader_features(table: TableFormat) -> list[str]:
    """What a reader of the format `delta` has to know for the table, in the words of the protocol."""
    names = [COLUMN_MAPPING_FEATURE] if table.by_id else []
    if table.has_vectors:
        names.append(VECTORS_FEATURE)
    if has_zoneless_times(table.schema):
        names.append(ZONELESS_FEATURE)
    return sorted(names)


def head_lines(table: TableFormat) -> list[bytes]:
    """The protocol and the metadata, which every response begins with."""
    is_delta = table.response_format is ResponseFormat.DELTA
    change_feed = "delta.enableChangeDataFeed" if is_delta else "enableChangeDataFeed"
    configuration = {change_feed: "true", **table.properties}
    if table.by_id:
        configuration |= COLUMN_MAPPING
        configuration["delta.columnMapping.maxColumnId"] = str(table.schema.highest_field_id)
    if table.has_vectors:
        configuration["delta.enableDeletionVectors"] = "true"
    if table.without:
        configuration[OMITTED] = ",".join(table.without)
    metadata = {
        "id": table.table_id,
        "name": table.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_string(table.schema, by_id=table.by_id, nullable=table.nullable),
        "partitionColumns": [],
        "configuration": configuration,
    }
    version = {} if table.version is None else {"version": table.version}
    if not is_delta:
        return [
            _encode({"protocol": {"minReaderVersion": 1}}),
            _encode({"metaData": {**metadata, **version}}),
        ]
    features = reader_features(table)
    protocol = {
        "minReaderVersion": _READER_VERSION,
        "minWriterVersion": _WRITER_VERSION,
        "readerFeatures": features,
        "writerFeatures": [*features, "changeDataFeed"],
    }
    return [
        _encode({"protocol": {"deltaProtocol": protocol}}),
        _encode({"metaData": {**version, "deltaMetadata": metadata}}),
    ]


def file_lines(response_format: ResponseFormat, files: Sequence[SharedFile]) -> list[bytes]:
    """The lines of the files of a version."""
    form = _delta_file if response_format is ResponseFormat.DELTA else _parquet_file
    return [_encode(form(file)) for file in files]


def change_lines(response_format: ResponseFormat, files: Sequence[SharedFile]) -> list[bytes]:
    """The lines of files of changes."""
    form = _delta_changes if response_format is ResponseFormat.DELTA else _parquet_changes
    return [_encode(form(file)) for file in files]


def _parquet_file(file: SharedFile) -> dict[str, Any]:
    members = _members(file) | {"url": file.url, "size": file.size_bytes, "partitionValues": {}}
    return {"file": members if file.statistics is None else {**members, "stats": file.statistics}}


def _parquet_changes(file: SharedFile) -> dict[str, Any]:
    return {"cdf": _members(file) | {"url": file.url, "size": file.size_bytes, "partitionValues": {}}}


def _delta_file(file: SharedFile) -> dict[str, Any]:
    add: dict[str, Any] = {
        "path": file.url,
        "partitionValues": {},
        "size": file.size_bytes,
        "modificationTime": file.committed_at or 0,
        "dataChange": True,
    }
    if file.statistics is not None:
        add["stats"] = file.statistics
    if file.vector is not None:
        add["deletionVector"] = file.vector
    return _delta(file, {"add": add})


def _delta_changes(file: SharedFile) -> dict[str, Any]:
    changes = {"path": file.url, "partitionValues": {}, "size": file.size_bytes, "dataChange": False}
    return _delta(file, {"cdc": changes})


def _delta(file: SharedFile, action: dict[str, Any]) -> dict[str, Any]:
    return {"file": {**_members(file), "size": file.size_bytes, "deltaSingleAction": action}}


def _members(file: SharedFile) -> dict[str, Any]:
    members: dict[str, Any] = {"id": file.id, "expirationTimestamp": file.expires_at}
    if file.version is not None:
        members |= {"version": file.version, "timestamp": file.committed_at}
    return members
