"""Schema evolution: applies one change after another; each is lossless or is refused with a reason.

A change never rewrites a file. Files carry the ids of their columns, and `app.kernel.format.schema.schema_projection`
reads them under any schema. So an id is never reused, and a field that determines the position of a row, or which row
wins, never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.merge_rules import fits
from app.kernel.format.definition.schema_change import (
    AddField,
    DropField,
    RelaxField,
    RenameField,
    ReorderFields,
    SchemaChange,
    WidenField,
)
from app.kernel.format.errors import FieldError, SchemaChangeRefused
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.partition.members import key_fields, member_root
from app.kernel.format.policies import TableServices
from app.kernel.format.schema.member_ids import with_member_ids
from app.kernel.format.schema.schema import (
    FIELDS_MAX,
    RESERVED_PREFIX,
    Field,
    Schema,
    name_fault,
)
from app.kernel.format.schema.types import DataType, TypeSyntaxError, parse_type
from app.kernel.format.schema.widening import why_not_wider


class _Refused(Exception):
    """The change breaks a rule. Holds the member at fault and the reason."""

    def __init__(self, member: str, reason: str) -> None:
        super().__init__(reason)
        self.member = member
        self.reason = reason


def evolve(dataset: DatasetDefinition, changes: Sequence[SchemaChange]) -> DatasetDefinition:
    """The dataset under its next schema, with all of the changes applied.

    Raises SchemaChangeRefused with every fault; its pointers are those of `{"changes": […]}`.
    """
    next_dataset, errors = dataset, []
    if not 1 <= len(changes) <= FIELDS_MAX:
        errors.append(
            FieldError(pointer="/changes", detail=f"expected 1–{FIELDS_MAX} changes, got {len(changes)}")
        )
    for number, change in enumerate(changes[:FIELDS_MAX]):
        try:
            next_dataset = _changed(next_dataset, change)
        except _Refused as refusal:
            pointer = f"/changes/{number}/{refusal.member}"
            errors.append(FieldError(pointer=pointer, detail=refusal.reason))
    if errors:
        summary = "; ".join(f"{error.pointer}: {error.detail}" for error in errors[:3])
        raise SchemaChangeRefused(f"nothing was changed: {summary}", errors)
    schema = msgspec.structs.replace(next_dataset.schema, id=dataset.schema.id + 1)
    return msgspec.structs.replace(next_dataset, schema=schema)


def under_schema(dataset: DatasetDefinition, schema: Schema) -> DatasetDefinition:
    """The dataset under one of its other schemas. The fields that the definition uses are found by id."""
    names = {field.id: field.name for field in schema.fields}
    there = {field.name: names[field.id] for field in dataset.schema.fields if field.id in names}
    return _with_references(msgspec.structs.replace(dataset, schema=schema), there)


def with_later_types(schema: Schema, later: Iterable[Schema]) -> Schema:
    """The schema, with the types that its fields had last: every row that was ever stored fits it.

    `later`: schemas of the dataset after it, in their order. A field that the last one does not have is nullable.
    """
    fields = {field.id: field for field in schema.fields}
    last = None
    for each in later:
        last = {field.id: field for field in each.fields}
        fields |= {number: field for number, field in last.items() if number in fields}
    return msgspec.structs.replace(
        schema,
        fields=tuple(
            msgspec.structs.replace(
                field,
                type=fields[field.id].type,
                member_ids=fields[field.id].member_ids,
                nullable=fields[field.id].nullable or (last is not None and field.id not in last),
            )
            for field in schema.fields
        ),
    )


def _changed(dataset: DatasetDefinition, change: SchemaChange) -> DatasetDefinition:
    match change:
        case AddField():
            return _with_fields(dataset, _added(dataset.schema, change))
        case DropField(name=name):
            old = _existing(dataset, "name", name)
            if role := next(iter(_roles(dataset, name)), None):
                raise _Refused("name", f"{name!r} is {role}: it cannot be dropped")
            if len(dataset.schema.fields) == 1:
                raise _Refused("name", f"{name!r} is the only field: a dataset needs at least one")
            return _with_fields(dataset, [field for field in dataset.schema.fields if field is not old])
        case RenameField():
            return _renamed(dataset, change)
        case WidenField():
            return _widened(dataset, change)
        case RelaxField(name=name):
            field = _existing(dataset, "name", name)
            if field.nullable:
                raise _Refused("name", f"{name!r} already accepts nulls")
            _refuse_fixed(dataset, name, "name", "stays required")
            return _replaced(dataset, field, nullable=True)
        case ReorderFields(names=names):
            return _with_fields(dataset, _reordered(dataset.schema, names))


def _reordered(schema: Schema, names: Sequence[str]) -> Sequence[Field]:
    field_names, requested_names = set(schema.names()), set(names)
    missing = [name for name in schema.names() if name not in requested_names]
    unknown_names = [name for name in names if name not in field_names]
    if missing or unknown_names or len(names) != len(schema.fields):
        reason = f"expected each field once; missing: {missing}, unknown: {unknown_names}, {len(names)} named"
        raise _Refused("names", reason)
    if names == schema.names():
        raise _Refused("names", "the fields already have this order")
    return schema.select(names).fields


def _existing(dataset: DatasetDefinition, member: str, name: str) -> Field:
    try:
        return dataset.schema.field(name)
    except KeyError:
        raise _Refused(member, f"there is no field {name!r} in the schema") from None


def _with_fields(dataset: DatasetDefinition, fields: Sequence[Field]) -> DatasetDefinition:
    """The dataset with other fields. Ids that were assigned once stay reserved, also after their field is dropped."""
    schema = dataset.schema
    new_names = {field.name for field in fields} - set(schema.names())
    if dataset.ordering_field in new_names:
        raise _Refused("name", f"{dataset.ordering_field!r} names the ordering field, a member of a struct")
    for name in new_names & set(dataset.record_key):
        raise _Refused("name", f"{name!r} names a part of the record key, a member of a struct")
    highest = max(schema.highest_field_id, *(field.id for field in fields))
    new_schema = msgspec.structs.replace(schema, fields=tuple(fields), last_field_id=highest)
    return msgspec.structs.replace(dataset, schema=with_member_ids(new_schema))


def _replaced(dataset: DatasetDefinition, old: Field, **values: object) -> DatasetDefinition:
    new = msgspec.structs.replace(old, **values)
    return _with_fields(dataset, [new if field is old else field for field in dataset.schema.fields])


def _added(schema: Schema, change: AddField) -> list[Field]:
    new = change.field
    _check_name(schema, "field/name", new.name)
    if not new.nullable:
        reason = "an added field must be nullable: existing rows have no value for it"
        raise _Refused("field/nullable", reason)
    if len(schema.fields) == FIELDS_MAX:
        raise _Refused("field", f"a dataset has at most {FIELDS_MAX} fields")
    kind = str(_parsed("field/type", new.type))
    return [*schema.fields, Field(id=schema.highest_field_id + 1, name=new.name, type=kind, doc=new.doc)]


def _renamed(dataset: DatasetDefinition, change: RenameField) -> DatasetDefinition:
    old = _existing(dataset, "name", change.name)
    _refuse_fixed(dataset, old.name, "name", "keeps its name")
    others = msgspec.structs.replace(
        dataset.schema, fields=tuple(field for field in dataset.schema.fields if field is not old)
    )
    if change.to == old.name:
        raise _Refused("to", f"{old.name!r} already has this name")
    _check_name(others, "to", change.to)
    return _with_references(_replaced(dataset, old, name=change.to), {old.name: change.to})


def _with_references(dataset: DatasetDefinition, names: dict[str, str]) -> DatasetDefinition:
    """The dataset with the names of fields replaced in all settings that refer to them."""

    def now(name: str) -> str:
        return names.get(name, name)

    def perhaps(name: str | None) -> str | None:
        return None if name is None else now(name)

    groups = tuple(
        msgspec.structs.replace(group, fields=tuple(map(now, group.fields)))
        for group in dataset.sequence_groups
    )
    return msgspec.structs.replace(
        dataset,
        event_time_field=perhaps(dataset.event_time_field),
        delete_marker=perhaps(dataset.delete_marker),
        sequence_groups=groups,
        aggregates={now(name): aggregate for name, aggregate in dataset.aggregates.items()},
        services=_with_columns(dataset.services, now),
        watermark=None
        if dataset.watermark is None
        else msgspec.structs.replace(dataset.watermark, field=now(dataset.watermark.field)),
    )


def _with_columns(services: TableServices, now: Callable[[str], str]) -> TableServices:
    policy = services.clustering
    if policy is None:
        return services
    new_policy = msgspec.structs.replace(policy, columns=[now(name) for name in policy.columns])
    return msgspec.structs.replace(services, clustering=new_policy)


def _widened(dataset: DatasetDefinition, change: WidenField) -> DatasetDefinition:
    old = _existing(dataset, "name", change.name)
    _refuse_fixed(dataset, old.name, "name", "keeps its type")
    kind = _parsed("type", change.type_)
    if kind == old.data_type():
        raise _Refused("type", f"{old.name!r} is already of type {kind}")
    reason = why_not_wider(old.data_type(), kind, explicit_cast=change.explicit_cast)
    if reason is not None:
        raise _Refused("type", f"{old.name!r} cannot be changed: {reason}")
    aggregate = dataset.aggregates.get(old.name)
    if aggregate is not None and not fits(aggregate, kind):
        raise _Refused(
            "type", f"{old.name!r} is aggregated by {aggregate.value}, which does not support {kind}"
        )
    return _replaced(dataset, old, type=str(kind))


def _parsed(member: str, text: str) -> DataType:
    try:
        return parse_type(text)
    except TypeSyntaxError as error:
        raise _Refused(member, str(error)) from None


def _check_name(schema: Schema, member: str, name: str) -> None:
    if reason := name_fault(name):
        raise _Refused(member, f"the field {reason}")
    if name.startswith(RESERVED_PREFIX):
        raise _Refused(member, f"names starting with {RESERVED_PREFIX!r} are reserved")
    for field in schema.fields:
        if field.name.casefold() == name.casefold():
            raise _Refused(
                member, f"there is a field {field.name!r} already (names must differ by more than case)"
            )


def keeps_type(dataset: DatasetDefinition, name: str) -> bool:
    """Whether the field can never change its type."""
    return next(_fixed_roles(dataset, name), None) is not None


def _refuse_fixed(dataset: DatasetDefinition, name: str, member: str, consequence: str) -> None:
    if role := next(_fixed_roles(dataset, name), None):
        raise _Refused(member, f"{name!r} is {role}: it {consequence}")


def _fixed_roles(dataset: DatasetDefinition, name: str) -> Iterator[str]:
    """The roles of the field that determine where stored rows lie, or which of them won."""
    if name in key_fields(dataset):
        plain = name in dataset.record_key
        yield "part of the record key" if plain else "a struct with a part of the record key"
    if name in partition_sources(dataset):
        yield "what the dataset is partitioned by"
    if name == member_root(dataset.ordering_field, dataset.schema.names()):
        plain = name == dataset.ordering_field
        yield (
            "the ordering field" if plain else f"the struct with the ordering field {dataset.ordering_field}"
        )
    if any(name == group.ordering_field for group in dataset.sequence_groups):
        yield "the ordering field of a sequence group"


def _roles(dataset: DatasetDefinition, name: str) -> Iterator[str]:
    """Every role of the field in the definition."""
    yield from _fixed_roles(dataset, name)
    if name == dataset.event_time_field:
        yield "the event time field"
    if dataset.watermark is not None and name == dataset.watermark.field:
        yield "the field of the watermark"
    if any(name in group.fields for group in dataset.sequence_groups):
        yield "part of a sequence group"
    if name in dataset.aggregates:
        yield "aggregated"
    if name == dataset.delete_marker:
        yield "the delete marker"
    if dataset.services.clustering is not None and name in dataset.services.clustering.columns:
        yield "what the dataset is clustered by"
