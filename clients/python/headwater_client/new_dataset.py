"""A dataset to register, in a shorter form than that of the API."""

from __future__ import annotations

from typing import Any

import msgspec

from headwater_client.models import (
    Aggregate,
    ChangelogProducer,
    CreateBucket,
    CreateField,
    CreateRetention,
    CreateSequenceGroup,
    FileCompression,
    IndexType,
    MergeMode,
    TableType,
)


class NewDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset to register. Without a record key it is append-only. `buckets`: short for `Bucket(count=…)`.

    `keep_seconds`: how long the tombstones of its deletes last. `services`: its automatic table services, in JSON form.
    """

    name: str
    fields: tuple[CreateField, ...]
    record_key: tuple[str, ...] = ()
    ordering_field: str | None = None
    event_time_field: str | None = None
    partition_by: tuple[str, ...] = ()
    buckets: int | None = None
    bucket: CreateBucket | None = None
    table_type: TableType | None = None
    index: IndexType | None = None
    merge_mode: MergeMode | None = None
    sequence_groups: tuple[CreateSequenceGroup, ...] = ()
    aggregates: dict[str, Aggregate] = {}
    delete_marker: str | None = None
    keep_seconds: int | None = None
    producer: ChangelogProducer | None = None
    retention: CreateRetention | None = None
    target_bytes: int | None = None
    compression: FileCompression | None = None
    services: dict[str, Any] | None = None
    description: str | None = None
    labels: dict[str, str] = {}
    expected_every_seconds: int | None = None

    def document(self) -> dict[str, Any]:
        """The JSON form of the registration, without members that are not set."""
        chosen = {
            "ordering_field": self.ordering_field,
            "event_time_field": self.event_time_field,
            "table_type": self.table_type,
            "index": None if self.index is None else {"type": self.index},
            "merge_mode": self.merge_mode,
            "sequence_groups": [msgspec.to_builtins(group) for group in self.sequence_groups] or None,
            "aggregates": self.aggregates or None,
            "delete_marker": self.delete_marker,
            "deletes": None if self.keep_seconds is None else {"keep_seconds": self.keep_seconds},
            "changelog": self._changelog() or None,
            "target_bytes": self.target_bytes,
            "compression": self.compression,
            "services": self.services,
            "description": self.description,
            "labels": self.labels or None,
            "expected_every_seconds": self.expected_every_seconds,
        }
        bucket = CreateBucket(count=self.buckets) if self.bucket is None else self.bucket
        return {
            "name": self.name,
            "schema": {"fields": [msgspec.to_builtins(field) for field in self.fields]},
            "record_key": list(self.record_key),
            "partition_by": list(self.partition_by),
            "bucket": msgspec.to_builtins(bucket),
            **{name: value for name, value in chosen.items() if value is not None},
        }

    def _changelog(self) -> dict[str, Any]:
        chosen = {
            "producer": self.producer,
            "retention": None if self.retention is None else msgspec.to_builtins(self.retention),
        }
        return {name: value for name, value in chosen.items() if value is not None}
