"""Values that Debezium has not read, in the columns of envelopes: see `app.kernel.codecs.json.unavailable_values`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.arrow_casts import map_entries
from app.kernel.codecs.faults import below
from app.kernel.codecs.json.objects import json_texts
from app.kernel.codecs.json.unavailable_values import (
    JSON_MAP,
    PLACEHOLDER,
    PLACEHOLDER_BYTES,
    PLACEHOLDER_UUID,
    UNAVAILABLE,
    UNAVAILABLE_MEMBER,
    may_have_members,
    unavailable_member,
)
from app.kernel.codecs.value_parser import parse_json
from app.kernel.format.rows.change_schema import ChangeSchema
from app.kernel.format.rows.kept_fields import KEPT_FIELD, kept_text
from app.kernel.format.schema.schema import Field
from app.kernel.format.schema.types import DataType, FlatType, List, Map, Struct

_NUMBERS: Final = np.frombuffer(PLACEHOLDER_BYTES, dtype=np.uint8)
_UUID_BYTES: Final = uuid.UUID(PLACEHOLDER_UUID).bytes

_Mask = npt.NDArray[np.bool_]
_Fault = tuple[int, str, str]


def available(
    table: pa.Table, schema: ChangeSchema, updates: _Mask, names: tuple[str, str]
) -> tuple[pa.Table, list[_Fault]]:
    """The envelopes without such values, as those in JSON are read, and the faults of rows: (row, pointer, reason).

    Rows that keep fields have their ids in the column `_hw_kept` at the end, and nothing before them. `updates`: the
    rows with op u. `names`: those of the columns with the rows before and after. Rows with faults are unchanged.
    """
    before, after = (_struct_of(table.column(name)) for name in names)
    fields = schema.rows().fields
    columns = [
        _Column(field, old, new)
        for field, old, new in zip(fields, before.flatten(), after.flatten(), strict=True)
    ]
    if not any(column.is_affected for column in columns):
        return table, []
    faults: list[_Fault] = []
    kept: dict[int, set[int]] = {}
    has_before = before.is_valid().to_numpy(zero_copy_only=False)
    place = [column for column in columns if column.field.name in schema.place]
    for column in columns:
        pointer = below(below("", names[1]), column.field.name)
        faults += ((row, pointer + member, UNAVAILABLE_MEMBER) for row, member in column.members())
        for row in np.flatnonzero(column.lacking & updates).tolist():
            stays = not has_before[row] or all(each.is_same(row) for each in place)
            if stays and column.field.name in schema.keepable:
                kept.setdefault(row, set()).add(column.field.id)
            else:
                faults.append((row, pointer, UNAVAILABLE))
    refused = np.zeros(table.num_rows, dtype=np.bool_)
    refused[[row for row, _, _ in faults]] = True
    whole_before = has_before.copy()
    whole_before[list(kept)] = False
    structs = (
        _with_columns(before, [column.before for column in columns], whole_before),
        _with_columns(after, [column.after(refused) for column in columns], after.is_valid()),
    )
    for name, struct in zip(names, structs, strict=True):
        table = table.set_column(table.column_names.index(name), table.schema.field(name), struct)
    if kept:
        texts = [kept_text(kept.get(row, ())) for row in range(table.num_rows)]
        table = table.append_column(KEPT_FIELD, pa.array(texts, KEPT_FIELD.type))
    return table, faults


class _Column:
    """A field of the rows before and after.

    `before`: the values that are known. `lacking`: the rows that have neither value.
    """

    def __init__(self, field: Field, old: pa.Array, new: pa.Array) -> None:
        self.field = field
        self._type = field.data_type()
        self._old, self._new = old, new
        unknown = unavailable_rows(old, self._type) | _rows_with_members(old, self._type)
        self._absent = unavailable_rows(new, self._type)
        self._partial = _rows_with_members(new, self._type)
        self.is_affected = bool((unknown | self._absent | self._partial).any())
        self.before = old.take(pa.array(np.arange(len(old)), mask=unknown)) if unknown.any() else old
        self.lacking = self._absent & self.before.is_null().to_numpy(zero_copy_only=False)

    def after(self, refused: _Mask) -> pa.Array:
        """The values after the changes."""
        places = np.arange(len(self._new))
        places[self._absent & ~refused] += len(self._new)
        return pa.concat_arrays([self._new, self.before]).take(pa.array(places))

    def is_same(self, row: int) -> bool:
        """Whether an update leaves the value as it is."""
        return bool(self._old[row].as_py() == self._new[row].as_py())

    def members(self) -> list[tuple[int, str]]:
        """(row, pointer below the value) of placeholders within structs."""
        rows = np.flatnonzero(self._partial)
        if not len(rows):
            return []
        texts = json_texts({"value": self._new.take(pa.array(rows))}, len(rows))
        values = (dict(parse_json(text.decode()))["value"] for text in texts)
        pointers = (unavailable_member(value, self._type) or "" for value in values)
        return list(zip(rows.tolist(), pointers, strict=True))


def _struct_of(column: pa.ChunkedArray) -> pa.StructArray:
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _with_columns(struct: pa.StructArray, columns: list[pa.Array], valid: pa.Array | _Mask) -> pa.StructArray:
    return pa.StructArray.from_arrays(columns, fields=list(struct.type), mask=pc.invert(pa.array(valid)))


def unavailable_rows(array: pa.Array, data_type: DataType) -> _Mask:
    """Whether each value of an array of the type is the placeholder."""
    match data_type:
        case FlatType():
            if pa.types.is_string(array.type):
                return _equal(array, PLACEHOLDER) | _equal(array, JSON_MAP)
            if pa.types.is_binary(array.type):
                return _equal(array, PLACEHOLDER_BYTES)
        case List(element):
            return _placeholder_lists(array, element)
        case Map():
            return _of_length(map_entries(array), 1, _placeholder_entries)
    return np.zeros(len(array), dtype=np.bool_)


def _placeholder_lists(array: pa.ListArray, element: DataType) -> _Mask:
    single = _of_length(
        array, 1, lambda values: unavailable_rows(values, element) | _placeholder_uuids(values)
    )
    kind = array.type.value_type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return single
    return single | _of_length(array, len(_NUMBERS), _placeholder_numbers)


def _placeholder_numbers(values: pa.Array) -> _Mask:
    numbers = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    same: _Mask = (numbers.reshape(-1, len(_NUMBERS)) == _NUMBERS).all(axis=1)
    return same


def _placeholder_uuids(values: pa.Array) -> _Mask:
    if pa.types.is_string(values.type):
        return _equal(values, PLACEHOLDER_UUID)
    if pa.types.is_fixed_size_binary(values.type) and values.type.byte_width == len(_UUID_BYTES):
        return _equal(values, _UUID_BYTES)
    return np.zeros(len(values), dtype=np.bool_)


def _placeholder_entries(entries: pa.StructArray) -> _Mask:
    keys, items = entries.flatten()
    if not (pa.types.is_string(keys.type) and pa.types.is_string(items.type)):
        return np.zeros(len(entries), dtype=np.bool_)
    return _equal(keys, PLACEHOLDER) & _equal(items, PLACEHOLDER)


def _equal(array: pa.Array, value: str | bytes) -> _Mask:
    same = pc.equal(array, pa.scalar(value, array.type))
    matches: _Mask = pc.fill_null(same, False).to_numpy(zero_copy_only=False)
    return matches


def _of_length(array: pa.ListArray, length: int, test: Callable[[pa.Array], _Mask]) -> _Mask:
    """Which lists have the length and pass the test of their elements, which are one after the other."""
    lengths = pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)
    matches = np.zeros(len(array), dtype=np.bool_)
    rows = np.flatnonzero(lengths == length)
    if len(rows):
        matches[rows] = test(array.take(pa.array(rows)).flatten())
    return matches


def _rows_with_members(array: pa.Array, data_type: DataType) -> _Mask:
    """Whether each value has a placeholder within a struct."""
    matches = np.zeros(len(array), dtype=np.bool_)
    if not may_have_members(data_type):
        return matches
    match data_type:
        case Struct(members):
            for (_, kind), child in zip(members, array.flatten(), strict=True):
                matches |= unavailable_rows(child, kind) | _rows_with_members(child, kind)
        case List(element):
            matches[_parents(array, _rows_with_members(array.flatten(), element))] = True
        case Map(_, item):
            entries = map_entries(array)
            _, items = entries.flatten().flatten()
            matches[_parents(entries, _rows_with_members(items, item))] = True
    return matches


def _parents(array: pa.ListArray, elements: _Mask) -> npt.NDArray[np.int64]:
    """The lists of the elements."""
    parents: npt.NDArray[np.int64] = pc.list_parent_indices(array).to_numpy()
    return parents[elements]
