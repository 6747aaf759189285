"""What is exchanged in a stored Parquet file before others read it, and how large it is then.

The footer is another one: each column and member has its field id, and a column that may not be seen is absent. The
bytes of the pages that stay, and their places, are those of the stored file; what may not be seen is zeros. Between the
pages and the footer are zeros of a number that makes the size of the file known before its footer is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final

from app.kernel.format.rows.file_columns import LAYOUT, OWN_FIELD_IDS
from app.kernel.format.schema.schema import Field

AS_STORED: Final = "0"
"""The rendering of a file that is served as it is stored."""
# Part of each digest: increment it when the same input is exchanged for other bytes.
_EDITION: Final = 1
# A field id adds a byte for its number in the struct, and up to five for its value. Nothing else grows.
_ID_BYTES_MAX: Final = 6


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What of a file is seen.

    `columns`: those that are seen. `serves_stored`: whether all of it is served as it is stored. `shows_own`: whether
    the columns of the format itself are seen (`_hw_…`).
    """

    columns: tuple[Field, ...]
    serves_stored: bool
    shows_own: bool = True

    @cached_property
    def rendering(self) -> str:
        """`AS_STORED`, or a digest (16 hexadecimal digits) of what is exchanged: equal digests, equal bytes."""
        if self.serves_stored:
            return AS_STORED
        digest = blake2b(repr((_EDITION, sorted(OWN_FIELD_IDS.items()))).encode(), digest_size=8)
        for column in self.columns:
            digest.update(repr((column.id, sorted(member_ids(column).items()))).encode())
        if not self.shows_own:
            digest.update(b"without own")
        return digest.hexdigest()

    @cached_property
    def growth_bytes(self) -> int:
        """The number of bytes by which the file becomes larger."""
        if self.serves_stored:
            return 0
        own = len(OWN_FIELD_IDS) if self.shows_own else 0
        ids = own + sum(1 + len(member_ids(column)) for column in self.columns)
        return _ID_BYTES_MAX * ids


def exchange(
    columns: Iterable[Field], visible: Collection[int], layout: int | None, *, shows_own: bool = True
) -> Exchange:
    """What is exchanged in a file.

    `columns`: those of the schema that the file was written with, which have the ids of members. `visible`: the ids of
    those that may be seen.
    `layout`: that of the file. `shows_own`: see `Exchange`.
    """
    of_file = tuple(columns)
    visible_columns = tuple(column for column in of_file if column.id in visible)
    is_whole = shows_own and len(visible_columns) == len(of_file)
    return Exchange(columns=visible_columns, serves_stored=layout == LAYOUT and is_whole, shows_own=shows_own)


def exchanged_size(exchange: Exchange, stored_size: int) -> int:
    """The size of the served file in bytes, from the size of the stored one."""
    return stored_size + exchange.growth_bytes


def member_ids(column: Field) -> Mapping[str, int]:
    """The field ids of the members of a column by path."""
    return column.member_ids or {}
