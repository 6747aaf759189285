"""Partial updates: a member that a request leaves out keeps its value."""

from __future__ import annotations

from typing import TypeVar

import msgspec

_T = TypeVar("_T", bound=msgspec.Struct)


def patched(value: _T, patch: msgspec.Struct) -> _T:
    """The value with the members of the same name that the patch sets, null included."""
    changes = {
        name: wanted
        for name in value.__struct_fields__
        if (wanted := getattr(patch, name, msgspec.UNSET)) is not msgspec.UNSET
    }
    return msgspec.convert(msgspec.structs.asdict(value) | changes, type(value), from_attributes=True)
