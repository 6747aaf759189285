"""The schema of a write with `merge_schema`: adds missing columns, and widens types to hold the written values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec
import pyarrow as pa

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.evolution import evolve, keeps_type
from app.kernel.format.definition.new_dataset import CreateField
from app.kernel.format.definition.schema_change import AddField, SchemaChange, WidenField
from app.kernel.format.errors import FieldError, SchemaChangeRefused, SchemaMismatch
from app.kernel.format.schema.schema import NAMES_EXPECTED, may_be_added, name_fault
from app.kernel.format.schema.shapes import (
    DIGITS_MAX,
    NULLS,
    Arrays,
    Booleans,
    Cells,
    Integers,
    Maps,
    Mixed,
    Nulls,
    Numbers,
    Objects,
    Several,
    Shape,
    Texts,
    Typed,
    common_shape,
    number_type,
    numbers,
    uncelled,
)
from app.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    FlatType,
    List,
    Map,
    NoType,
    Struct,
    Timestamp,
    TypeSyntaxError,
    inferred_type,
    parse_type,
)
from app.kernel.format.schema.types.uuids import UUID
from app.kernel.format.schema.widening import why_not_wider

_SHOWN_MAX: Final = 60


class _NoType(Exception):
    """The values of a new column determine no type; the message has the reason."""


def merge_schemas(
    dataset: DatasetDefinition, incoming: Mapping[str, Shape], *, explicit_cast: bool
) -> DatasetDefinition | None:
    """The dataset under a schema with the incoming columns; None if its schema has them already.

    A column of the dataset gets a wider type where values need one. It keeps its type where no type holds both: rows
    with values that do not fit are then errors. Raises SchemaMismatch for a new column without a type or that may not
    be added.
    """
    names: list[str] = []
    changes: list[SchemaChange] = []
    faults: list[FieldError] = []
    types = {field.name: field.data_type() for field in dataset.schema.fields}
    known = {name.casefold() for name in types}
    for name, shape in incoming.items():
        if name not in types and not may_be_added(name, known):
            # Its values are errors of their rows.
            continue
        known.add(name.casefold())
        try:
            change = _change(dataset, types.get(name), name, shape, explicit_cast=explicit_cast)
        except _NoType as fault:
            faults.append(_fault(name, str(fault)))
            continue
        if change is not None:
            names.append(name)
            changes.append(change)
    if faults:
        raise _mismatch(faults)
    if not changes:
        return None
    try:
        return evolve(dataset, changes)
    except SchemaChangeRefused as refusal:
        # Faults point into the list of changes, which the sender of the rows does not see.
        raise _mismatch(
            _fault(names[int(error["pointer"].split("/")[2])], f": {error['detail']}")
            for error in refusal.facts["errors"]
            if error["pointer"].count("/") > 1
        ) from None


def inferred_types(
    shapes: Mapping[str, Shape],
    *,
    explicit_cast: bool = False,
    moments: Collection[str] = (),
    required: Collection[str] = (),
) -> dict[str, str]:
    """The types of the columns of a new dataset, by name. Raises SchemaMismatch for one whose values determine none.

    Columns of nulls are left out, unless they are `required`. `explicit_cast`: texts that are all dates, or all times,
    have such a type. `moments`: columns of which that is always so, since texts would be compared by their characters.
    """
    types: dict[str, str] = {}
    faults: list[FieldError] = []
    known: set[str] = set()
    for name, shape in shapes.items():
        if isinstance(shape, Nulls):
            if name in required:
                detail = "has nulls only, but keys, partitions and times need values: send some, or state the columns"
                faults.append(_fault(name, detail))
            continue
        if not may_be_added(name, known):
            # Its values are errors of their rows.
            continue
        known.add(name.casefold())
        try:
            types[name] = str(_new_type(shape, explicit_cast or name in moments))
        except _NoType as fault:
            faults.append(_fault(name, str(fault)))
    if not types:
        faults += [
            _fault(name, f": no field can have this name; {NAMES_EXPECTED}")
            for name in shapes
            if name_fault(name)
        ]
    if faults:
        raise _mismatch(faults)
    return types


def _change(
    dataset: DatasetDefinition, old: DataType | None, name: str, shape: Shape, *, explicit_cast: bool
) -> SchemaChange | None:
    if old is None and isinstance(shape, Nulls):
        return None
    if old is None:
        return AddField(field=CreateField(name=name, type=str(_new_type(shape, explicit_cast))))
    wider = _widened(old, shape, explicit_cast)
    if wider == old or keeps_type(dataset, name):
        return None
    return WidenField(name=name, type_=str(wider), explicit_cast=explicit_cast)


def _mismatch(faults: Iterable[FieldError]) -> SchemaMismatch:
    errors = list(faults)
    summary = "; ".join(f"{error.pointer}: {error.detail}" for error in errors[:3])
    return SchemaMismatch(f"columns of the input cannot be added to the schema: {summary}", errors)


def _fault(name: str, reason: str) -> FieldError:
    """A fault of a column: values of it are in any row."""
    space = "" if reason.startswith(":") else " "
    return FieldError(pointer="/rows", detail=f"{field_words(name)}{space}{reason}")


def field_words(name: str) -> str:
    """The words for a field at the start of the faults of its column."""
    return f"the field {name[:_SHOWN_MAX]!a}"


def _new_type(shape: Shape, explicit_cast: bool) -> DataType:
    match shape:
        case Booleans():
            return BOOLEAN
        case Integers() | Numbers():
            # Those beyond any type are errors of their rows.
            fitting = msgspec.structs.replace(shape, beyond=False)
            return number_type(fitting) or _nearest_decimal(numbers(fitting))
        case Texts():
            return _text_type(shape) if explicit_cast else STRING
        case Cells(shape=inner):
            return _cell_type(inner)
        case Several(shapes=shapes):
            return _new_type(shapes[0], explicit_cast)
        case Objects(members=members) if members:
            return _new_struct(members, explicit_cast)
        case Arrays(element=element) if not isinstance(element, Nulls):
            return List(_new_type(element, explicit_cast))
        case Maps(key=key, value=value):
            return _new_map(_new_type(key, explicit_cast), _new_type(value, explicit_cast))
        case Typed(type_=text):
            return parse_type(text)
        case Nulls() | Objects() | Arrays():
            raise _no_type(shape)
        case Mixed(reason=reason):
            raise _NoType(reason)


_WITHOUT_VALUES: Final[dict[type, str]] = {
    Nulls: "nulls",
    Objects: "objects without values",
    Arrays: "arrays without values",
}


def _new_map(key: DataType, value: DataType) -> Map:
    try:
        return Map(key, value)
    except TypeSyntaxError as error:
        raise _NoType(str(error)) from None


def _no_type(shape: Nulls | Objects | Arrays) -> _NoType:
    what = _WITHOUT_VALUES[type(shape)]
    return _NoType(f"has {what} only, so its type is unknown; leave it out, or state the columns")


def _new_struct(members: Mapping[str, Shape], explicit_cast: bool) -> Struct:
    types = {
        name: _new_type(member, explicit_cast)
        for name, member in members.items()
        if not isinstance(member, Nulls)
    }
    if not types:
        raise _no_type(Objects(members={}))
    return Struct(tuple(types.items()))


def _nearest_decimal(shape: Numbers) -> Decimal:
    """The type of JSON numbers that no type holds: those that it does not hold are errors of their rows."""
    return Decimal(DECIMAL_PRECISION_MAX, max(0, min(shape.scale, DECIMAL_PRECISION_MAX - shape.whole)))


def _cell_type(shape: Shape) -> DataType:
    """The type that all cells of CSV are read as: text, if they are nothing else."""
    match shape:
        case Booleans():
            return BOOLEAN
        case Integers() | Numbers():
            return number_type(shape) or STRING
        case Texts(clocks=True):
            return TIMESTAMP_NTZ
        case Texts(uuids=True):
            return UUID
        case Texts():
            return _text_type(shape)
    return STRING


def _text_type(texts: Texts) -> DataType:
    if texts.days:
        return DATE
    return TIMESTAMP if texts.times else STRING


def _widened(old: DataType, shape: Shape, explicit_cast: bool) -> DataType:
    """The type that holds the values as well; the old type where no type does."""
    match old, uncelled(shape):
        case Struct(members), Objects(members=member_shapes):
            return _widened_struct(dict(members), member_shapes, explicit_cast)
        case List(element), Arrays(element=element_shape):
            return List(_widened(element, element_shape, explicit_cast))
        case Map(key, value), Maps(value=value_shape):
            return Map(key, _widened(value, value_shape, explicit_cast))
        case Map(key, value), Objects(members=member_shapes):
            inside: Shape = NULLS
            for member in member_shapes.values():
                inside = common_shape(inside, member)
            return Map(key, _widened(value, inside, explicit_cast))
        case _, Several(shapes=shapes):
            for each in shapes:
                old = _widened(old, each, explicit_cast)
            return old
        case FlatType(), (Integers() | Numbers()) as number_shape:
            return _widened_number(old, number_shape)
        case FlatType(), Texts() as texts if old == DATE and explicit_cast and (texts.times or texts.clocks):
            return TIMESTAMP if texts.times else TIMESTAMP_NTZ
        case Timestamp("ms", zoned), Texts(fine=True):
            return Timestamp("us", zoned)
        case _, Typed(type_=text):
            return _common(old, parse_type(text), explicit_cast)
    return old


def _widened_number(old: FlatType, shape: Integers | Numbers) -> FlatType:
    """The type that holds the numbers as well without loss; the old type where none does."""
    match old, shape:
        case Decimal(), _:
            return _widened_decimal(old, numbers(shape))
        case _, Integers(digits=0):
            holding = (each for each in (old, *old.wider) if each.holds_integers(shape.low, shape.high))
            return next(holding, old)
        case _, Numbers(exact=True) if old != FLOAT and DOUBLE in old.wider:
            return DOUBLE
        case _, Numbers(exact=True, whole=whole) if old == FLOAT and whole == DIGITS_MAX:
            # From 1e38 on. Of smaller numbers a float has the nearest.
            return DOUBLE
    return old


def _widened_decimal(old: Decimal, shape: Numbers) -> Decimal:
    """The decimal of the same scale that holds the numbers as well; the old type where none does."""
    precision = max(old.precision, shape.whole + old.scale)
    fits = shape.scale <= old.scale and precision <= DECIMAL_PRECISION_MAX
    return Decimal(precision, old.scale) if fits else old


def _widened_struct(
    members: dict[str, DataType], member_shapes: Mapping[str, Shape], explicit_cast: bool
) -> Struct:
    wider = {
        name: _widened(member, member_shapes[name], explicit_cast) if name in member_shapes else member
        for name, member in members.items()
    }
    new = {
        name: _new_type(shape, explicit_cast)
        for name, shape in member_shapes.items()
        if name not in members and not isinstance(shape, Nulls)
    }
    return Struct(tuple((wider | new).items()))


def _common(old: DataType, new: DataType, explicit_cast: bool) -> DataType:
    """The narrowest type that holds the values of both; the old type where no type does."""

    def holds(wide: DataType, narrow: DataType) -> bool:
        return why_not_wider(narrow, wide, explicit_cast=explicit_cast) is None

    wider = old.wider if isinstance(old, FlatType) else ()
    return next((each for each in (old, new, *wider) if holds(each, old) and holds(each, new)), old)


def typed_shape(data_type: DataType) -> Shape:
    """The shape of a column of the type."""
    match data_type:
        case Struct(members):
            return Objects(members={name: typed_shape(member) for name, member in members})
        case Map(key, value):
            return Maps(key=typed_shape(key), value=typed_shape(value))
        case List(element):
            return Arrays(element=typed_shape(element))
        case FlatType():
            return Typed(type_=str(data_type))


def columnar_shape(kind: pa.DataType) -> Shape:
    """The shape of a column of Arrow data."""
    if pa.types.is_null(kind):
        return NULLS
    if pa.types.is_dictionary(kind):
        return columnar_shape(kind.value_type)
    if pa.types.is_struct(kind):
        return Objects(members={member.name: columnar_shape(member.type) for member in kind})
    if pa.types.is_map(kind):
        return Maps(key=columnar_shape(kind.key_type), value=columnar_shape(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return Arrays(element=columnar_shape(kind.value_type))
    try:
        return Typed(type_=str(inferred_type(kind)))
    except NoType as error:
        return Mixed(reason=str(error))
