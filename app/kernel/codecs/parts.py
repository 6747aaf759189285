"""What a reader of Arrow or Parquet decodes at once: a page, or a record batch. A small body can have large ones.

Their sizes are read from the headers of the format before they are decoded. Headers that lie take the decoder to the
limit of the memory of its process.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

import msgspec

from app.kernel.codecs.faults import below
from app.kernel.format.errors import BodyTooLarge
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits

PART_BYTES_MIN: Final = 64 << 20
"""The headers of smaller parts are not read first. Their rows are checked once they are decoded."""
PART_MEMORY_MAX: Final = 1 << 30
"""The most memory that decoding a part may take."""


class PartMemory(Protocol):
    """The memory of this process for parts."""

    def holding(self, size_bytes: int) -> AbstractContextManager[None]:
        """While the context lasts, this memory may be used. Waits for it. Raises Unavailable if that takes too long."""
        ...


class _AnyMemory:
    def holding(self, size_bytes: int) -> AbstractContextManager[None]:  # noqa: ARG002 - part of the interface
        return nullcontext()


ANY_MEMORY: Final[PartMemory] = _AnyMemory()
"""Memory without a bound."""


class LargePart(msgspec.Struct, frozen=True, kw_only=True):
    """A part as its header describes it.

    `size_bytes`: once it is decompressed. `values`: at most as many rows have a value in it. `first_row`, `rows`: the
    rows that may.
    """

    name: str
    size_bytes: int
    memory_bytes: int
    values: int
    first_row: int
    rows: int


class PartLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the parts of an input. `pointer`: of its rows.

    `keeps_rows`: rows that are too large do not reject the input. Their parts are decoded as long as they can be.
    """

    limits: RowLimits = DEFAULT_LIMITS
    pointer: str = "/rows"
    keeps_rows: bool = False
    memory: PartMemory = ANY_MEMORY

    def check(self, part: LargePart) -> None:
        """Raises RowTooLarge if one of its rows must be too large, BodyTooLarge if it cannot be decoded."""
        fits = part.memory_bytes <= PART_MEMORY_MAX
        rows_bytes_max = min(part.values, part.rows) * self.limits.row_bytes_max
        if part.size_bytes > max(PART_BYTES_MIN, rows_bytes_max) and not (self.keeps_rows and fits):
            if part.rows == 1:
                raise self.limits.refusal(part.first_row, below(self.pointer, part.first_row))
            raise self.limits.refusal_among(part.first_row, part.rows, self.pointer)
        if not fits:
            size_bytes_max = PART_MEMORY_MAX * part.size_bytes // part.memory_bytes
            raise BodyTooLarge(
                f"{part.name} with rows from {part.first_row} on has {part.size_bytes} bytes once it is decompressed, "
                f"over the limit of {size_bytes_max}: it has too many rows, or one that is too large",
                limit_bytes=size_bytes_max,
            )


ANY_PARTS: Final = PartLimits()
"""For input that the service has written itself."""
