"""Thrift's compact protocol: where the fields of a struct are, and structs from fields.

Values that stay are copied as they are. Every step of a parse consumes bytes, so that its time and memory are within
those of the input, whatever the input is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
I16: Final = 4
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
MAP: Final = 11
STRUCT: Final = 12
UUID: Final = 13

DEPTH_MAX: Final = 64
"""Deeper structs and lists are refused; those of Parquet have a depth of seven."""
_SIZES: Final = {BYTE: 1, DOUBLE: 8, UUID: 16}
_VARINTS: Final = (I16, I32, I64)
_VARINT_BITS_MAX: Final = 70
_CONTINUES: Final = 0x80
_LONG_LIST: Final = 15


class InvalidFooter(ValueError):
    """The bytes are no footer of a Parquet file that the service could have written."""


class FooterTooLarge(InvalidFooter):
    """The footer has more than is parsed for one file."""


class ThriftField(NamedTuple):
    """A field of a struct: its number, its type, and its value as bytes. The type of a boolean is its value."""

    id: int
    type: int
    value: bytes


class Reader:
    """Reads values from `data`, from `position` on. Raises InvalidFooter, and IndexError at the end of the data."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def varint(self) -> int:
        """An unsigned number."""
        data, position = self.data, self.position
        number = shift = 0
        while (byte := data[position]) >= _CONTINUES:
            number |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if shift == _VARINT_BITS_MAX:
                raise InvalidFooter(f"the number at byte {self.position} has more than 64 bits")
        self.position = position + 1
        return number | byte << shift

    def integer(self) -> int:
        """A signed number."""
        number = self.varint()
        return number >> 1 ^ -(number & 1)

    def binary(self) -> bytes:
        count = self.varint()
        self._move(count)
        return self.data[self.position - count : self.position]

    def list_header(self) -> tuple[int, int]:
        """The type and the number of the elements, each of which has at least one byte."""
        byte = self._byte()
        count = byte >> 4 if byte >> 4 < _LONG_LIST else self.varint()
        self._check_count(count)
        return byte & 0x0F, count

    def fields(self, last: int | None = None) -> list[ThriftField]:
        """The fields of the struct that begins here, whose numbers ascend. Stops behind the field `last`."""
        fields = []
        number = 0
        while number != last and (byte := self._byte()):
            kind = byte & 0x0F
            number = self._number(byte, number)
            start = self.position
            if kind > FALSE:
                self.skip(kind, 1)
            fields.append(ThriftField(number, kind, self.data[start : self.position]))
        return fields

    def numbers(self, nested: int = 0) -> tuple[dict[int, int], dict[int, int]]:
        """The numbers among the fields of the struct that begins here, and those in its field `nested`, a struct."""
        numbers: dict[int, int] = {}
        members: dict[int, int] = {}
        number = 0
        while byte := self._byte():
            kind = byte & 0x0F
            number = self._number(byte, number)
            if kind in _VARINTS:
                numbers[number] = self.integer()
            elif number == nested and kind == STRUCT:
                members, _ = self.numbers()
            elif kind > FALSE:
                self.skip(kind, 1)
        return numbers, members

    def skip(self, kind: int, depth: int = 0) -> None:
        """Moves behind a value of this type, which is no boolean of a struct."""
        if kind == BINARY:
            self._move(self.varint())
        elif kind in _VARINTS:
            self.varint()
        elif kind == STRUCT:
            self._skip_struct(depth)
        elif kind in (LIST, SET):
            self._check_depth(depth)
            kind, count = self.list_header()
            self._skip_elements((kind,), count, depth)
        elif kind in _SIZES:
            self._move(_SIZES[kind])
        elif kind == MAP:
            self._skip_map(depth)
        else:
            raise InvalidFooter(f"the value at byte {self.position} has the unknown type {kind}")

    def _skip_struct(self, depth: int) -> None:
        self._check_depth(depth)
        while byte := self._byte():
            if byte < 1 << 4:
                self.varint()
            if byte & 0x0F > FALSE:
                self.skip(byte & 0x0F, depth + 1)

    def _skip_map(self, depth: int) -> None:
        self._check_depth(depth)
        if count := self.varint():
            kinds = self._byte()
            self._check_count(count)
            self._skip_elements((kinds >> 4, kinds & 0x0F), count, depth)

    def _skip_elements(self, kinds: tuple[int, ...], count: int, depth: int) -> None:
        for _ in range(count):
            for kind in kinds:
                if kind in (TRUE, FALSE):
                    self._move(1)
                else:
                    self.skip(kind, depth + 1)

    def _number(self, byte: int, previous: int) -> int:
        """The number of the field whose header begins with this byte."""
        delta = byte >> 4
        number = previous + delta if delta else self.integer()
        if number <= previous:
            raise InvalidFooter(f"the fields of the struct before byte {self.position} do not ascend")
        return number

    def _byte(self) -> int:
        byte = self.data[self.position]
        self.position += 1
        return byte

    def _check_depth(self, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise InvalidFooter(f"the footer is nested more than {DEPTH_MAX} levels deep")

    def _check_count(self, count: int) -> None:
        if count > len(self.data) - self.position:
            raise InvalidFooter(f"the footer ends within the list at byte {self.position}")

    def _move(self, count: int) -> None:
        if count > len(self.data) - self.position:
            raise InvalidFooter(f"the footer ends within the value at byte {self.position}")
        self.position += count


def varint_bytes(number: int) -> bytes:
    """An unsigned number of at most 64 bits."""
    content = bytearray()
    while number >= _CONTINUES:
        content.append(number & 0x7F | _CONTINUES)
        number >>= 7
    content.append(number)
    return bytes(content)


def integer_bytes(number: int) -> bytes:
    """A signed number of at most 64 bits."""
    return varint_bytes(number << 1 if number >= 0 else (-number << 1) - 1)


def list_bytes(kind: int, elements: list[bytes]) -> bytes:
    """A list of elements of one type."""
    count = len(elements)
    header = bytes([count << 4 | kind]) if count < _LONG_LIST else bytes([0xF0 | kind]) + varint_bytes(count)
    return header + b"".join(elements)


def struct_bytes(fields: Iterable[ThriftField]) -> bytes:
    """A struct with these fields, whose numbers ascend."""
    parts = []
    previous = 0
    for number, kind, value in fields:
        delta = number - previous
        is_short = 0 < delta < 1 << 4
        parts.append(bytes([delta << 4 | kind]) if is_short else bytes([kind]) + integer_bytes(number))
        parts.append(value)
        previous = number
    return b"".join(parts) + b"\0"
