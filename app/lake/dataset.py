"""What a dataset is: its schema, its key, how rows are laid out and how they merge.

`define_dataset` is the one way to a `DatasetDefinition`: it checks every rule and names every fault at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

import msgspec

from app.lake.errors import FieldError, InvalidDataset
from app.lake.identifiers import is_uuid
from app.lake.schema import FIELD_NAME_CHARACTERS_MAX, FIELDS_MAX, Field, Schema
from app.lake.types import TypeSyntaxError, may_be_key, may_be_ordered, parse_type

BUCKETS_MAX: Final = 4_096
DEFAULT_BUCKETS: Final = 4
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


class TableType(str, Enum):
    """How an upsert is stored."""

    COPY_ON_WRITE = "copy_on_write"


class BucketMode(str, Enum):
    """How a row finds its file group."""

    FIXED = "fixed"
    UNAWARE = "unaware"


class MergeMode(str, Enum):
    """What happens when a key is met again."""

    EVENT_TIME = "event_time"
    COMMIT_TIME = "commit_time"


class ChangelogProducer(str, Enum):
    """How the change feed is made."""

    FULL = "full"


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """`fixed`: hash of the record key modulo `count`. `unaware`: append-only, no key, `count` is 1."""

    mode: BucketMode
    count: int


class Changelog(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the change feed."""

    producer: ChangelogProducer = ChangelogProducer.FULL


class NewChangelog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the change feed as a user registers them."""

    producer: ChangelogProducer = ChangelogProducer.FULL


class NewField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column as a user registers it."""

    name: str
    type: str
    nullable: bool = True
    doc: str | None = None


class NewSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of a new dataset, in order."""

    fields: list[NewField]


class NewBucket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rows are spread over file groups; absent parts get the default for the kind of dataset."""

    mode: BucketMode | None = None
    count: int | None = None


class NewDataset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A registration as a user sends it."""

    name: str
    schema: NewSchema
    record_key: list[str] = []
    ordering_field: str | None = None
    event_time_field: str | None = None
    partition_by: list[str] = []
    table_type: TableType = TableType.COPY_ON_WRITE
    bucket: NewBucket | None = None
    merge_mode: MergeMode | None = None
    changelog: NewChangelog = NewChangelog()


class DatasetDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A checked registration. Without a record key the dataset is append-only."""

    name: str
    schema: Schema
    record_key: tuple[str, ...]
    ordering_field: str | None
    event_time_field: str | None
    partition_by: tuple[str, ...]
    table_type: TableType
    bucket: Bucket
    merge_mode: MergeMode
    changelog: Changelog

    @property
    def keyed(self) -> bool:
        """Whether rows have an identity, so that they can be updated and deleted."""
        return bool(self.record_key)


Fault = tuple[str, str]
_Rule = Callable[[NewDataset], Iterator[Fault]]


def define_dataset(new: NewDataset) -> DatasetDefinition:
    """Checks a registration and fills in the defaults. Raises InvalidDataset with every fault found."""
    faults = [fault for rule in _RULES for fault in rule(new)]
    if faults:
        errors = [FieldError(pointer=pointer, detail=detail) for pointer, detail in faults]
        raise InvalidDataset(f"{len(errors)} rule(s) of the dataset definition are broken", errors)
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
    bucket = new.bucket or NewBucket()
    count = (bucket.count or DEFAULT_BUCKETS) if new.record_key else 1
    mode = BucketMode.FIXED if new.record_key else BucketMode.UNAWARE
    default_merge = MergeMode.EVENT_TIME if new.ordering_field else MergeMode.COMMIT_TIME
    return DatasetDefinition(
        name=new.name,
        schema=Schema(id=1, fields=fields).with_required([*new.record_key, *new.partition_by]),
        record_key=tuple(new.record_key),
        ordering_field=new.ordering_field,
        event_time_field=new.event_time_field,
        partition_by=tuple(new.partition_by),
        table_type=new.table_type,
        bucket=Bucket(mode=mode, count=count),
        merge_mode=new.merge_mode or default_merge,
        changelog=Changelog(producer=new.changelog.producer),
    )


def _name_rule(new: NewDataset) -> Iterator[Fault]:
    if not _NAME.fullmatch(new.name):
        yield "/name", "expected 1–128 letters, digits, '_', '-' or '.', starting with a letter or '_'"
    elif is_uuid(new.name):
        yield "/name", "a name may not have the form of a UUID: it could be taken for a dataset's id"


def _fields_rule(new: NewDataset) -> Iterator[Fault]:
    fields = new.schema.fields
    if not 1 <= len(fields) <= FIELDS_MAX:
        yield "/schema/fields", f"expected 1–{FIELDS_MAX} fields, got {len(fields)}"
    seen: dict[str, int] = {}
    for number, field in enumerate(fields):
        pointer = f"/schema/fields/{number}"
        if not 1 <= len(field.name) <= FIELD_NAME_CHARACTERS_MAX or not field.name.isprintable():
            yield f"{pointer}/name", f"expected 1–{FIELD_NAME_CHARACTERS_MAX} printable characters"
        if field.name.startswith("_hw_"):
            yield f"{pointer}/name", "names starting with '_hw_' are reserved"
        earlier = seen.setdefault(field.name.casefold(), number)
        if earlier != number:
            yield f"{pointer}/name", f"field {earlier} has this name already (names differ by more than case)"
        try:
            parse_type(field.type)
        except TypeSyntaxError as error:
            yield f"{pointer}/type", str(error)


def _references(new: NewDataset) -> Iterator[tuple[str, str]]:
    for part in ("record_key", "partition_by"):
        for number, name in enumerate(getattr(new, part)):
            yield f"/{part}/{number}", name
    for part in ("ordering_field", "event_time_field"):
        if getattr(new, part) is not None:
            yield f"/{part}", getattr(new, part)


def _references_rule(new: NewDataset) -> Iterator[Fault]:
    types = {field.name: field.type for field in new.schema.fields}
    for pointer, name in _references(new):
        if name not in types:
            yield pointer, f"there is no field {name!r} in the schema"
            continue
        try:
            data_type = parse_type(types[name])
        except TypeSyntaxError:
            continue
        if pointer.startswith(("/record_key", "/partition_by")) and not may_be_key(data_type):
            yield pointer, f"{name!r} is {data_type}, which has no exact equality; use another type"
        if pointer == "/ordering_field" and not may_be_ordered(data_type):
            yield (
                pointer,
                f"{name!r} is {data_type}, which has no order; use a number, string, date or timestamp",
            )
        if pointer == "/event_time_field" and not (
            str(data_type) == "date" or str(data_type).startswith("timestamp")
        ):
            yield pointer, f"{name!r} is {data_type}; event time is a date or a timestamp"


def _repeats_rule(new: NewDataset) -> Iterator[Fault]:
    for part in ("record_key", "partition_by"):
        names = getattr(new, part)
        if len(set(names)) != len(names):
            yield f"/{part}", "a field is named twice"


def _key_rule(new: NewDataset) -> Iterator[Fault]:
    if new.record_key:
        outside = [name for name in new.partition_by if name not in new.record_key]
        if outside:
            yield (
                "/partition_by",
                f"with fixed buckets, partition fields belong to the record key: add {outside}",
            )
        return
    if new.ordering_field is not None:
        yield (
            "/ordering_field",
            "an append-only dataset (no record_key) merges nothing, so it has no ordering field",
        )
    if new.merge_mode is not None:
        yield "/merge_mode", "an append-only dataset (no record_key) merges nothing"


def _merge_rule(new: NewDataset) -> Iterator[Fault]:
    if new.merge_mode is MergeMode.EVENT_TIME and new.ordering_field is None and new.record_key:
        yield "/ordering_field", "merge_mode event_time compares rows by the ordering field: name one"


def _bucket_rule(new: NewDataset) -> Iterator[Fault]:
    bucket = new.bucket or NewBucket()
    if bucket.count is not None and not 1 <= bucket.count <= BUCKETS_MAX:
        yield "/bucket/count", f"expected 1–{BUCKETS_MAX}, got {bucket.count}"
    if new.record_key and bucket.mode is BucketMode.UNAWARE:
        yield "/bucket/mode", "a dataset with a record_key needs buckets: use 'fixed'"
    if not new.record_key and (bucket.mode is BucketMode.FIXED or (bucket.count or 1) != 1):
        yield "/bucket/mode", "an append-only dataset (no record_key) has no buckets: use 'unaware'"


_RULES: Final[tuple[_Rule, ...]] = (
    _name_rule,
    _fields_rule,
    _references_rule,
    _repeats_rule,
    _key_rule,
    _merge_rule,
    _bucket_rule,
)
