"""Values in the compact protocol of Thrift, in which Parquet has its footer and the headers of its pages."""

from __future__ import annotations

from typing import Any, Final

_LONG_LIST: Final = 15


class CompactReader:
    """Reads from `data`, from the byte number `position` on. Structs are dicts of their values by the ids of fields.

    Raises IndexError where the bytes end early, RecursionError for values that are nested too deeply, ValueError for
    types that there are not.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    def struct(self) -> dict[int, Any]:
        """The struct that starts here."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            # A boolean of a struct has its value in its type.
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                head = self._byte()
                size = self._varint() if head >> 4 == _LONG_LIST else head >> 4
                return [self._value(head & 15) for _ in range(size)]
            case 11:
                size = self._varint()
                kinds = self._byte() if size else 0
                return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(size)]
            case 12:
                return self.struct()
            case 13:
                return self._bytes(16)
        raise ValueError(f"a type {kind} of Thrift")

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def _byte(self) -> int:
        byte = self._data[self.position]
        self.position += 1
        return byte

    def _bytes(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if self.position > len(self._data):
            raise IndexError("the bytes end early")
        return self._data[start : self.position]
