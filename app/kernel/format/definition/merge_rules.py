"""The rules of a dataset definition that concern how rows merge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from app.kernel.format.dataset import Aggregate, BucketMode, Deletes, MergeMode, has_tombstones
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.partition.fields import PartitionSyntaxError, parse_partition
from app.kernel.format.partition.members import member_root
from app.kernel.format.schema.types import (
    BOOLEAN,
    DataType,
    FlatType,
    Integer,
    List,
    TypeSyntaxError,
    has_order,
    parse_type,
)

Fault = tuple[str, str]


def _types(new: CreateDataset) -> dict[str, DataType]:
    types = {}
    for field in new.schema.fields:
        try:
            types[field.name] = parse_type(field.type)
        except TypeSyntaxError:
            continue  # another rule reports it
    return types


def _ordering_root(new: CreateDataset) -> str | None:
    """The field that the ordering value is in."""
    return member_root(new.ordering_field, {field.name for field in new.schema.fields})


def _ordering_rule(new: CreateDataset) -> Iterator[Fault]:
    if not new.record_key:
        return
    if new.merge_mode is MergeMode.EVENT_TIME and new.ordering_field is None:
        yield "/ordering_field", "merge_mode event_time compares rows by the ordering field: specify it"
    if new.merge_mode is MergeMode.FIRST and new.ordering_field is not None:
        yield "/ordering_field", "merge_mode first keeps the row that came first, whatever its ordering value"
    if new.ordering_field in new.record_key:
        yield "/ordering_field", "rows of one key share its fields, so a key field cannot order them"


def _deletes_rule(new: CreateDataset) -> Iterator[Fault]:
    if new.deletes is not None:
        yield from deletes_faults(new.deletes, new.ordering_field, new.merged_by)


def deletes_faults(deletes: Deletes, ordering_field: str | None, merge_mode: MergeMode) -> Iterator[Fault]:
    """What is wrong with the setting, in a dataset with this ordering field and merge mode."""
    if not deletes.keep_seconds or has_tombstones(ordering_field, merge_mode):
        return
    if ordering_field is None:
        reason = (
            "rows are compared with tombstones by the ordering field, and the dataset has none: expected 0"
        )
    else:
        reason = (
            f"merge_mode {merge_mode.value} compares no ordering values, so it has no tombstones: expected 0"
        )
    yield "/deletes/keep_seconds", reason


def _sequence_group_rule(new: CreateDataset) -> Iterator[Fault]:
    if new.sequence_groups and new.merge_mode is not MergeMode.PARTIAL:
        yield "/sequence_groups", "sequence groups belong to merge_mode partial"
    types = _types(new)
    names = {field.name for field in new.schema.fields}
    group_numbers: dict[str, int] = {}
    for number, group in enumerate(new.sequence_groups):
        pointer = f"/sequence_groups/{number}"
        order = types.get(group.ordering_field)
        if group.ordering_field not in names:
            yield f"{pointer}/ordering_field", f"there is no field {group.ordering_field!r} in the schema"
        elif order is not None and not has_order(order):
            yield f"{pointer}/ordering_field", f"{group.ordering_field!r} is {order}, which has no order"
        if not group.fields:
            yield f"{pointer}/fields", "specify at least one field"
        for name in (group.ordering_field, *group.fields):
            if name not in names and name != group.ordering_field:
                yield f"{pointer}/fields", f"there is no field {name!r} in the schema"
            if name in new.record_key or name == _ordering_root(new):
                yield f"{pointer}/fields", f"{name!r} is part of the key or orders the whole row"
            earlier = group_numbers.setdefault(name, number)
            if earlier != number:
                yield f"{pointer}/fields", f"{name!r} is already in group {earlier}"


def _aggregates_rule(new: CreateDataset) -> Iterator[Fault]:
    if new.aggregates and new.merge_mode is not MergeMode.AGGREGATE:
        yield "/aggregates", "aggregates belong to merge_mode aggregate"
    types = _types(new)
    names = {field.name for field in new.schema.fields}
    for name, aggregate in new.aggregates.items():
        pointer = f"/aggregates/{name}"
        if name not in names:
            yield pointer, f"there is no field {name!r} in the schema"
        elif name in new.record_key or name == _ordering_root(new):
            yield pointer, "a field of the key, or the ordering field, is not aggregated"
        elif name in types and not fits(aggregate, types[name]):
            yield pointer, f"{aggregate.value} does not support {types[name]}"


# The ranges of these types are never exceeded, however many rows there are.
_UNBOUNDED: Final = {Aggregate.SUM: ("float", "double"), Aggregate.COUNT: ("int64",)}


def _sum_rule(new: CreateDataset) -> Iterator[Fault]:
    """A sum that does not fit its field fails its write, so it has to be known when the write is made."""
    bucket = new.buckets
    if not new.logs and (bucket.mode is not BucketMode.POSTPONE or bucket.fixed_now):
        return
    types = _types(new)
    for name, aggregate in new.aggregates.items():
        if aggregate in _UNBOUNDED and str(types.get(name)) not in _UNBOUNDED[aggregate]:
            yield (
                f"/aggregates/{name}",
                f"a {aggregate.value} that does not fit {types.get(name)} must be detected when rows are written, but "
                f"logs and postponed rows are summed later: use {_UNBOUNDED[aggregate][-1]}, or "
                "a table that looks up old rows (copy_on_write or changelog.producer full, and not postpone)",
            )


def fits(aggregate: Aggregate, kind: DataType) -> bool:
    """Whether the aggregate supports values of the type."""
    match aggregate:
        case Aggregate.SUM:
            return isinstance(kind, FlatType) and kind.is_number
        case Aggregate.COUNT:
            return isinstance(kind, Integer)
        case Aggregate.MIN | Aggregate.MAX:
            return has_order(kind)
        case Aggregate.BOOL_AND | Aggregate.BOOL_OR:
            return kind == BOOLEAN
        case Aggregate.COLLECT:
            return isinstance(kind, List)
        case _:
            return True


def _sources(new: CreateDataset) -> set[str]:
    sources = set()
    for text in new.partition_by:
        try:
            sources.add(parse_partition(text).path[0])
        except PartitionSyntaxError:
            continue  # another rule reports it
    return sources - set(new.record_key)


def _place_rule(new: CreateDataset) -> Iterator[Fault]:
    """A row that is merged field by field stays in its partition, so what decides the partition stays as it is."""
    if new.merge_mode not in (MergeMode.PARTIAL, MergeMode.AGGREGATE):
        return
    reason = f"merge_mode {new.merge_mode.value} keeps a row in its partition, whose fields must not change"
    moving = [("/ordering_field", _ordering_root(new))]
    moving += [(f"/aggregates/{name}", name) for name in new.aggregates]
    for number, group in enumerate(new.sequence_groups):
        moving.append((f"/sequence_groups/{number}/ordering_field", group.ordering_field))
        moving += [(f"/sequence_groups/{number}/fields", name) for name in group.fields]
    sources = _sources(new)
    for pointer, name in moving:
        if name in sources:
            yield pointer, f"{reason}; {name!r} is one of them"


def _optional_rule(new: CreateDataset) -> Iterator[Fault]:
    """Rows of a partial merge may lack any field, and a field that no row brought yet is null."""
    if new.merge_mode is not MergeMode.PARTIAL:
        return
    always = {*new.record_key, *_sources(new), _ordering_root(new)}
    for number, field in enumerate(new.schema.fields):
        if not field.nullable and field.name not in always:
            yield (
                f"/schema/fields/{number}/nullable",
                "rows of merge_mode partial may lack fields outside the key: this one must be nullable",
            )


def _delete_marker_rule(new: CreateDataset) -> Iterator[Fault]:
    if new.delete_marker is None or not new.record_key:
        return
    types = _types(new)
    if new.delete_marker not in {field.name for field in new.schema.fields}:
        yield "/delete_marker", f"there is no field {new.delete_marker!r} in the schema"
    elif types.get(new.delete_marker, BOOLEAN) != BOOLEAN:
        yield (
            "/delete_marker",
            f"{new.delete_marker!r} is {types[new.delete_marker]}; a delete marker is boolean",
        )
    if new.delete_marker in new.record_key:
        yield "/delete_marker", "a field of the key cannot mark the key as deleted"


MERGE_RULES: Final[tuple[Callable[[CreateDataset], Iterator[Fault]], ...]] = (
    _ordering_rule,
    _deletes_rule,
    _sequence_group_rule,
    _aggregates_rule,
    _sum_rule,
    _place_rule,
    _optional_rule,
    _delete_marker_rule,
)
