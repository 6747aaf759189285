"""`uuid`: 128-bit identifiers, as 0190163d-8694-739b-aea5-966c26f8ad91.

Their text is 8-4-4-4-12 hexadecimal digits, in lower case; input may also have them in upper case. They are stored as
16 bytes without an annotation: pyarrow neither sorts nor groups its own uuid type, and Spark refuses files that have
it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types.flat import FlatType, OrderNumbers, RefusedText, quoted_text, require
from app.kernel.format.schema.types.strings import STRING

_BYTES: Final = 16
_PATTERN: Final = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_TEXT: Final = re.compile(_PATTERN)
_TEXT_CHARACTERS: Final = 36
_DASHES: Final = (8, 13, 18, 23)
_ZERO: Final = bytes(_BYTES)


@dataclass(frozen=True, slots=True)
class Uuid(FlatType):
    has_order: ClassVar[bool] = False
    csv_as_text: ClassVar[bool] = True
    reads_strings: ClassVar[bool] = True

    def __str__(self) -> str:
        return "uuid"

    @property
    def arrow(self) -> pa.DataType:
        return pa.binary(_BYTES)

    @property
    def arrow_forms(self) -> tuple[pa.DataType, ...]:
        return (pa.uuid(), pa.binary(_BYTES))

    @property
    def extension(self) -> str:
        return "arrow.uuid"

    def parse(self, texts: pa.StringArray) -> pa.Array:
        require(pc.match_substring_regex(texts, f"^{_PATTERN}$"))
        digits = "".join(pc.fill_null(texts, str(uuid.UUID(int=0))).to_pylist()).replace("-", "")
        content = pa.py_buffer(bytes.fromhex(digits))
        return _where_valid(pa.Array.from_buffers(self.arrow, len(texts), [None, content]), texts)

    def read(self, text: str) -> bytes:
        if _TEXT.fullmatch(text) is None:
            raise RefusedText("which is not written as 8-4-4-4-12 hexadecimal digits")
        return bytes.fromhex(text.replace("-", ""))

    def texts(self, array: pa.Array) -> pa.Array:
        if not len(array):
            return pa.array([], pa.large_string())
        values = pc.fill_null(self.from_arrow(array), _ZERO)
        start = values.offset * _BYTES
        digits = memoryview(values.buffers()[1])[start : start + len(values) * _BYTES].hex().encode()
        places = [at for at in range(_TEXT_CHARACTERS) if at not in _DASHES]
        characters = np.full((len(values), _TEXT_CHARACTERS), ord("-"), dtype=np.uint8)
        characters[:, places] = np.frombuffer(digits, dtype=np.uint8).reshape(len(values), len(places))
        ends = np.arange(len(values) + 1, dtype=np.int64) * _TEXT_CHARACTERS
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(characters)]
        return _where_valid(pa.Array.from_buffers(pa.large_string(), len(values), buffers), array)

    @property
    def avro(self) -> dict[str, Any]:
        return {"type": "string", "logicalType": "uuid"}

    @property
    def to_avro(self) -> Callable[[Any], Any]:
        return lambda value: str(uuid.UUID(bytes=value))

    def key_bytes(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        # As the text: a view that has the key as a string has the same keys.
        texts = [pc.cast(self.texts(chunk), pa.large_binary()) for chunk in chunks]
        return pa.chunked_array(texts, pa.large_binary()) if isinstance(column, pa.ChunkedArray) else texts[0]

    def order_numbers(self, array: pa.Array) -> OrderNumbers:
        words = np.frombuffer(array.buffers()[1] or b"", dtype=">u8")[:: _BYTES // 8]
        numbers: OrderNumbers = words[array.offset : array.offset + len(array)].astype(np.uint64)
        return numbers

    def path_texts(self, values: pa.Array) -> list[str | None]:
        texts: list[str | None] = self.texts(values).to_pylist()
        return texts

    def path_value(self, text: str) -> bytes:
        return uuid.UUID(text).bytes

    def stored(self, value: bytes) -> str:
        return str(uuid.UUID(bytes=value))

    def comparable(self, bound: Any) -> bytes | None:
        return uuid.UUID(bound).bytes if isinstance(bound, str) else None

    def filter_value(self, literal: Any) -> bytes:
        return uuid.UUID(literal).bytes

    def literal(self, text: str) -> str:
        return str(uuid.UUID(bytes=self.read(text)))

    def sql_literal(self, value: bytes) -> str:
        return quoted_text(str(uuid.UUID(bytes=value)))

    @property
    def literal_example(self) -> str:
        return "a string such as '0190163d-8694-739b-aea5-966c26f8ad91'"

    @property
    def hive(self) -> str:
        """The 16 bytes: Hive has no such type, and data files have them."""
        return "binary"

    @property
    def delta(self) -> str:
        """The 16 bytes: Delta has no such type."""
        return "binary"

    @property
    def iceberg(self) -> str:
        """The 16 bytes. Iceberg's own type has an annotation in Parquet: readers of it refuse columns without one, or
        misread them.
        """
        return "fixed[16]"

    @property
    def relation(self) -> FlatType:
        """Its text: Spark has no such type."""
        return STRING


def _where_valid(values: pa.Array, original: pa.Array) -> pa.Array:
    """The values, null where the original is."""
    if not original.null_count:
        return values
    return pc.if_else(original.is_valid(), values, pa.scalar(None, values.type))


UUID: Final = Uuid()
