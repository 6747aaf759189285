"""Lines of responses of Delta Sharing."""

from __future__ import annotations

import json
from typing import Any

from app.kernel.delta.actions import (
    ResponseFormat,
    SharedFile,
    TableFormat,
    change_lines,
    file_lines,
    head_lines,
)
from app.kernel.format.schema.schema import Field, Schema

SCHEMA = Schema(id=2, fields=(Field(id=3, name="at", type="timestamp_ntz"),), last_field_id=5)
FILE = SharedFile(
    url="https://lake.example.org/f?X-Amz-Signature=1",
    id="f1",
    size_bytes=10,
    expires_at=99,
    version=7,
    committed_at=1_000,
    statistics='{"numRecords":1}',
    vector={"storageType": "i"},
)


def table(response_format: ResponseFormat, **facts: Any) -> TableFormat:
    return TableFormat(response_format=response_format, table_id="t", name="orders", schema=SCHEMA, **facts)


def test_head_of_delta_names_what_readers_have_to_know() -> None:
    lines = head_lines(table(ResponseFormat.DELTA, by_id=True, has_vectors=True, version=7))
    protocol, metadata = map(json.loads, lines)
    assert protocol["protocol"]["deltaProtocol"] == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["columnMapping", "deletionVectors", "timestampNtz"],
        "writerFeatures": ["columnMapping", "deletionVectors", "timestampNtz", "changeDataFeed"],
    }
    assert metadata["metaData"]["version"] == 7
    delta = metadata["metaData"]["deltaMetadata"]
    assert (delta["id"], delta["name"], delta["partitionColumns"]) == ("t", "orders", [])
    assert delta["configuration"] == {
        "delta.columnMapping.mode": "id",
        "delta.columnMapping.maxColumnId": "5",
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
    }
    assert json.loads(delta["schemaString"])["fields"][0]["type"] == "timestamp_ntz"


def test_head_of_parquet_has_columns_by_name() -> None:
    protocol, metadata = map(json.loads, head_lines(table(ResponseFormat.PARQUET)))
    assert protocol == {"protocol": {"minReaderVersion": 1}}
    assert "version" not in metadata["metaData"]
    assert json.loads(metadata["metaData"]["schemaString"])["fields"][0]["metadata"] == {}


def test_files_have_the_members_of_their_format() -> None:
    [parquet] = map(json.loads, file_lines(ResponseFormat.PARQUET, [FILE]))
    assert parquet["file"] == {
        "id": "f1", "url": FILE.url, "size": 10, "partitionValues": {}, "expirationTimestamp": 99,
        "version": 7, "timestamp": 1_000, "stats": '{"numRecords":1}',
    }  # fmt: skip
    [delta] = map(json.loads, file_lines(ResponseFormat.DELTA, [FILE]))
    add = delta["file"]["deltaSingleAction"]["add"]
    assert (add["path"], add["stats"], add["deletionVector"]) == (FILE.url, FILE.statistics, FILE.vector)
    assert (delta["file"]["version"], delta["file"]["timestamp"]) == (7, 1_000)


def test_changes_have_the_members_of_their_format() -> None:
    [parquet] = map(json.loads, change_lines(ResponseFormat.PARQUET, [FILE]))
    assert set(parquet["cdf"]) == {
        "id", "url", "size", "partitionValues", "expirationTimestamp", "version", "timestamp",
    }  # fmt: skip
    [delta] = map(json.loads, change_lines(ResponseFormat.DELTA, [FILE]))
    assert delta["file"]["deltaSingleAction"]["cdc"] == {
        "path": FILE.url, "partitionValues": {}, "size": 10, "dataChange": False,
    }  # fmt: skip
