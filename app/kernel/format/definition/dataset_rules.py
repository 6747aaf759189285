"""The rules of a dataset definition. Each is a small function that yields the faults it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from app.kernel.format.dataset import (
    BUCKETS_MAX,
    BucketFunction,
    BucketMode,
    ChangelogProducer,
    IndexType,
    MergeMode,
    TableType,
    Vocabulary,
)
from app.kernel.format.definition.merge_rules import MERGE_RULES
from app.kernel.format.definition.new_dataset import (
    CreateDataset,
    CreateRetention,
    CreateVocabulary,
)
from app.kernel.format.definition.partition_rules import PARTITION_RULES
from app.kernel.format.definition.settings import Fault, declared_settings, setting_faults
from app.kernel.format.partition.fields import PartitionSyntaxError, source_type
from app.kernel.format.partition.members import member_path
from app.kernel.format.schema.schema import FIELD_NAME_CHARACTERS_MAX, FIELDS_MAX, RESERVED_PREFIX, name_fault
from app.kernel.format.schema.types import DataType, TypeSyntaxError, has_order, may_be_key, parse_type

_Rule = Callable[[CreateDataset], Iterator[Fault]]
RETENTION_SECONDS_MAX: Final = 2**31 - 1
RETENTION_CHANGES_MAX: Final = 2**63 - 1


def broken_rules(new: CreateDataset) -> list[Fault]:
    """Every fault of a registration: a JSON pointer, and what was expected."""
    return [fault for rule in _RULES for fault in rule(new)]


def _settings_rule(new: CreateDataset) -> Iterator[Fault]:
    yield from setting_faults(
        CreateDataset, {name: getattr(new, name) for name in declared_settings(CreateDataset)}
    )


def _fields_rule(new: CreateDataset) -> Iterator[Fault]:
    fields = new.schema.fields
    if not 1 <= len(fields) <= FIELDS_MAX:
        yield "/schema/fields", f"expected 1–{FIELDS_MAX} fields, got {len(fields)}"
    numbers: dict[str, int] = {}
    for number, field in enumerate(fields):
        pointer = f"/schema/fields/{number}"
        if reason := name_fault(field.name):
            yield f"{pointer}/name", f"field {number} {reason}"
        if field.name.startswith(RESERVED_PREFIX):
            yield f"{pointer}/name", f"{field.name!r}: names starting with {RESERVED_PREFIX!r} are reserved"
        earlier = numbers.setdefault(field.name.casefold(), number)
        if earlier != number:
            reason = f"field {earlier} has this name already (names differ by more than case)"
            yield f"{pointer}/name", f"{field.name!r}: {reason}"
        try:
            parse_type(field.type)
        except TypeSyntaxError as error:
            yield f"{pointer}/type", str(error)


def _references(new: CreateDataset) -> Iterator[tuple[str, str]]:
    if new.event_time_field is not None:
        yield "/event_time_field", new.event_time_field
    if new.watermark is not None:
        yield "/watermark/field", new.watermark.field


def _references_rule(new: CreateDataset) -> Iterator[Fault]:
    types = {field.name: field.type for field in new.schema.fields}
    for pointer, name in _references(new):
        if name not in types:
            yield pointer, f"there is no field {name!r} in the schema"
            continue
        try:
            data_type = parse_type(types[name])
        except TypeSyntaxError:
            continue
        if pointer in ("/event_time_field", "/watermark/field") and not (
            str(data_type) == "date" or str(data_type).startswith("timestamp")
        ):
            yield pointer, f"{name!r} is {data_type}; event time is a date or a timestamp"


def _member_type(new: CreateDataset, text: str) -> DataType | None:
    """The type of a field, or of a member of structs; None if another rule reports its type.

    Raises PartitionSyntaxError if there is none.
    """
    types: dict[str, DataType] = {}
    faulty_fields = set()
    for field in new.schema.fields:
        try:
            types[field.name] = parse_type(field.type)
        except TypeSyntaxError:
            faulty_fields.add(field.name)
    path = member_path(text, {*types, *faulty_fields})
    return None if path[0] in faulty_fields else source_type(path, types)


def _record_key_rule(new: CreateDataset) -> Iterator[Fault]:
    names = {field.name for field in new.schema.fields}
    for number, name in enumerate(new.record_key):
        pointer = f"/record_key/{number}"
        try:
            data_type = _member_type(new, name)
        except PartitionSyntaxError as error:
            plain = name not in names and "." not in name
            yield pointer, f"there is no field {name!r} in the schema" if plain else str(error)
            continue
        if data_type is not None and not may_be_key(data_type):
            yield pointer, f"{name!r} is {data_type}, which has no exact equality; use another type"
        if name not in names and new.merge_mode in (MergeMode.PARTIAL, MergeMode.AGGREGATE):
            mode = new.merge_mode.value
            yield pointer, f"merge_mode {mode} merges whole fields, so a member cannot be part of the key"


def _ordering_field_rule(new: CreateDataset) -> Iterator[Fault]:
    name = new.ordering_field
    if name is None:
        return
    try:
        data_type = _member_type(new, name)
    except PartitionSyntaxError as error:
        yield "/ordering_field", str(error)
        return
    if data_type is not None and not has_order(data_type):
        yield (
            "/ordering_field",
            f"{name!r} is {data_type}, which has no order; use a number, string, date or timestamp",
        )


def _repeats_rule(new: CreateDataset) -> Iterator[Fault]:
    if len(set(new.record_key)) != len(new.record_key):
        yield "/record_key", "a field is named twice"
    bucket_key = new.buckets.key
    if len(set(bucket_key)) != len(bucket_key):
        yield "/bucket/key", "a field is listed more than once"


def _key_rule(new: CreateDataset) -> Iterator[Fault]:
    if new.record_key:
        return
    reason = "an append-only dataset (no record_key) merges nothing"
    for part in ("ordering_field", "merge_mode", "delete_marker", "index"):
        if getattr(new, part) is not None:
            yield f"/{part}", reason


def _bucket_count_rule(new: CreateDataset) -> Iterator[Fault]:
    count = new.buckets.count
    if count is not None and not 1 <= count <= BUCKETS_MAX:
        yield "/bucket/count", f"expected 1–{BUCKETS_MAX}, got {count}"


def _keyed_bucket_rule(new: CreateDataset) -> Iterator[Fault]:
    if new.record_key and new.bucket_mode is BucketMode.UNAWARE:
        yield "/bucket/mode", "a dataset with a record_key needs buckets: use 'fixed'"


def _unkeyed_bucket_rule(new: CreateDataset) -> Iterator[Fault]:
    one = new.bucket_mode is BucketMode.UNAWARE and (new.buckets.count or 1) == 1
    if not new.record_key and not one:
        yield "/bucket/mode", "an append-only dataset (no record_key) has no buckets: use 'unaware'"


def _target_rows_rule(new: CreateDataset) -> Iterator[Fault]:
    rows = new.buckets.target_rows
    if rows is not None and not (new.opens_by_size or new.halves):
        yield (
            "/bucket/target_rows",
            "only the modes dynamic, key_dynamic and postpone open buckets by size, and only mode fixed without a "
            "count and without logs halves them",
        )
    elif rows is not None and rows < 1:
        yield "/bucket/target_rows", f"expected at least 1, got {rows}"


def _max_buckets_rule(new: CreateDataset) -> Iterator[Fault]:
    most = new.buckets.max_buckets
    if most is None:
        return
    if not new.opens_by_size:
        yield "/bucket/max_buckets", "only the modes dynamic, key_dynamic and postpone open buckets by size"
    elif most < 1:
        yield "/bucket/max_buckets", f"expected at least 1, got {most}"
    if most > BUCKETS_MAX:
        yield "/bucket/max_buckets", f"expected at most {BUCKETS_MAX}"


def _segments_rule(new: CreateDataset) -> Iterator[Fault]:
    most, count = new.buckets.max_buckets, new.buckets.count
    if new.opens_by_size and most is not None and most < (count or 1):
        yield "/bucket/max_buckets", f"each of the {count} segments (count) has a bucket: expected more"


def _fixed_now_rule(new: CreateDataset) -> Iterator[Fault]:
    if new.buckets.fixed_now and new.bucket_mode is not BucketMode.POSTPONE:
        yield "/bucket/fixed_now", "only mode postpone can assign buckets at once; leave fixed_now out"


def _shuffle_rule(new: CreateDataset) -> Iterator[Fault]:
    if new.buckets.shuffle_by_partition and new.bucket_mode is not BucketMode.UNAWARE:
        yield (
            "/bucket/shuffle_by_partition",
            "only mode unaware shuffles by partition; others place rows by bucket",
        )


def _bucket_key_rule(new: CreateDataset) -> Iterator[Fault]:
    bucket = new.buckets
    outside = [name for name in bucket.key if name not in new.record_key]
    if outside:
        yield "/bucket/key", f"the bucket key is part of the record key; {outside} is not"
    if bucket.function is not BucketFunction.MOD:
        return
    fields = bucket.key or new.record_key
    if len(fields) != 1 or not _is_integer(new, fields[0]):
        yield "/bucket/function", "'mod' takes the remainder of one integer field: name it as the bucket key"


def _is_integer(new: CreateDataset, text: str) -> bool:
    try:
        return "int" in str(_member_type(new, text))
    except PartitionSyntaxError:
        return False


def _index_rule(new: CreateDataset) -> Iterator[Fault]:
    mode = new.bucket_mode
    if new.index is None or not new.record_key:
        return
    if new.index.type_ is IndexType.BUCKET and mode in (BucketMode.DYNAMIC, BucketMode.KEY_DYNAMIC):
        yield (
            "/index/type",
            f"under mode {mode.value} the hash alone does not say where a key is: use 'record'",
        )


def _changelog_rule(new: CreateDataset) -> Iterator[Fault]:
    producer = new.changelog.producer
    if producer is ChangelogProducer.DEFERRED and new.stored_as is not TableType.MERGE_ON_READ:
        yield "/changelog/producer", "'deferred' waits for compaction, which only merge_on_read has"
    if producer is ChangelogProducer.DEFERRED and not new.record_key:
        yield "/changelog/producer", "an append-only dataset has nothing to defer: use 'full'"
    yield from retention_faults(producer, new.changelog.retention)


def vocabulary_of(new: CreateVocabulary) -> Vocabulary:
    """The names with those that were left out."""
    return Vocabulary(
        **{
            name: column_name
            for name, column_name in msgspec.structs.asdict(new).items()
            if column_name is not None
        }
    )


def _vocabulary_rule(new: CreateDataset) -> Iterator[Fault]:
    yield from vocabulary_faults(new.changelog.vocabulary, [field.name for field in new.schema.fields])


def vocabulary_faults(new: CreateVocabulary, fields_of_rows: Sequence[str]) -> Iterator[Fault]:
    """What is wrong with the names: those that are chosen must be unique; a default that clashes gets a prefix."""
    names = msgspec.structs.asdict(vocabulary_of(new))
    fields = {name.casefold() for name in fields_of_rows}
    for column, column_name in msgspec.structs.asdict(new).items():
        if column_name is None:
            continue
        pointer = f"/changelog/vocabulary/{column}"
        if not 1 <= len(column_name) <= FIELD_NAME_CHARACTERS_MAX or not column_name.isprintable():
            yield pointer, f"expected 1–{FIELD_NAME_CHARACTERS_MAX} printable characters"
        elif column_name.startswith((RESERVED_PREFIX, "_change_", "_commit_")) or column_name in (
            "row",
            "before",
        ):
            yield pointer, f"{column_name!r} is the name of another column of the feed, or reserved"
        elif column_name.casefold() in fields:
            yield pointer, f"the dataset has a field {column_name!r}: choose another name"
        elif any(
            other != column and name.casefold() == column_name.casefold() for other, name in names.items()
        ):
            yield pointer, f"{column_name!r} is the name of another system column: name each differently"


def retention_faults(producer: ChangelogProducer, retention: CreateRetention | None) -> Iterator[Fault]:
    """What is wrong with a retention for the feed of a producer."""
    if retention is None:
        return
    if producer is ChangelogProducer.NONE:
        yield "/changelog/retention", "the dataset has no feed, so no retention applies: leave it out"
    if retention.seconds is None and retention.changes is None:
        yield "/changelog/retention", "expected 'seconds', 'changes', or both"
    if retention.seconds is not None and not 1 <= retention.seconds <= RETENTION_SECONDS_MAX:
        yield "/changelog/retention/seconds", f"expected 1–{RETENTION_SECONDS_MAX}, got {retention.seconds}"
    if retention.changes is not None and not 1 <= retention.changes <= RETENTION_CHANGES_MAX:
        yield "/changelog/retention/changes", f"expected 1–{RETENTION_CHANGES_MAX}, got {retention.changes}"


_RULES: Final[tuple[_Rule, ...]] = (
    _settings_rule,
    _fields_rule,
    _references_rule,
    _record_key_rule,
    _ordering_field_rule,
    _repeats_rule,
    _key_rule,
    _bucket_count_rule,
    _keyed_bucket_rule,
    _unkeyed_bucket_rule,
    _target_rows_rule,
    _max_buckets_rule,
    _segments_rule,
    _fixed_now_rule,
    _shuffle_rule,
    _bucket_key_rule,
    _index_rule,
    _changelog_rule,
    _vocabulary_rule,
    *PARTITION_RULES,
    *MERGE_RULES,
)
