"""The metadata document of a table: its schemas, its partition specs, and a snapshot for each version that is kept."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.schema.schema import Schema
from app.kernel.iceberg.partition_specs import last_partition_id, partition_columns, spec_of
from app.kernel.iceberg.schemas import iceberg_schema

MAIN: Final = "main"
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_NO_SNAPSHOT: Final = {2: -1, 3: None}
_UNSORTED: Final[dict[str, Any]] = {"order-id": 0, "fields": []}
_TOTAL_ROWS: Final = "total-records"


class SnapshotVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version as a snapshot.

    `manifest_list`: its whole address. `operation`: `append`, `overwrite`, `delete` or `replace`. `summary`: further
    facts under Iceberg's names, or our own.
    """

    version: int
    committed_at: dt.datetime
    schema_id: int
    manifest_list: str
    operation: str
    summary: Mapping[str, str | int] = {}


class IcebergSnapshot(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A snapshot in the document."""

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str
    summary: dict[str, str]
    schema_id: int
    first_row_id: int | None = None
    added_rows: int | None = None


class TableVersions(msgspec.Struct, frozen=True, kw_only=True):
    """A table and its snapshots, the oldest first. The last is the current one.

    `definition`: with the newest schema. `schemas`: all that snapshots have. `table_id`: a UUID. `refs`: versions by
    the name of a tag. `created_at`: when the table without a snapshot was last changed. `omit`: the ids of fields that
    the table is published without.
    """

    format_version: int
    table_id: str
    location: str
    created_at: dt.datetime
    definition: DatasetDefinition
    schemas: Sequence[Schema]
    snapshots: Sequence[IcebergSnapshot]
    refs: Mapping[str, int] = {}
    properties: Mapping[str, str] = {}
    omit: frozenset[int] = frozenset()


class LoggedSnapshot(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """When a snapshot became the current one."""

    timestamp_ms: int
    snapshot_id: int


class TableMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """The document; `msgspec.json.encode` gives its JSON."""

    format_version: int
    table_uuid: str
    location: str
    last_sequence_number: int
    last_updated_ms: int
    last_column_id: int
    schemas: list[dict[str, Any]]
    current_schema_id: int
    partition_specs: list[dict[str, Any]]
    default_spec_id: int
    last_partition_id: int
    sort_orders: list[dict[str, Any]]
    default_sort_order_id: int
    properties: dict[str, str]
    current_snapshot_id: int | None
    snapshots: list[IcebergSnapshot]
    snapshot_log: list[LoggedSnapshot]
    metadata_log: list[dict[str, Any]]
    refs: dict[str, dict[str, Any]]
    statistics: list[dict[str, Any]]
    partition_statistics: list[dict[str, Any]]
    next_row_id: int | None = None


def table_metadata(table: TableVersions) -> TableMetadata:
    """The metadata document. Names that refer to versions which are not listed are left out.

    Raises UncarriedColumn as `iceberg_schema`.
    """
    columns = partition_columns(table.definition)
    spec = spec_of(columns)
    snapshots = list(table.snapshots)
    current = snapshots[-1].snapshot_id if snapshots else _NO_SNAPSHOT[table.format_version]
    newest = max([table.definition.schema, *table.schemas], key=lambda schema: schema.id)
    schemas = {schema.id: schema for schema in [*table.schemas, table.definition.schema]}
    return TableMetadata(
        format_version=table.format_version,
        table_uuid=table.table_id,
        location=table.location,
        last_sequence_number=snapshots[-1].sequence_number if snapshots else 0,
        last_updated_ms=max(
            [each.timestamp_ms for each in snapshots], default=milliseconds(table.created_at)
        ),
        last_column_id=newest.highest_field_id,
        schemas=[iceberg_schema(schemas[number], table.omit) for number in sorted(schemas)],
        current_schema_id=newest.id,
        partition_specs=[spec_of(())] + ([spec] if columns else []),
        default_spec_id=spec["spec-id"],
        last_partition_id=last_partition_id(columns),
        sort_orders=[_UNSORTED],
        default_sort_order_id=0,
        properties=dict(table.properties),
        current_snapshot_id=current,
        snapshots=snapshots,
        snapshot_log=[
            LoggedSnapshot(timestamp_ms=each.timestamp_ms, snapshot_id=each.snapshot_id) for each in snapshots
        ],
        metadata_log=[],
        refs=_refs(table),
        statistics=[],
        partition_statistics=[],
        next_row_id=_next_row_id(table),
    )


def iceberg_snapshot(version: SnapshotVersion, parent: int | None, format_version: int) -> IcebergSnapshot:
    """A version in the document. `parent`: the version before it; None for the first that is listed."""
    lineage = 0 if format_version > 2 else None
    return IcebergSnapshot(
        snapshot_id=version.version,
        parent_snapshot_id=parent,
        sequence_number=version.version,
        timestamp_ms=milliseconds(version.committed_at),
        manifest_list=version.manifest_list,
        summary={
            "operation": version.operation,
            **{name: str(value) for name, value in version.summary.items()},
        },
        schema_id=version.schema_id,
        first_row_id=lineage,
        added_rows=lineage,
    )


def milliseconds(moment: dt.datetime) -> int:
    """Milliseconds since 1970. A fraction is rounded up, so that no reader sees a commit before its time."""
    return -((_EPOCH - moment) // _MILLISECOND)


def _refs(table: TableVersions) -> dict[str, dict[str, Any]]:
    if not table.snapshots:
        return {}
    listed = {each.snapshot_id for each in table.snapshots}
    tags = {
        name: {"snapshot-id": version, "type": "tag"}
        for name, version in table.refs.items()
        if version in listed and name != MAIN
    }
    return {MAIN: {"snapshot-id": table.snapshots[-1].snapshot_id, "type": "branch"}, **tags}


def _next_row_id(table: TableVersions) -> int | None:
    """A number above all row ids of a snapshot; None under format 2, which has no row ids."""
    if table.format_version == 2:
        return None
    return max((int(each.summary.get(_TOTAL_ROWS, 0)) for each in table.snapshots), default=0)
