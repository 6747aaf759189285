"""Readers of JSON records: many at once if all are good, or one by one with a message for every fault."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.compiled import (
    FAST_PATH_FAULTS,
    CompiledSchema,
    Tally,
    compile_schema,
    decoder_ignoring,
    quotation_marks,
    refuse_many_values,
)
from app.kernel.codecs.faults import Faults, below, missing_field, null_field, null_member
from app.kernel.codecs.meta_on_read import META_INPUT_NAMES
from app.kernel.codecs.value_parser import (
    Members,
    describe,
    distinct_members,
    invalid_members,
    read_value,
    refuse_unknown,
)
from app.kernel.format.rows.change_schema import MarkedSchema
from app.kernel.format.schema.schema import RESERVED_PREFIX, Schema
from app.kernel.format.schema.types import DataType, List, Struct

_META_MARK: Final = f'"{RESERVED_PREFIX}'.encode()
# How msgspec begins the message for a member that the type does not have.
_UNKNOWN: Final = "Object contains unknown field"
_NULL: Final = b"null"
_PROBED_ROWS: Final = 64
# Types with other names are compiled again.
_IGNORED_MAX: Final = 200
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MEMBERS_OF_VALUE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)


class RowReader:
    """Reads records that are rows: objects with their fields."""

    def __init__(self, schema: Schema) -> None:
        self._marked = schema if isinstance(schema, MarkedSchema) else None
        self._unmarked = compile_schema(schema if self._marked is None else self._marked.unmarked())
        self.compiled_schema: Final = compile_schema(schema)

    def decode_batch(self, texts: Sequence[bytes], ignored_fields: set[str]) -> pa.Table | None:
        """The rows of JSON texts; None if any of them does not fit.

        `ignored_fields`: receives the names of unknown members, which all are null. If it has some, others are
        expected.
        """
        text = b"\n".join(texts)
        refuse_many_values(text, self.compiled_schema)
        if self.compiled_schema.decode_row is None:
            return None
        members = _KnownMembers(self.compiled_schema.types)
        try:
            rows = self._decoded(texts, members, ignored_fields, has_meta=_META_MARK in text)
            table = self.compiled_schema.assemble(rows, members.tally)
        except FAST_PATH_FAULTS:
            return None
        tally = members.tally
        if self._marked is not None:
            puts = np.invert(deletes(table, self._marked))
            if any(lacks(table.column(name), puts) for name in self._marked.required):
                return None
        if not tally.accounts_for(text):
            return None
        ignored_fields |= members.ignored_fields
        return table

    def _decoded(
        self, texts: Sequence[bytes], members: _KnownMembers, ignored_fields: set[str], *, has_meta: bool
    ) -> list[Any]:
        """Raises one of FAST_PATH_FAULTS."""
        assert self.compiled_schema.decode_row is not None
        decode = self.compiled_schema.decode_row.decode
        if not ignored_fields and not has_meta:
            try:
                return list(map(decode, texts))
            except msgspec.ValidationError as fault:
                if not str(fault).startswith(_UNKNOWN):
                    raise
        rows = None if has_meta else self._decoded_ignoring(texts, members, ignored_fields)
        return [decode(members.row(text)) for text in texts] if rows is None else rows

    def _decoded_ignoring(
        self, texts: Sequence[bytes], members: _KnownMembers, ignored_fields: set[str]
    ) -> list[Any] | None:
        """The rows, if the only unknown members are those of the first rows, in no struct. Raises FAST_PATH_FAULTS."""
        first = _KnownMembers(self.compiled_schema.types)
        for text in texts[:_PROBED_ROWS]:
            first.row(text)
        names = tuple(sorted((ignored_fields | first.ignored_fields) - self.compiled_schema.types.keys()))
        if len(names) > _IGNORED_MAX:
            return None
        types, required_names = self.compiled_schema.types, self.compiled_schema.required_names
        decoder = decoder_ignoring(tuple(types.items()), required_names, names)
        if decoder is None:
            return None
        try:
            rows = list(map(decoder.decode, texts))
        except msgspec.ValidationError:
            return None
        for number, name in enumerate(names):
            count = sum(value is None for value in map(attrgetter(f"x{number}"), rows))
            members.tally.members += count
            if count:
                members.ignored_fields.add(name)
        return rows

    def read(self, value: Any, faults: Faults) -> list[Any]:
        """The contents of the record, in the reader's own form, for `table`. The result is invalid if there are faults.

        `value`: as returned by `parse_json`. `faults`: receives the faults, with pointers relative to the record.
        """
        marked = self._marked
        marks = (
            marked is not None
            and isinstance(value, Members)
            and any(name == marked.delete_marker and member is True for name, member in value)
        )
        return [read_row(value, self.compiled_schema if marks else self._unmarked, faults)]

    def table(self, contents: Sequence[Any]) -> pa.Table:
        """The rows of contents that `read` returned."""
        columns = [
            pa.array([row.get(field.name) for row in contents], field.type)
            for field in self.compiled_schema.arrow
        ]
        return pa.Table.from_arrays(columns, schema=self.compiled_schema.arrow)


def deletes(rows: pa.Table, schema: MarkedSchema) -> npt.NDArray[np.bool_]:
    """Whether each row deletes its key."""
    markers: npt.NDArray[np.bool_] = pc.fill_null(rows.column(schema.delete_marker), False).to_numpy()
    return markers


def lacks(column: pa.ChunkedArray, needs: npt.NDArray[np.bool_]) -> bool:
    """Whether the column has no value in a row that needs one."""
    return bool(column.null_count) and bool((column.is_null().to_numpy() & needs).any())


class _KnownMembers:
    """Leaves out meta columns, and unknown members that are null. They are counted. Raises FAST_PATH_FAULTS."""

    def __init__(self, types: Mapping[str, DataType]) -> None:
        self.tally = Tally()
        self.ignored_fields: set[str] = set()
        self._types = types

    def row(self, text: bytes) -> bytes:
        """The row without them."""
        members = _MEMBERS.decode(text)
        for name in META_INPUT_NAMES & members.keys():
            self.tally.members += 1
            self.tally.strings += quotation_marks(bytes(members.pop(name))) // 2
        return self._encoded(members, self._types, "")

    def _encoded(self, members: dict[str, msgspec.Raw], types: Mapping[str, DataType], place: str) -> bytes:
        for name in [name for name in members if name not in types and bytes(members[name]) == _NULL]:
            del members[name]
            self.tally.members += 1
            self.ignored_fields.add(f"{place}{name}")
        for name, data_type in types.items():
            if name in members and has_structs(data_type):
                members[name] = self._value(members[name], data_type, f"{place}{name}.")
        return msgspec.json.encode(members)

    def _value(self, raw: msgspec.Raw, data_type: DataType, place: str) -> msgspec.Raw:
        match data_type:
            case Struct(types):
                members = _MEMBERS_OF_VALUE.decode(raw)
                return raw if members is None else msgspec.Raw(self._encoded(members, dict(types), place))
            case List(element):
                elements = _ELEMENTS.decode(raw)
                if elements is None:
                    return raw
                return msgspec.Raw(
                    msgspec.json.encode([self._value(each, element, place) for each in elements])
                )
        return raw


@functools.cache
def has_structs(data_type: DataType) -> bool:
    """Whether values of the type are structs, or lists of such."""
    return isinstance(data_type, Struct) or (isinstance(data_type, List) and has_structs(data_type.element))


def read_row(value: Any, compiled_schema: CompiledSchema, faults: Faults) -> dict[str, Any]:
    """The Python values of one row by column; its faults are added to `faults`."""
    if not isinstance(value, Members):
        faults.add("", f"expected an object with the fields of a row, got {describe(value)}")
        return {}
    members = distinct_members(value, "", faults)
    invalid = invalid_members(members, compiled_schema.types.keys() | META_INPUT_NAMES, "")
    row: dict[str, Any] = {}
    for name, member in members.items():
        if faults.full:
            break
        place = below("", name)
        if name in META_INPUT_NAMES:
            continue
        if name not in compiled_schema.types:
            refuse_unknown(name, member, compiled_schema.types, place, invalid, faults)
        elif member is None and name in compiled_schema.required_names:
            faults.add(place, null_field(name, str(compiled_schema.types[name])))
        else:
            row[name] = read_value(member, compiled_schema.types[name], place, faults)
    for name, data_type in compiled_schema.types.items():
        if name in compiled_schema.required_names and name not in members and not faults.full:
            faults.add(below("", name), missing_field(name, str(data_type)))
    for name, *path in compiled_schema.key_members:
        if name in row and not faults.full:
            add_null_member(row[name], below("", name), path, faults)
    return row


def add_null_member(value: Any, pointer: str, path: Sequence[str], faults: Faults) -> None:
    """Adds a fault if a member that is part of the record key is missing or null.

    `value`: the struct, as `read_value` returns it. `path`: the member's, below it.
    """
    for name in path:
        pointer = below(pointer, name)
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        faults.add(pointer, null_member(path))
