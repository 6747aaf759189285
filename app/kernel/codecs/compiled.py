"""Compiled schemas: msgspec types that decode many rows at once, and the assembly of their values into Arrow.

msgspec checks members, kinds and integer bounds while it parses. Dates, timestamps and binary stay text, and decimals
and 32-bit floats stay raw JSON, for the vectorised conversions of their types. msgspec keeps the last of repeated
members, so the assembly counts members and strings: together they must account for every quotation mark of the body.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import attrgetter
from types import GenericAlias
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Raw

from app.kernel.format.errors import BodyTooLarge
from app.kernel.format.schema.schema import KeyStruct, Schema
from app.kernel.format.schema.types import (
    DOUBLE,
    STRING,
    DataType,
    FlatType,
    JsonForm,
    List,
    Map,
    Struct,
    Undecodable,
    to_arrow,
)

STEP_ROWS_MAX: Final = 65_536
# Wide rows take much memory even if most of their fields are absent.
STEP_LEAVES_MAX: Final = 4_000_000
TABLE_VALUES_MAX: Final = 16_000_000
# The exceptions of msgspec and Arrow for values that do not fit; any other exception is a bug.
FAST_PATH_FAULTS: Final = (
    msgspec.DecodeError,
    UnicodeDecodeError,
    RecursionError,
    OverflowError,
    Undecodable,
    pa.ArrowInvalid,
    pa.ArrowTypeError,
)

# It may also be inside a string, or a number of another column.
_LARGE_WHOLE: Final = re.compile(rb"(?<![0-9.eE+\-])-?[0-9]{16,}(?=[,}\]\s]|$)")


@dataclass(slots=True)
class Tally:
    """The numbers of members and strings in an assembled body. `large_reals`: whether a `double` beyond ±2^53 is in it.

    msgspec reads the nearest `double`, and not every whole number beyond is one.
    """

    members: int = 0
    strings: int = 0
    large_reals: bool = False

    def accounts_for(self, text: bytes) -> bool:
        """Whether every member was counted, and no whole number may have been rounded. `text`: what was assembled.

        A repeated member would leave at least two marks unexplained.
        """
        if quotation_marks(text) != 2 * (self.members + self.strings):
            return False
        return not self.large_reals or all(map(DOUBLE.reads_whole, _whole_numbers(text)))


def _whole_numbers(text: bytes) -> Iterator[str]:
    """The large ones of a text."""
    return (match[0].decode() for match in _LARGE_WHOLE.finditer(text))


def quotation_marks(text: bytes) -> int:
    """The number of quotation marks in valid JSON that are not escaped."""
    count = text.count(b'"')
    if b"\\" in text:
        # Remove escaped backslashes first, so that a backslash before a remaining mark does escape it.
        count -= text.replace(b"\\\\", b"").count(b'\\"')
    return count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompiledSchema:
    """A schema ready for decoding.

    `key_members`: the paths of members of structs that are never null, since they are part of the record key.
    `leaves`: the least number of values of a row, those of nested structs included. `width_in_lists`: the same of the
    widest struct inside a list or map, of which a row may have any number. `step_rows`: the number of rows to decode at
    once. `decode_row` is None where msgspec cannot express the names of the fields.
    """

    arrow: pa.Schema
    types: dict[str, DataType]
    required_names: frozenset[str]
    key_members: tuple[tuple[str, ...], ...]
    leaves: int
    width_in_lists: int
    step_rows: int
    decode_row: msgspec.json.Decoder[Any] | None

    def assemble(self, rows: Sequence[Any], tally: Tally) -> pa.Table:
        """Decoded rows as a table. Raises one of FAST_PATH_FAULTS for a value that does not fit."""
        members = _RowMembers(types=tuple(self.types.items()))
        columns = members.columns(rows, tally)
        for name, column in zip(self.types, columns, strict=True):
            if column.null_count and name in self.required_names:
                raise Undecodable
        table = pa.Table.from_arrays(columns, schema=self.arrow)
        for name, *path in self.key_members:
            if pc.struct_field(table.column(name), path).null_count:
                raise Undecodable
        return table

    def key_members_of(self, name: str) -> list[tuple[str, ...]]:
        """The paths below a field of its members that are never null."""
        return [path[1:] for path in self.key_members if path[0] == name]


@functools.lru_cache(maxsize=256)
def compile_schema(schema: Schema) -> CompiledSchema:
    """The compiled form of a schema; cached, since every body of a dataset needs it."""
    types = {field.name: field.data_type() for field in schema.fields}
    required_names = frozenset(field.name for field in schema.fields if not field.nullable)
    try:
        row = _row_type(tuple(types.items()), required_names)
    except ValueError:
        row = None
    leaves = sum(count_leaves(data_type) for data_type in types.values())
    return CompiledSchema(
        arrow=schema.to_arrow(),
        types=types,
        required_names=required_names,
        key_members=tuple(
            (field.name, *path)
            for field in schema.fields
            if isinstance(field, KeyStruct)
            for path in field.key_members
        ),
        leaves=leaves,
        width_in_lists=max((width_in_lists(data_type) for data_type in types.values()), default=0),
        step_rows=max(1, min(STEP_ROWS_MAX, STEP_LEAVES_MAX // leaves)),
        decode_row=msgspec.json.Decoder(row) if row is not None else None,
    )


@functools.lru_cache(maxsize=256)
def decoder_ignoring(
    types: tuple[tuple[str, DataType], ...], required_names: frozenset[str], ignored_fields: tuple[str, ...]
) -> msgspec.json.Decoder[Any] | None:
    """The decoder of rows that may have further members, called x0, x1 …, which are null.

    None where msgspec cannot express the names.
    """
    try:
        return msgspec.json.Decoder(_row_type(types, required_names, ignored_fields))
    except ValueError:
        return None


def count_leaves(data_type: DataType) -> int:
    """The least number of values in a value of the type, absent values included."""
    match data_type:
        case Struct(members):
            return sum(count_leaves(member) for _, member in members)
        case _:
            return 1


def width_in_lists(data_type: DataType) -> int:
    """`count_leaves` of the widest struct inside a list or map of the type; 0 without one."""
    match data_type:
        case Struct(members):
            return max(width_in_lists(member) for _, member in members)
        case List(element) | Map(_, element):
            own = count_leaves(element) if isinstance(element, Struct) else 0
            return max(own, width_in_lists(element))
        case _:
            return 0


def refuse_many_values(text: bytes, compiled_schema: CompiledSchema) -> None:
    """Raises BodyTooLarge for structs with absent members that would take far more memory than their text."""
    if (
        compiled_schema.width_in_lists
        and text.count(b"{") * compiled_schema.width_in_lists > TABLE_VALUES_MAX
    ):
        raise too_many_values()


def too_many_values() -> BodyTooLarge:
    """The error for rows with too many values, absent values included."""
    return BodyTooLarge(
        f"rows that are decoded together may have {TABLE_VALUES_MAX} values, those of absent fields included",
        limit_values=TABLE_VALUES_MAX,
    )


@functools.lru_cache(maxsize=1_024)
def value_decoder(data_type: DataType) -> msgspec.json.Decoder[Any] | None:
    """The decoder of a JSON value of the type, null included; None where msgspec cannot express its member names."""
    try:
        return msgspec.json.Decoder(_value_type(data_type))
    except ValueError:
        return None


def _value_type(data_type: DataType) -> Any:
    """The msgspec type of a JSON value of the type, null included."""
    kind = _bare_type(data_type)
    return kind if kind is Raw else kind | None


def assemble_values(values: Sequence[Any], data_type: DataType, tally: Tally) -> pa.Array:
    """Values decoded by `value_decoder` into an array of the type. Raises one of FAST_PATH_FAULTS."""
    match data_type:
        case List(element):
            return _lists(values, element, to_arrow(data_type), tally)
        case Map():
            return _maps(values, data_type, tally)
        case Struct(members):
            mask = _nulls(values)
            columns = _RowMembers(types=members).columns(values, tally)
            return pa.StructArray.from_arrays(columns, type=to_arrow(data_type), mask=mask)
        case FlatType(json_type=json_type) if json_type is Raw:
            return _raws(values, data_type, tally)
        case FlatType(json_form=JsonForm.TEXT):
            texts = _plain(values, pa.string())
            tally.strings += len(texts) - texts.null_count
            return data_type.parse(texts)
        case FlatType():
            array = _plain(values, data_type.arrow)
            if data_type == DOUBLE and not tally.large_reals:
                far = pc.greater_equal(pc.abs(array), DOUBLE.exact_max)
                tally.large_reals = pc.any(far, min_count=0).as_py() is True
            return array


def _bare_type(data_type: DataType) -> Any:
    match data_type:
        case List(element):
            return GenericAlias(list, (_value_type(element),))
        case Map(_, value):
            return GenericAlias(dict, (str, _value_type(value)))
        case Struct(members):
            return _row_type(members, frozenset())
        case FlatType():
            return data_type.json_type


def _row_type(
    types: tuple[tuple[str, DataType], ...],
    required_names: frozenset[str],
    ignored_fields: Sequence[str] = (),
) -> Any:
    """A msgspec struct of the members, named f0, f1 …, and of ignored ones, named x0, x1 …, which are null.

    Raises ValueError for names that it does not support.
    """
    fields: list[Any] = []
    for number, (name, data_type) in enumerate(types):
        if name in required_names:
            fields.append((f"f{number}", _bare_type(data_type)))
        else:
            fields.append((f"f{number}", _value_type(data_type), UNSET))
    names = {f"f{number}": name for number, (name, _) in enumerate(types)}
    names |= {f"x{number}": name for number, name in enumerate(ignored_fields)}
    fields += [(f"x{number}", None, UNSET) for number in range(len(ignored_fields))]
    return msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, kw_only=True, gc=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowMembers:
    types: tuple[tuple[str, DataType], ...]

    def columns(self, rows: Sequence[Any], tally: Tally) -> list[pa.Array]:
        """One array per member; a None row is null in each array."""
        live = [row for row in rows if row is not None] if None in rows else rows
        tally.members += len(live) * len(self.types)
        columns = []
        for number, (_, data_type) in enumerate(self.types):
            read = attrgetter(f"f{number}")
            if live is rows:  # noqa: SIM108 - two ways, one of them fast
                values = list(map(read, rows))
            else:
                values = [None if row is None else read(row) for row in rows]
            columns.append(_with_missing(values, data_type, tally))
        return columns


def _with_missing(values: list[Any], data_type: DataType, tally: Tally) -> pa.Array:
    # A check for UNSET costs as much as the conversion, in which Arrow rejects it anyway.
    if isinstance(data_type, FlatType) and data_type.json_type is not Raw:
        before = tally.strings
        try:
            return assemble_values(values, data_type, tally)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
            tally.strings = before
    present = [None if value is UNSET else value for value in values]
    tally.members -= sum(value is UNSET for value in values)
    return assemble_values(present, data_type, tally)


def _plain(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    array = pa.array(values, arrow_type)
    if isinstance(array, pa.ChunkedArray):
        raise Undecodable("one column of the body is over 2 GiB")
    return array


def _nulls(values: Sequence[Any]) -> pa.BooleanArray:
    return pa.array([value is None for value in values], pa.bool_())


def _offsets(values: Sequence[Any]) -> pa.Int32Array:
    lengths = (0 if value is None else len(value) for value in values)
    return pa.array(accumulate(lengths, initial=0), pa.int32())


def _lists(values: Sequence[Any], element: DataType, arrow_type: pa.DataType, tally: Tally) -> pa.ListArray:
    flat = list(chain.from_iterable(value for value in values if value is not None))
    elements = assemble_values(flat, element, tally)
    return pa.ListArray.from_arrays(_offsets(values), elements, type=arrow_type, mask=_nulls(values))


def _maps(values: Sequence[Any], data_type: Map, tally: Tally) -> pa.MapArray:
    present = [value for value in values if value is not None]
    names = _plain(list(chain.from_iterable(present)), pa.string())
    tally.members += len(names)
    assert isinstance(data_type.key, FlatType)
    keys = data_type.key.parse(names)
    items = assemble_values(
        list(chain.from_iterable(value.values() for value in present)), data_type.value, tally
    )
    offsets = _offsets(values)
    if data_type.key != STRING:
        _require_distinct_keys(keys, offsets)
    return pa.MapArray.from_arrays(offsets, keys, items, type=to_arrow(data_type), mask=_nulls(values))


def _require_distinct_keys(keys: pa.Array, offsets: pa.Int32Array) -> None:
    """Raises for repeated keys: different texts may denote one key, such as two offsets of one instant."""
    lengths = np.diff(offsets.to_numpy())
    owner = pa.array(np.repeat(np.arange(len(lengths)), lengths))
    distinct = pa.table({"owner": owner, "key": keys}).group_by(["owner", "key"]).aggregate([])
    if distinct.num_rows != len(keys):
        raise Undecodable


def _raws(values: Sequence[Any], data_type: FlatType, tally: Tally) -> pa.Array:
    texts: list[bytes | None] = []
    for value in values:
        text = None if value is None else bytes(value)
        if text is None or text == b"null":
            texts.append(None)
        elif text[0] != 0x22:
            texts.append(text)
        elif data_type.json_form is JsonForm.NUMBER:
            raise Undecodable
        else:
            tally.strings += 1
            texts.append(text[1:-1])
    return data_type.parse(pc.cast(pa.array(texts, pa.binary()), pa.string()))
