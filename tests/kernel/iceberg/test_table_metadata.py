"""The metadata document of a table."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pytest
from msgspec import structs

from app.kernel.format.schema.schema import Field, Schema
from app.kernel.iceberg.table_metadata import (
    IcebergSnapshot,
    SnapshotVersion,
    TableVersions,
    iceberg_snapshot,
    milliseconds,
    table_metadata,
)
from tests.kernel.iceberg.tables import LOCATION, dataset

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
START_MS = 1_767_225_600_000


def snapshot(version: int, schema_id: int = 1) -> SnapshotVersion:
    return SnapshotVersion(
        version=version,
        committed_at=START + dt.timedelta(seconds=version),
        schema_id=schema_id,
        manifest_list=f"{LOCATION}/metadata/snap-{version}.avro",
        operation="append",
        summary={"total-records": version * 10, "headwater.read": "read_optimized"},
    )


def snapshots(versions: list[int], format_version: int) -> list[IcebergSnapshot]:
    parents = [version - 1 if version - 1 in versions else None for version in versions]
    return [
        iceberg_snapshot(snapshot(version), parent, format_version)
        for version, parent in zip(versions, parents, strict=True)
    ]


def document(versions: list[int], format_version: int = 3, **facts: Any) -> dict[str, Any]:
    """The JSON of a table with these versions."""
    definition = facts.pop("definition", dataset({"id": "int64", "at": "timestamp"}, ["day(at)"]))
    table = TableVersions(
        format_version=format_version,
        table_id="0190163d-8694-739b-aea5-966c26f8ad91",
        location=LOCATION,
        created_at=START,
        definition=definition,
        schemas=facts.pop("schemas", [definition.schema]),
        snapshots=snapshots(versions, format_version),
        **facts,
    )
    content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(table_metadata(table)))
    return content


def test_version_is_a_snapshot() -> None:
    content = document([4, 5, 8])
    assert [each["snapshot-id"] for each in content["snapshots"]] == [4, 5, 8]
    assert [each.get("parent-snapshot-id") for each in content["snapshots"]] == [None, 4, None]
    last = content["snapshots"][-1]
    assert (last["sequence-number"], last["schema-id"], last["timestamp-ms"]) == (8, 1, START_MS + 8_000)
    assert last["manifest-list"] == f"{LOCATION}/metadata/snap-8.avro"
    assert last["summary"] == {
        "operation": "append",
        "total-records": "80",
        "headwater.read": "read_optimized",
    }
    assert (content["current-snapshot-id"], content["last-sequence-number"]) == (8, 8)
    assert content["last-updated-ms"] == START_MS + 8_000
    assert content["snapshot-log"][-1] == {"timestamp-ms": START_MS + 8_000, "snapshot-id": 8}


def test_row_lineage_is_part_of_format_3_only() -> None:
    third, second = document([1]), document([1], format_version=2)
    assert (third["next-row-id"], third["snapshots"][0]["first-row-id"]) == (10, 0)
    assert third["snapshots"][0]["added-rows"] == 0
    assert "next-row-id" not in second
    assert not {"first-row-id", "added-rows"} & second["snapshots"][0].keys()


@pytest.mark.parametrize(("format_version", "current"), [(2, -1), (3, None)])
def test_table_without_a_commit_has_no_snapshot(format_version: int, current: int | None) -> None:
    content = document([], format_version)
    assert content["current-snapshot-id"] == current
    assert (content["snapshots"], content["refs"], content["snapshot-log"]) == ([], {}, [])
    assert (content["last-sequence-number"], content["last-updated-ms"]) == (0, START_MS)


def test_names_refer_to_versions_that_are_listed() -> None:
    content = document([4, 5], refs={"nightly": 4, "gone": 3, "main": 4})
    assert content["refs"] == {
        "main": {"snapshot-id": 5, "type": "branch"},
        "nightly": {"snapshot-id": 4, "type": "tag"},
    }


def test_table_has_all_schemas_and_the_newest_is_current() -> None:
    definition = dataset({"id": "int64", "at": "timestamp"})
    newest = Schema(id=2, fields=(*definition.schema.fields, Field(id=5, name="new", type="string")))
    content = document(
        [1], definition=structs.replace(definition, schema=newest), schemas=[newest, definition.schema]
    )
    assert [schema["schema-id"] for schema in content["schemas"]] == [1, 2]
    assert (content["current-schema-id"], content["last-column-id"]) == (2, 5)


def test_table_has_the_spec_without_fields_beside_its_own() -> None:
    content = document([1])
    assert [spec["spec-id"] for spec in content["partition-specs"]] == [0, 1]
    assert (content["default-spec-id"], content["last-partition-id"]) == (1, 1_000)
    content = document([1], definition=dataset({"id": "int64"}, ["bucket(4, id)"]))
    assert content["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert (content["default-spec-id"], content["last-partition-id"]) == (0, 999)


def test_times_of_commits_are_rounded_up() -> None:
    assert milliseconds(START) == START_MS
    assert milliseconds(START + dt.timedelta(microseconds=1)) == START_MS + 1
