"""Definitions from registrations: `define_dataset` is the only constructor that is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from app.kernel.format.dataset import (
    DEFAULT_BUCKETS,
    DEFAULT_KEEP_SECONDS,
    DEFAULT_TARGET_ROWS,
    Bucket,
    Changelog,
    DatasetDefinition,
    Deletes,
    IndexType,
    Retention,
    SequenceGroup,
    has_tombstones,
)
from app.kernel.format.definition.dataset_rules import (
    broken_rules,
    retention_faults,
    vocabulary_faults,
    vocabulary_of,
)
from app.kernel.format.definition.merge_rules import deletes_faults
from app.kernel.format.definition.new_dataset import CreateDataset, CreateRetention
from app.kernel.format.definition.policy_rules import service_faults
from app.kernel.format.definition.schema_change import UpdateChangelog, UpdateDataset
from app.kernel.format.definition.settings import (
    Change,
    DatasetSettings,
    Fault,
    TableSettings,
    requested_changes,
    setting_faults,
    table_settings,
)
from app.kernel.format.errors import InvalidDataset
from app.kernel.format.partition.fields import parse_partition, plain_names
from app.kernel.format.partition.members import roots
from app.kernel.format.policies import TableServices
from app.kernel.format.schema.member_ids import with_member_ids
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import parse_type


def define_dataset(new: CreateDataset) -> DatasetDefinition:
    """Checks a registration and fills in the defaults. Raises InvalidDataset with every fault found."""
    _refuse(broken_rules(new))
    fields = tuple(
        Field(
            id=number,
            name=field.name,
            type=str(parse_type(field.type)),
            nullable=field.nullable,
            doc=field.doc,
        )
        for number, field in enumerate(new.schema.fields, start=1)
    )
    bucket = _bucket(new)
    dataset = DatasetDefinition(
        schema=with_member_ids(Schema(id=1, fields=fields).with_required(_required(new))),
        record_key=tuple(new.record_key),
        ordering_field=new.ordering_field,
        event_time_field=new.event_time_field,
        partition_by=tuple(parse_partition(text).text for text in new.partition_by),
        table_type=new.stored_as,
        bucket=bucket,
        merge_mode=new.merged_by,
        changelog=Changelog(
            producer=new.changelog.producer,
            retention=_retention(new.changelog.retention),
            vocabulary=vocabulary_of(new.changelog.vocabulary),
        ),
        index=_index(new, bucket),
        sequence_groups=tuple(
            SequenceGroup(ordering_field=group.ordering_field, fields=tuple(group.fields))
            for group in new.sequence_groups
        ),
        aggregates=dict(new.aggregates),
        delete_marker=new.delete_marker,
        watermark=new.watermark,
        deletes=new.deletes or Deletes(keep_seconds=_default_keep_seconds(new)),
        **table_settings(new),
    )
    return with_services(dataset, new.services)


def with_settings(dataset: DatasetDefinition, update: UpdateDataset) -> DatasetDefinition:
    """The dataset with the settings that a request changes; itself if there are none. Raises InvalidDataset."""
    values = requested_changes(TableSettings, update, Change.BY_VERSION)
    _refuse(list(setting_faults(TableSettings, values)))
    return msgspec.structs.replace(dataset, **values) if values else dataset


def new_notes(update: UpdateDataset) -> dict[str, Any]:
    """The notes about a dataset that a request changes, by name: settings that are not of the table.

    Raises InvalidDataset.
    """
    values = requested_changes(DatasetSettings, update, Change.AT_ONCE)
    _refuse(list(setting_faults(DatasetSettings, values)))
    return values


def with_services(dataset: DatasetDefinition, services: TableServices) -> DatasetDefinition:
    """The dataset with these table services instead of its own. Raises InvalidDataset."""
    _refuse(list(service_faults(services, dataset)))
    return msgspec.structs.replace(dataset, services=services)


def with_changelog(dataset: DatasetDefinition, update: UpdateChangelog) -> DatasetDefinition:
    """The dataset with other settings of its feed. Raises InvalidDataset."""
    changelog = dataset.changelog
    if update == UpdateChangelog():
        _refuse([("/changelog", "expected 'retention', 'vocabulary', or both")])
    if update.retention is not msgspec.UNSET:
        _refuse(list(retention_faults(changelog.producer, update.retention)))
        changelog = msgspec.structs.replace(changelog, retention=_retention(update.retention))
    if update.vocabulary is not msgspec.UNSET:
        _refuse(list(vocabulary_faults(update.vocabulary, dataset.schema.names())))
        changelog = msgspec.structs.replace(changelog, vocabulary=vocabulary_of(update.vocabulary))
    return msgspec.structs.replace(dataset, changelog=changelog)


def with_deletes(dataset: DatasetDefinition, deletes: Deletes) -> DatasetDefinition:
    """The dataset whose deletes leave this instead. Raises InvalidDataset."""
    _refuse(list(deletes_faults(deletes, dataset.ordering_field, dataset.merge_mode)))
    return msgspec.structs.replace(dataset, deletes=deletes)


def _default_keep_seconds(new: CreateDataset) -> int:
    return DEFAULT_KEEP_SECONDS if has_tombstones(new.ordering_field, new.merged_by) else 0


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        raise InvalidDataset.of(faults)


def _retention(new: CreateRetention | None) -> Retention | None:
    return None if new is None else Retention(seconds=new.seconds, changes=new.changes)


def _required(new: CreateDataset) -> list[str]:
    """The fields that never hold nulls: those of the key, and with a key those that rows are partitioned by as such."""
    if not new.record_key:
        return []
    names = [field.name for field in new.schema.fields]
    return [*roots(new.record_key, names), *plain_names(new.partition_by)]


def _bucket(new: CreateDataset) -> Bucket:
    bucket = new.buckets
    return Bucket(
        mode=new.bucket_mode,
        count=_count(new),
        key=tuple(bucket.key),
        function=bucket.function,
        target_rows=(bucket.target_rows or DEFAULT_TARGET_ROWS) if new.opens_by_size or new.halves else None,
        max_buckets=bucket.max_buckets if new.opens_by_size else None,
        fixed_now=bucket.fixed_now,
        shuffle_by_partition=bucket.shuffle_by_partition,
    )


def _count(new: CreateDataset) -> int | None:
    if not new.record_key:
        return 1
    if new.halves:
        return None
    return new.buckets.count or min(DEFAULT_BUCKETS, new.buckets.max_buckets or DEFAULT_BUCKETS)


def _index(new: CreateDataset, bucket: Bucket) -> IndexType | None:
    if not new.record_key:
        return None
    if new.index is not None:
        return new.index.type_
    return IndexType.RECORD if bucket.opens_by_size else IndexType.BUCKET
