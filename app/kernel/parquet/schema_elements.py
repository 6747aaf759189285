"""The schema of a Parquet file: a list of elements in depth-first order. It is exchanged for one with field ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.kernel.format.rows.file_columns import OWN_FIELD_IDS
from app.kernel.format.schema.schema import Field
from app.kernel.format.schema.types import member_path_below
from app.kernel.parquet.compact import (
    BINARY,
    FALSE,
    I32,
    STRUCT,
    InvalidFooter,
    Reader,
    ThriftField,
    integer_bytes,
    list_bytes,
    struct_bytes,
)
from app.kernel.parquet.exchange import member_ids

# The numbers of fields of a SchemaElement.
_TYPE: Final = 1
_REPETITION: Final = 3
_NAME: Final = 4
_CHILDREN: Final = 5
_CONVERTED_TYPE: Final = 6
_FIELD_ID: Final = 9
_LOGICAL_TYPE: Final = 10
_REPEATED: Final = 2
_CONVERTED_MAPS: Final = (1, 2)
_CONVERTED_LIST: Final = 3
_CONVERTED_UNSIGNED: Final = (11, 12)
_LOGICAL_MAP: Final = 2
_LOGICAL_LIST: Final = 3
_LOGICAL_INTEGER: Final = 10
_INTEGER_BITS: Final = 1
_INTEGER_SIGNED: Final = 2
_NARROW_BITS: Final = (8, 16)
_DEPTH_MAX: Final = 128


@dataclass(kw_only=True)
class _Element:
    """An element with those below it."""

    fields: dict[int, ThriftField]
    children: list[_Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        name = self.fields.get(_NAME)
        if name is None or name.type != BINARY:
            raise InvalidFooter("an element of the schema has no name")
        try:
            return Reader(name.value).binary().decode()
        except UnicodeDecodeError:
            raise InvalidFooter("the name of an element of the schema is not UTF-8") from None

    def number(self, place: int) -> int | None:
        """The value of a number, None where it is absent."""
        number = self.fields.get(place)
        if number is None:
            return None
        if number.type != I32:
            raise InvalidFooter(f"field {place} of an element of the schema is no number")
        return Reader(number.value).integer()

    def logical_type(self) -> dict[int, ThriftField]:
        """The member of the union that is set."""
        logical = self.fields.get(_LOGICAL_TYPE)
        if logical is None or logical.type != STRUCT:
            return {}
        return {each.id: each for each in Reader(logical.value).fields()}

    @property
    def leaves(self) -> int:
        return sum(child.leaves for child in self.children) if self.children else 1


@dataclass(frozen=True, kw_only=True)
class ExchangedSchema:
    """The new schema.

    `value`: the list of elements. `visible_leaves`: for each leaf column of the stored file, whether it stays.
    """

    value: bytes
    visible_leaves: list[bool]


def exchanged_schema(value: bytes, columns: Collection[Field], *, shows_own: bool = True) -> ExchangedSchema:
    """The schema with field ids, and with these columns and, if it shows them, the service's own only.

    Raises InvalidFooter.
    """
    root = _tree(value)
    by_id = {column.id: column for column in columns}
    children, visible_leaves = [], []
    for child in root.children:
        ids = _ids(child, by_id, shows_own)
        visible_leaves += [ids is not None] * child.leaves
        if ids is not None:
            _set_ids(child, "", ids)
            children.append(child)
    if not children:
        raise InvalidFooter("the file has no column that may be seen")
    root.children = children
    elements: list[bytes] = []
    _append(root, elements)
    return ExchangedSchema(value=list_bytes(STRUCT, elements), visible_leaves=visible_leaves)


def _tree(value: bytes) -> _Element:
    reader = Reader(value)
    kind, count = reader.list_header()
    if kind != STRUCT or not count:
        raise InvalidFooter("the schema is no list of elements")
    root, count = _element(reader, count, 0)
    if count:
        raise InvalidFooter(f"{count} elements of the schema belong to no other")
    return root


def _element(reader: Reader, count: int, depth: int) -> tuple[_Element, int]:
    """The element that begins here, of `count`, and the number of those behind it."""
    if not count or depth > _DEPTH_MAX:
        raise InvalidFooter("the elements of the schema are not those of a tree")
    element = _Element(fields={each.id: each for each in reader.fields()})
    count -= 1
    children = element.number(_CHILDREN) or 0
    if not 0 <= children <= count or (not children and depth and _TYPE not in element.fields):
        raise InvalidFooter("the elements of the schema are not those of a tree")
    for _ in range(children):
        child, count = _element(reader, count, depth + 1)
        element.children.append(child)
    return element, count


def _ids(element: _Element, columns: Mapping[int, Field], shows_own: bool) -> Mapping[str, int] | None:
    """The ids of a column and its members by path, the column's own by the empty path. None: it may not be seen."""
    own = OWN_FIELD_IDS.get(element.name)
    if own is not None:
        return {"": own} if shows_own else None
    column = columns.get(element.number(_FIELD_ID) or 0)
    return None if column is None else {**member_ids(column), "": column.id}


def _set_ids(element: _Element, path: str, ids: Mapping[str, int]) -> None:
    if path not in ids:
        raise InvalidFooter(f"the file has a member {path!r} that its schema does not have")
    element.fields[_FIELD_ID] = ThriftField(_FIELD_ID, I32, integer_bytes(ids[path]))
    _remove_narrow_unsigned(element)
    for name, member in _members(element):
        _set_ids(member, member_path_below(path, name), ids)


def _remove_narrow_unsigned(element: _Element) -> None:
    """Unsigned numbers of 8 and 16 bits become the plain 32-bit integers that they are stored as."""
    integer = element.logical_type().get(_LOGICAL_INTEGER)
    narrow = element.number(_CONVERTED_TYPE) in _CONVERTED_UNSIGNED
    if integer is not None and integer.type == STRUCT:
        facts = {each.id: each for each in Reader(integer.value).fields()}
        bits, sign = facts.get(_INTEGER_BITS), facts.get(_INTEGER_SIGNED)
        narrow = (
            bits is not None
            and bits.value[:1] in map(bytes, zip(_NARROW_BITS))
            and (sign is not None and sign.type == FALSE)
        )
    if narrow:
        element.fields.pop(_CONVERTED_TYPE, None)
        element.fields.pop(_LOGICAL_TYPE, None)


def _members(element: _Element) -> list[tuple[str, _Element]]:
    """The members of a column that have ids, each with its name in a path."""
    if not element.children:
        return []
    logical, legacy_type = element.logical_type(), element.number(_CONVERTED_TYPE)
    if _LOGICAL_LIST in logical or legacy_type == _CONVERTED_LIST:
        return list(zip(("element",), _repeated(element, 1), strict=True))
    if _LOGICAL_MAP in logical or legacy_type in _CONVERTED_MAPS:
        return list(zip(("key", "value"), _repeated(element, 2), strict=True))
    return [(child.name, child) for child in element.children]


def _repeated(element: _Element, count: int) -> list[_Element]:
    """The members of the repeated group in a list or map."""
    groups = element.children
    if len(groups) != 1 or groups[0].number(_REPETITION) != _REPEATED or len(groups[0].children) != count:
        raise InvalidFooter(f"the column {element.name!r} has no list or map of three levels")
    return groups[0].children


def _append(element: _Element, elements: list[bytes]) -> None:
    if element.children:
        element.fields[_CHILDREN] = ThriftField(_CHILDREN, I32, integer_bytes(len(element.children)))
    elements.append(struct_bytes(element.fields[number] for number in sorted(element.fields)))
    for child in element.children:
        _append(child, elements)
