"""The rules of a dataset definition that concern its partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from app.kernel.format.dataset import BucketMode
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.partition.fields import (
    PartitionField,
    PartitionSyntaxError,
    check_transform,
    parse_partition,
    partition_name,
    source_type,
)
from app.kernel.format.partition.members import member_path
from app.kernel.format.schema.types import DataType, TypeSyntaxError, parse_type

Fault = tuple[str, str]
# Each level is a folder of 200 characters at most, and the catalogue's indexes take paths of 2,500 characters.
PARTITION_FIELDS_MAX: Final = 8


def _parsed(new: CreateDataset) -> Iterator[tuple[str, PartitionField]]:
    for number, text in enumerate(new.partition_by):
        try:
            yield f"/partition_by/{number}", parse_partition(text)
        except PartitionSyntaxError:
            continue  # another rule reports it


def _syntax_rule(new: CreateDataset) -> Iterator[Fault]:
    if len(new.partition_by) > PARTITION_FIELDS_MAX:
        yield "/partition_by", f"expected {PARTITION_FIELDS_MAX} at most, got {len(new.partition_by)}"
    for number, text in enumerate(new.partition_by):
        try:
            parse_partition(text)
        except PartitionSyntaxError as error:
            yield f"/partition_by/{number}", str(error)


def _source_rule(new: CreateDataset) -> Iterator[Fault]:
    types: dict[str, DataType] = {}
    faulty_fields = set()
    for field in new.schema.fields:
        try:
            types[field.name] = parse_type(field.type)
        except TypeSyntaxError:
            faulty_fields.add(field.name)  # another rule reports it
    for pointer, entry in _parsed(new):
        if entry.path[0] in faulty_fields:
            continue
        try:
            check_transform(entry, source_type(entry.path, types))
        except PartitionSyntaxError as error:
            yield pointer, str(error)


def _repeats_rule(new: CreateDataset) -> Iterator[Fault]:
    texts: dict[str, str] = {}
    for pointer, field in _parsed(new):
        name = partition_name(field)
        if name.casefold() in texts:
            yield (
                pointer,
                f"{field.text!r} and {texts[name.casefold()]!r} are folders of the same name, {name}=…",
            )
        texts.setdefault(name.casefold(), field.text)


def _key_rule(new: CreateDataset) -> Iterator[Fault]:
    if not new.record_key or new.bucket_mode is BucketMode.KEY_DYNAMIC:
        return
    names = {field.name for field in new.schema.fields}
    paths = {_key_path(text, names) for text in new.record_key}
    for pointer, field in _parsed(new):
        if field.path[0] in new.record_key or field.path in paths:
            continue
        rule = "a key lives in one partition only if its fields determine the partition: "
        other = "or use bucket mode 'key_dynamic', which keeps keys unique across partitions"
        what = f"add {'.'.join(field.path)!r} to the record key, "
        yield pointer, rule + what + other


def _key_path(text: str, fields: Collection[str]) -> tuple[str, ...] | None:
    """The path of a part of the key, unless another rule reports it."""
    try:
        return member_path(text, fields)
    except PartitionSyntaxError:
        return None


PARTITION_RULES: Final[tuple[Callable[[CreateDataset], Iterator[Fault]], ...]] = (
    _syntax_rule,
    _source_rule,
    _repeats_rule,
    _key_rule,
)
