"""What a reader may see of a dataset: which rows, and which columns without their values."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec


class RowAccess(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows for which one of the conditions `where` is true, all rows without any; `masked` columns read as null.

    It is resolved from the grants of a key and travels with what the key has started. `bind_access` gives it a meaning
    for one schema. What selects rows or changes combines it with the filter of the reader, so there is no second way to
    read.
    """

    where: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()

    @property
    def restricted(self) -> bool:
        """Whether some rows or values may be hidden."""
        return bool(self.where or self.masked)

    def within(self, other: RowAccess) -> bool:
        """Whether the other certainly shows everything that this one shows."""
        rows = not other.where or (bool(self.where) and set(self.where) <= set(other.where))
        return rows and set(other.masked) <= set(self.masked)


EVERYTHING: Final = RowAccess()
DIGEST_BYTES: Final = 8
"""The bytes of `access_digest`."""


def access_digest(access: RowAccess) -> bytes:
    """A digest of the access, 8 bytes: zeros for one that hides nothing. The order of its members does not
    matter.
    """
    if not access.restricted:
        return bytes(DIGEST_BYTES)
    facts = sorted(set(access.where)), sorted(set(access.masked))
    return blake2b(msgspec.json.encode(facts), digest_size=DIGEST_BYTES).digest()


def combined(accesses: Sequence[RowAccess]) -> RowAccess:
    """The access of a reader that has several: the rows of all of them.

    A column is readable if the accesses that do not mask it show all of these rows; so no row shows a value that no
    single access shows.
    """
    if any(not each.restricted for each in accesses):
        return EVERYTHING
    rows = _rows(accesses)
    candidates = {name for each in accesses for name in each.masked}
    columns = (
        name for name in candidates if _rows([each for each in accesses if name not in each.masked]) != rows
    )
    return RowAccess(where=rows or (), masked=tuple(sorted(columns)))


def _rows(accesses: Sequence[RowAccess]) -> tuple[str, ...] | None:
    """The conditions of all rows that the accesses show, empty for every row; None for no row."""
    if not accesses:
        return None
    if any(not each.where for each in accesses):
        return ()
    return tuple(sorted({text for each in accesses for text in each.where}))
